package resp

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
)

// benchParse parses in, given in pieces of n bytes, per iteration.
func benchParse(b *testing.B, in []byte, n int) {
	r := newTestReader(true)
	r.sc.pool.limit = poolBytes
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := in; len(rest) > 0; {
			k := copy(r.Space(), rest[:min(n, len(rest))])
			r.Advance(k)
			rest = rest[k:]
			for {
				if _, err := r.Next(); err != nil {
					if !errors.Is(err, ErrIncomplete) {
						b.Fatal(err)
					}
					break
				}
			}
			r.Settle()
		}
	}
}

func BenchmarkParse(b *testing.B) {
	set := appendRequest(nil, []byte("SET"), []byte("key:000000000012"), bytes.Repeat([]byte("x"), 64))
	b.Run("P1", func(b *testing.B) { benchParse(b, set, len(set)) })
	b.Run("P16", func(b *testing.B) { benchParse(b, bytes.Repeat(set, 16), 16*len(set)) })
	b.Run("inline", func(b *testing.B) { benchParse(b, []byte("SET key:000000000012 value\r\n"), 1<<20) })
	for _, n := range []int{1e4, 1e5, 1e6} {
		args := append([]byte("*"+strconv.Itoa(n)+"\r\n"), bytes.Repeat([]byte("$6\r\nabcdef\r\n"), n)...)
		b.Run(strconv.Itoa(n)+"arguments", func(b *testing.B) {
			benchParse(b, args, 1460)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/argument")
		})
	}
}

func BenchmarkReply(b *testing.B) {
	var w Writer
	value := bytes.Repeat([]byte("x"), 64)
	replies := map[string]func(){
		"OK":   w.OK,
		"Int":  func() { w.Int(12345) },
		"Bulk": func() { w.Bulk(value) },
	}
	for name, reply := range replies {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.Buf = w.Buf[:0]
				reply()
			}
		})
	}
}

// BenchmarkEcho measures a round trip of one and of 16 requests over loopback, client included. Neither
// side may allocate.
func BenchmarkEcho(b *testing.B) {
	for name, portable := range map[string]bool{"events": false, "goroutines": true} {
		for _, n := range []int{1, 16} {
			b.Run(name+"/P"+strconv.Itoa(n), func(b *testing.B) {
				s, err := NewServer(echoHandler{}, Config{Loops: 1, Portable: portable, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				addr, err := s.Listen("tcp", "127.0.0.1:0", ListenOptions{})
				if err != nil {
					b.Fatal(err)
				}
				go s.Serve()
				defer s.Shutdown(b.Context())
				nc, err := net.Dial("tcp", addr.String())
				if err != nil {
					b.Fatal(err)
				}
				defer nc.Close()
				in := bytes.Repeat(appendRequest(nil, []byte("SET"), []byte("key"), []byte("value")), n)
				out := make([]byte, n*len("+OK\r\n"))
				b.ReportAllocs()
				for b.Loop() {
					nc.Write(in)
					if _, err := io.ReadFull(nc, out); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
