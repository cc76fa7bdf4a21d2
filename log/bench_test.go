package log

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log/effect"
)

func benchDir(b *testing.B, policy Policy) *Dir {
	b.Helper()
	d, _ := mustOpen(b, Options{FS: vfs.OS(), Dir: b.TempDir() + "/data", Policy: policy})
	return d
}

var benchEffect = &effect.Effect{Op: effect.Set, Args: [][]byte{[]byte("key:0000000001"), bytes.Repeat([]byte("x"), 64)}}

// BenchmarkFrameAppend is the request path without the write: admission, encoding, checksum.
func BenchmarkFrameAppend(b *testing.B) {
	d, _ := mustOpen(b, testOptions(vfs.NewMem()))
	l := d.Log(0)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Reserve(200); err != nil {
			b.Fatal(err)
		}
		l.Begin(1, ByClient, 0, 0)
		l.Append(benchEffect)
		l.End()
		if len(l.enc.Buf) > 256<<10 {
			l.mu.Lock()
			l.enc.Buf, l.groups = l.enc.Buf[:0], l.groups[:0]
			l.mu.Unlock()
		}
	}
}

// BenchmarkAppendFlush16 is 16 frames a flush into a real file, as a pipeline does it.
func BenchmarkAppendFlush16(b *testing.B) {
	d := benchDir(b, No)
	l := d.Log(0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := l.Reserve(200); err != nil {
			b.Fatal(err)
		}
		l.Begin(1, ByClient, 0, 0)
		l.Append(benchEffect)
		l.End()
		if n++; n%16 == 0 {
			if err := l.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkGroupCommit waits for durability of every group, in many goroutines.
func BenchmarkGroupCommit(b *testing.B) {
	d := benchDir(b, Always)
	l := d.Log(0)
	var shard sync.Mutex
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		done := make(chan struct{}, 1)
		fire := func() { done <- struct{}{} }
		for pb.Next() {
			shard.Lock()
			if err := l.Reserve(200); err != nil {
				b.Error(err)
			}
			l.Begin(1, ByClient, 0, 0)
			l.Append(benchEffect)
			next := l.End()
			shard.Unlock()
			l.OnDurable(next, fire)
			l.SyncThrough(next)
			<-done
		}
	})
}

func filledLog(b *testing.B, frames int) (*Dir, Cursor) {
	b.Helper()
	d := benchDir(b, No)
	l := d.Log(0)
	c := l.Tail()
	for i := range frames {
		_ = l.Reserve(200)
		l.Begin(1, ByClient, 0, 0)
		l.Append(benchEffect)
		l.End()
		if i%256 == 255 {
			if err := l.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := l.Flush(); err != nil {
		b.Fatal(err)
	}
	return d, c
}

// BenchmarkReader reads a log of many segments once per iteration.
func BenchmarkReader(b *testing.B) {
	const frames = 1_000_000
	d, c := filledLog(b, frames)
	l := d.Log(0)
	bytes := l.Stats().Bytes
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		r, err := l.NewReader(c, ReaderOptions{})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
		r.Close()
		if n != frames {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(frames)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
}

// BenchmarkReadTail makes a reader at the tail, as a FEED.READ that polls does.
func BenchmarkReadTail(b *testing.B) {
	d, c := filledLog(b, 100_000)
	l := d.Log(0)
	for _, back := range []uint64{0, 1, 50_000} {
		b.Run("back="+strconv.FormatUint(back, 10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.NewReader(Cursor{c.Generation, 100_000 - back}, ReaderOptions{Feed: true})
				if err != nil {
					b.Fatal(err)
				}
				for range 1 {
					if _, err := r.Next(); err != nil && err != io.EOF {
						b.Fatal(err)
					}
				}
				r.Close()
			}
		})
	}
}

// BenchmarkRecoveryScan opens a directory that was not closed cleanly.
func BenchmarkRecoveryScan(b *testing.B) {
	const frames = 400_000
	d, _ := filledLog(b, frames)
	o := d.o
	if err := d.Close(true); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d, _, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := d.Close(true); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(frames)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
}
