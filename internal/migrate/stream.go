package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/log"
)

// stream turns the commands of an append-only file or of a primary into groups.
type stream struct {
	to      target // nil: only look
	db      int    // the database to take
	chosen  bool   // by the user: others are passed over, not refused
	current int
	rested  int // the database at the end of the last group

	multi   bool
	queue   [][][]byte
	applied uint64 // commands
	groups  uint64
	skipped uint64 // commands of other databases
}

// atRest reports whether no group is half taken.
func (s *stream) atRest() bool { return !s.multi }

// rewind drops the group that is half taken.
func (s *stream) rewind() { s.multi, s.queue, s.current = false, nil, s.rested }

var errMulti = errors.New("EXEC without MULTI, or MULTI inside one")

// take takes a command.
func (s *stream) take(args [][]byte) error {
	switch name := strings.ToUpper(string(args[0])); name {
	case "PING", "REPLCONF", "PUBLISH", "SPUBLISH", "SCRIPT": // nothing of it is state
		return nil
	case "SELECT":
		return s.use(args)
	case "SWAPDB":
		if len(args) == 3 && bytes.Equal(args[1], args[2]) { // with itself, which a server passes on all the same
			return nil
		}
		return refused(args, "it moves keys between databases, of which kevy has one")
	case "MULTI", "EXEC":
		if s.multi == (name == "MULTI") {
			return errMulti
		}
		s.multi = !s.multi
		if s.multi {
			return nil
		}
		return s.group()
	default:
		if strings.HasPrefix(name, "#") { // an annotation: #TS:<unix s>
			return nil
		}
		if err := s.admit(name, args); err != nil {
			return err
		}
	}
	if s.multi {
		return nil
	}
	return s.group()
}

func (s *stream) use(args [][]byte) error {
	if len(args) != 2 {
		return refused(args, "wrong number of arguments")
	}
	n, err := strconv.Atoi(string(args[1]))
	if err != nil || n < 0 {
		return refused(args, "no database")
	}
	s.current = n
	if !s.multi {
		s.rested = n
	}
	return nil
}

// admit queues a command, unless it belongs to another database.
func (s *stream) admit(name string, args [][]byte) error {
	if s.current != s.db && name != "FLUSHALL" && name != "FUNCTION" {
		if !s.chosen {
			return otherDB(uint64(s.current)) //nolint:gosec // not negative
		}
		s.skipped++
		return nil
	}
	if name == "MOVE" && s.chosen {
		return refused(args, "it moves keys between databases, of which only one is imported")
	}
	if s.to == nil {
		if row, bad := command.Resolve(args); row == nil {
			return refused(args, bad)
		}
		s.applied++
		return nil
	}
	own := make([][]byte, len(args))
	for i, a := range args {
		own[i] = bytes.Clone(a)
		if own[i] == nil {
			own[i] = []byte{}
		}
	}
	s.queue = append(s.queue, own)
	return nil
}

func (s *stream) group() (err error) {
	if len(s.queue) > 0 {
		if err = s.to.apply(log.ByClient, s.queue); err == nil {
			s.applied += uint64(len(s.queue))
			s.groups++
		}
		clear(s.queue)
		s.queue = s.queue[:0]
	}
	if err == nil {
		s.rested = s.current
	}
	return err
}

const oneDB = "kevy has one database (kevy import --db N takes one of them, and leaves out the others)"

// errOtherDB is the class of data in a database that is not taken.
var errOtherDB = errors.New("there is data in another database")

func otherDB(n uint64) error { return fmt.Errorf("%w, %d: %s", errOtherDB, n, oneDB) }
