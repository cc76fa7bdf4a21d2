package resp

import (
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

// echoHandler answers PING, ECHO, SET and GET over one map per connection: little more than the loops themselves.
type echoHandler struct{}

type echoSession struct{ value []byte }

func (echoHandler) Opened(c *Conn)      { c.Data = &echoSession{} }
func (echoHandler) EndTurn([]*Conn)     {}
func (echoHandler) Closed(*Conn, error) {}
func (echoHandler) Command(c *Conn, args [][]byte) {
	s := c.Data.(*echoSession)
	switch name := args[0]; {
	case len(name) == 4 && name[0]|0x20 == 'p':
		c.W.Simple("PONG")
	case len(name) == 3 && name[0]|0x20 == 's' && len(args) == 3:
		s.value = append(s.value[:0], args[2]...)
		c.W.OK()
	case len(name) == 3 && name[0]|0x20 == 'g':
		c.W.Bulk(s.value)
	case len(args) == 2:
		c.W.Bulk(args[1])
	default:
		c.W.Error("ERR unknown command")
	}
}

// TestServeForBenchmark is a server for redis-benchmark when KEVY_RESP_ADDR is set; KEVY_RESP_LOOPS is
// the number of loops. The figures in the package comment come from it.
func TestServeForBenchmark(t *testing.T) {
	addr := os.Getenv("KEVY_RESP_ADDR")
	if addr == "" {
		t.Skip("KEVY_RESP_ADDR is not set")
	}
	loops, _ := strconv.Atoi(os.Getenv("KEVY_RESP_LOOPS"))
	debug.SetGCPercent(400)
	s, err := NewServer(echoHandler{}, Config{Loops: loops, Logger: slog.New(slog.DiscardHandler), Portable: os.Getenv("KEVY_RESP_PORTABLE") != ""})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Listen("tcp", addr, ListenOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Log(s.Serve())
}
