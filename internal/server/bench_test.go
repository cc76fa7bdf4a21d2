package server

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/wire"
)

// BenchmarkPipeline sends batches of 16 commands over TCP and reads the replies: one loop, two
// connections at a time. Time is per command, the client's part included.
func BenchmarkPipeline(b *testing.B) {
	for _, name := range []string{"GET", "SET", "PING", "EVAL"} {
		b.Run(name, func(b *testing.B) { benchmarkPipeline(b, name) })
	}
}

func benchmarkPipeline(b *testing.B, name string) {
	const batch, keys = 16, 1 << 14
	s := startBench(b)
	nc, err := net.Dial("tcp", s)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close() //nolint:errcheck // the benchmark is over
	value := "0123456789012345678901234567890123456789012345678901234567890123"
	one := func(verb string, key int) [][]byte {
		switch verb {
		case "PING":
			return wire.Bytes("PING")
		case "GET":
			return wire.Bytes("GET", fmt.Sprintf("key:%08d", key))
		case "EVAL":
			return wire.Bytes("EVAL", "return redis.call('GET', KEYS[1])", "1", fmt.Sprintf("key:%08d", key))
		}
		return wire.Bytes("SET", fmt.Sprintf("key:%08d", key), value)
	}
	requests := make([][]byte, keys/batch)
	for i := range requests {
		for j := range batch {
			requests[i] = wire.AppendCommand(requests[i], one(name, i*batch+j))
		}
	}
	size := map[string]int{"PING": 7, "GET": len(value) + 7, "EVAL": len(value) + 7, "SET": 5}[name] * batch
	reply := make([]byte, max(size, 5*batch))
	for i := range requests {
		var fill []byte
		for j := range batch {
			fill = wire.AppendCommand(fill, one("SET", i*batch+j))
		}
		exchange(b, nc, fill, reply[:5*batch])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i%batch == 0 {
			exchange(b, nc, requests[i/batch%len(requests)], reply[:size])
		}
		i++
	}
}

func exchange(b *testing.B, nc net.Conn, request, reply []byte) {
	if _, err := nc.Write(request); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(nc, reply); err != nil {
		b.Fatal(err)
	}
}
