package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// recorder is a listener that remembers events.
type recorder struct{ events chan string }

func (r *recorder) Committed(c *Changes) {
	for _, ev := range c.Events {
		r.events <- ev.Name + " " + ev.Key
	}
}

func (r *recorder) Touched(*Changes, int) {}

// TestListenersAreToldInOrder: one sync makes many groups safe at once; listeners hear of them in the order in which they were logged.
func TestListenersAreToldInOrder(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	e, _, err := Open(Options{Log: log.Options{FS: fs, Dir: "data", Shards: 2, Policy: log.Always}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(true); err != nil {
			t.Error(err)
		}
	}()
	r := &recorder{events: make(chan string, 100)}
	e.Listen(r)
	e.SetWanted(uint32(command.EventString | command.EventGeneric))
	goOn := make(chan struct{})
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpSync && strings.HasSuffix(op.Path, ".seg") {
			<-goOn
		}
		return nil
	})
	var want []string
	for i := range 20 {
		line, event := []string{"set", "k", "v"}, "set k"
		if i%3 == 2 {
			line, event = []string{"del", "k"}, "del k"
		}
		c, tick, w := e.NewCtx(), new(Ticket), resp.Writer{}
		for _, a := range line {
			c.Args = append(c.Args, []byte(a))
		}
		c.Cmd, c.W = command.Lookup(c.Args[0]), &w
		e.Run(c, tick)
		want = append(want, event)
	}
	if n := len(r.events); n > 0 {
		t.Errorf("told of %d events that are not durable", n)
	}
	close(goOn)
	var got []string
	for range want {
		got = append(got, <-r.events)
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
