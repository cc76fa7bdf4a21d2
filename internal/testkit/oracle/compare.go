package oracle

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// tracker knows which commands a connection has queued, so that the elements of EXEC's reply are
// compared by their own rules.
type tracker struct {
	compare func(cmd Command, want, got *wire.Reply) bool // nil: same
	multi   bool
	queue   []Command
}

// same compares the two replies of cmd and follows the connection's state by the reference's reply.
func (t *tracker) same(cmd Command, want, got *wire.Reply) bool {
	queue, compare := t.queue, t.compare
	if compare == nil {
		compare = same
	}
	t.follow(cmd, want)
	if cmd.Name() == "EXEC" && want.IsAggregate() && got.IsAggregate() {
		return sameExec(queue, want, got, compare)
	}
	return compare(cmd, want, got)
}

func (t *tracker) follow(cmd Command, r *wire.Reply) {
	switch cmd.Name() {
	case "MULTI":
		t.multi = t.multi || !r.IsError()
	case "EXEC", "DISCARD", "RESET":
		*t = tracker{compare: t.compare}
	default:
		if t.multi && r.Text() == "QUEUED" {
			t.queue = append(t.queue, cmd)
		}
	}
}

func sameExec(queue []Command, want, got *wire.Reply, compare func(Command, *wire.Reply, *wire.Reply) bool) bool {
	if len(want.Elems) != len(got.Elems) || len(want.Elems) != len(queue) {
		return false
	}
	for i, cmd := range queue {
		if !compare(cmd, &want.Elems[i], &got.Elems[i]) {
			return false
		}
	}
	return true
}

// same compares two replies byte for byte, except where they cannot be equal.
func same(cmd Command, want, got *wire.Reply) bool {
	if bytes.Equal(want.Raw, got.Raw) {
		return true
	}
	if want.Kind != got.Kind || want.Null != got.Null {
		return got.Null && want.Kind == ':' && cmd.Name() == "MEMORY" // Redis tells of what has expired until it is removed
	}
	if want.IsError() {
		return wordsOf72(cmd, want.Text()) == got.Text()
	}
	switch cmd.Name() {
	case "TTL", "EXPIRETIME":
		return near(want, got, 1)
	case "PTTL", "PEXPIRETIME":
		return near(want, got, 1000)
	case "KEYS", "SMEMBERS", "SINTER", "SUNION", "SDIFF", "HKEYS", "HVALS", "SPOP", "SRANDMEMBER", "PUBSUB":
		return sameSet(want, got)
	case "SORT", "SORT_RO": // without STORE Redis compares what is before a NUL
		if inSetOrder(cmd) && slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.EqualFold(a, "LIMIT") }) {
			return len(want.Elems) == len(got.Elems)
		}
		return (bytes.IndexByte(want.Raw, 0) >= 0 || inSetOrder(cmd)) && sameSet(want, got)
	case "HGETALL":
		return samePairs(want, got)
	case "ZRANDMEMBER", "HRANDFIELD":
		return samePairs(want, got) || sameSet(want, got)
	case "HSCAN", "SSCAN", "ZSCAN": // in a transaction
		return len(want.Elems) == 2 && len(got.Elems) == 2
	case "XPENDING":
		return samePending(want, got)
	case "XINFO":
		return sameInfo(want, got)
	case "DUMP": // another encoding of the same value; restoring each other's is TestOracleDump of internal/command
		return true
	case "FUNCTION": // the order of functions in a library
		return cmd.Sub() == "LIST" && slices.Equal(sortedLines(want), sortedLines(got))
	case "MEMORY":
		return cmd.Sub() == "USAGE"
	case "DBSIZE": // Redis counts what has expired until it is removed
		w, _ := want.Int()
		g, _ := got.Int()
		return w > g
	case "SCAN": // the set is compared by full scans only
		return cmd.Args[1] != "0" || len(want.Elems) != 2 || len(got.Elems) == 2
	case "RANDOMKEY", "INFO", "TIME", "LASTSAVE":
		return true
	case "COMMAND":
		return !slices.Contains([]string{"GETKEYS", "GETKEYSANDFLAGS"}, cmd.Sub())
	case "HELLO":
		return sameHello(want, got)
	case "OBJECT":
		// Redis's encoding and sharing of a string depend on how the value came about, kevy's on the
		// value alone; the scripts compare the plain cases. The help is 7.2's.
		return slices.Contains([]string{"IDLETIME", "ENCODING", "REFCOUNT", "HELP"}, cmd.Sub())
	case "CLIENT":
		return slices.Contains([]string{"ID", "LIST"}, cmd.Sub()) || cmd.Sub() == "INFO" && sameInfoLine(want.Text(), got.Text())
	}
	return false
}

// inSetOrder reports whether SORT is told not to sort: any key may hold a set, whose own order is not the same. That the
// order of lists and sorted sets is, testdata/sort.txt shows.
func inSetOrder(cmd Command) bool {
	by := slices.IndexFunc(cmd.Args, func(a string) bool { return strings.EqualFold(a, "BY") })
	return by > 1 && by+1 < len(cmd.Args) && !strings.Contains(cmd.Args[by+1], "*")
}

// wordsOf72 turns an error of 7.0 into that of 7.2.
func wordsOf72(cmd Command, text string) string {
	if cmd.Name() == "XREADGROUP" {
		text = strings.ReplaceAll(text, "an ID or '$' must", "an ID or '>' must")
	}
	return strings.ReplaceAll(text, "Unbalanced XREAD list", "Unbalanced '"+strings.ToLower(cmd.Name())+"' list")
}

// near reports whether both are times left, or moments, within the tolerance. -1, -2 and short
// times must be equal.
func near(want, got *wire.Reply, tolerance int64) bool {
	w, ok1 := want.Int()
	g, ok2 := got.Int()
	return ok1 && ok2 && w > 0 && g > 0 && w-g <= tolerance && g-w <= tolerance
}

func sameSet(want, got *wire.Reply) bool {
	return slices.Equal(sortedRaws(want), sortedRaws(got))
}

// samePairs compares a map, or an array of names and values in turn, whatever its order.
func samePairs(want, got *wire.Reply) bool {
	return slices.Equal(sortedPairs(want), sortedPairs(got))
}

func sortedPairs(r *wire.Reply) []string {
	var s []string
	for i := 0; i+1 < len(r.Elems); i += 2 {
		s = append(s, string(r.Elems[i].Raw)+string(r.Elems[i+1].Raw))
	}
	slices.Sort(s)
	return s
}

// samePending compares entries of XPENDING but for how long they have been pending.
func samePending(want, got *wire.Reply) bool {
	if len(want.Elems) != len(got.Elems) {
		return false
	}
	for i := range want.Elems {
		w, g := &want.Elems[i], &got.Elems[i]
		if len(w.Elems) != 4 || len(g.Elems) != 4 {
			if !bytes.Equal(w.Raw, g.Raw) {
				return false
			}
			continue
		}
		for _, j := range []int{0, 1, 3} {
			if !bytes.Equal(w.Elems[j].Raw, g.Elems[j].Raw) {
				return false
			}
		}
	}
	return true
}

// sameInfo compares the fields of XINFO that both have, but for times and Redis's radix tree.
func sameInfo(want, got *wire.Reply) bool {
	if !isRecord(want) || !isRecord(got) {
		return len(want.Elems) == len(got.Elems) && slices.EqualFunc(want.Elems, got.Elems, func(w, g wire.Reply) bool {
			return bytes.Equal(w.Raw, g.Raw) || isRecord(&w) && isRecord(&g) && sameInfo(&w, &g)
		})
	}
	for i := 0; i+1 < len(want.Elems); i += 2 {
		switch name := want.Elems[i].Text(); name {
		case "idle", "inactive", "radix-tree-keys", "radix-tree-nodes":
		default:
			if g, ok := got.Field(name); !ok || !bytes.Equal(want.Elems[i+1].Raw, g.Raw) {
				return false
			}
		}
	}
	return true
}

// isRecord tells names with values from a list of such.
func isRecord(r *wire.Reply) bool {
	return r.IsAggregate() && len(r.Elems) > 1 && !r.Elems[0].IsAggregate()
}

// sortedLines are all scalars of a reply, however they are nested.
func sortedLines(r *wire.Reply) []string {
	if !r.IsAggregate() {
		return []string{string(r.Raw)}
	}
	var s []string
	for i := range r.Elems {
		s = append(s, sortedLines(&r.Elems[i])...)
	}
	slices.Sort(s)
	return s
}

func sortedRaws(r *wire.Reply) []string { return sortedAs(r.Elems) }

func sortedAs(rs []wire.Reply) []string {
	s := make([]string, len(rs))
	for i := range rs {
		s[i] = string(rs[i].Raw)
	}
	slices.Sort(s)
	return s
}

// sameInfoLine compares what CLIENT INFO tells of the connection's state.
func sameInfoLine(want, got string) bool {
	for _, name := range []string{"name", "flags", "db", "sub", "psub", "ssub", "multi", "user", "resp", "cmd"} {
		if infoField(want, name) != infoField(got, name) {
			return false
		}
	}
	return true
}

func infoField(line, name string) string {
	for word := range strings.FieldsSeq(line) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}

// sameHello wants the same fields in the same order; server, version and id have their own values.
func sameHello(want, got *wire.Reply) bool {
	if len(want.Elems) != len(got.Elems) {
		return false
	}
	for i := 0; i+1 < len(want.Elems); i += 2 {
		if !bytes.Equal(want.Elems[i].Raw, got.Elems[i].Raw) {
			return false
		}
		switch want.Elems[i].Text() {
		case "server", "version", "id":
			if want.Elems[i+1].Kind != got.Elems[i+1].Kind {
				return false
			}
		default:
			if !bytes.Equal(want.Elems[i+1].Raw, got.Elems[i+1].Raw) {
				return false
			}
		}
	}
	return true
}
