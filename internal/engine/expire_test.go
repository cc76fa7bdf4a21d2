package engine_test

import (
	"sync/atomic"
	"testing"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/resp"
)

// TestExpirerAfterLongWait: a round that had to wait for a lock until well after the next one was due must not
// leave the expirer asleep when a nearer deadline comes.
func TestExpirerAfterLongWait(t *testing.T) {
	var ms atomic.Int64
	ms.Store(1_800_000_000_000)
	asked := make(chan struct{}, 1)
	now := func() int64 {
		select {
		case asked <- struct{}{}:
		default:
		}
		return ms.Load()
	}
	e, _, err := engine.Open(engine.Options{Now: now, Log: log.Options{FS: vfs.NewMem(), Dir: "data", Shards: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(true) }()
	e.StopExpirer()
	defer e.StartExpirer()
	release := e.HoldAll()
	for len(asked) > 0 {
		<-asked
	}
	over := make(chan struct{})
	go func() { e.ExpireRound(); close(over) }()
	<-asked // the round has begun
	ms.Add(5000)
	release()
	<-over
	w := resp.Writer{}
	c := e.NewCtx()
	c.W, c.Args = &w, [][]byte{[]byte("set"), []byte("k"), []byte("v"), []byte("px"), []byte("50")}
	c.Cmd = command.Lookup(c.Args[0])
	e.Run(c, new(engine.Ticket))
	if string(w.Buf) != "+OK\r\n" || !e.ExpirerWoken() {
		t.Errorf("SET: %q; the expirer is woken: %v", w.Buf, e.ExpirerWoken())
	}
}
