package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kevydb/kevy/log"
)

// failing is a target that fails at a command.
type failing struct {
	at  string
	got []string
}

var errFailing = errors.New("it fails here")

func (f *failing) apply(_ log.FrameCause, cmds [][][]byte) error {
	for _, args := range cmds {
		if string(args[0]) == f.at {
			return errFailing
		}
	}
	f.got = append(f.got, fmt.Sprintf("%s", cmds))
	return nil
}

func (f *failing) settle() error { return nil }

// TestStreamRewinds: a transaction that has failed is taken again in the database in which it began, not in the one that it selects.
func TestStreamRewinds(t *testing.T) {
	to := &failing{at: "DEL"}
	s := stream{to: to, chosen: true}
	lines := []string{"MULTI", "SET a 1", "SELECT 3", "SET b 1", "SELECT 0", "DEL c", "SELECT 3", "EXEC"}
	play := func() (err error) {
		for _, line := range lines {
			var args [][]byte
			for w := range strings.FieldsSeq(line) {
				args = append(args, []byte(w))
			}
			if err = s.take(args); err != nil {
				s.rewind()
				break
			}
		}
		return err
	}
	if err := play(); !errors.Is(err, errFailing) || s.rested != 0 {
		t.Errorf("%v; it goes on in database %d", err, s.rested)
	}
	to.at = "" // it was a full disk, say
	if err := play(); err != nil || fmt.Sprint(to.got) != "[[[SET a 1] [DEL c]]]" {
		t.Errorf("%s, %v", to.got, err)
	}
	if s.rested != 3 || s.applied != 2 {
		t.Errorf("database %d, %d commands", s.rested, s.applied)
	}
}
