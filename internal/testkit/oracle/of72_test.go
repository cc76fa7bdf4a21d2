package oracle

import (
	"errors"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// TestUnlessOf72: of two differences that look alike only the known one is left out.
func TestUnlessOf72(t *testing.T) {
	parse := func(text string) wire.Reply {
		all, err := wire.Parse([]byte(text))
		if err != nil || len(all) != 1 {
			t.Fatalf("%q: %d replies, %v", text, len(all), err)
		}
		return all[0]
	}
	const lower = "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id\r\n"
	for _, c := range []struct {
		want, got string
		err       error
		known     bool
	}{
		{"+OK\r\n", lower, nil, true},
		{"*1\r\n+OK\r\n", "*1\r\n" + lower, nil, true},
		{lower, "+OK\r\n", nil, false},
		{"+OK\r\n", "-ERR other\r\n", nil, false},
		{"%1\r\n$1\r\nx\r\n*0\r\n", "_\r\n", nil, true},
		{"*1\r\n*2\r\n$1\r\nx\r\n*0\r\n", "*-1\r\n", nil, true},
		{"*1\r\n*2\r\n$1\r\nx\r\n*0\r\n", "*-1\r\n", errors.New("timeout"), false},
		{"*1\r\n*2\r\n$1\r\nx\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n", "*-1\r\n", nil, false},
		{"%1\r\n$1\r\nx\r\n*0\r\n", "%1\r\n$1\r\nx\r\n*1\r\n$1\r\na\r\n", nil, false},
		{"*-1\r\n", "*1\r\n*2\r\n$1\r\nx\r\n*0\r\n", nil, false},
	} {
		d := &Difference{Want: parse(c.want), Got: parse(c.got), GotE: c.err}
		if known := d.unlessOf72() == nil; known != c.known {
			t.Errorf("want %q, got %q: known %v", c.want, c.got, known)
		}
	}
}
