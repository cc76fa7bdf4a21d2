package history_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/gate"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// behind makes a directory of one shard with n frames behind its snapshot set: SETs of 64 bytes, INCRs, HSETs and
// DELs over a tenth as many keys.
func behind(b *testing.B, n int) string {
	b.Helper()
	dir := filepath.ToSlash(b.TempDir()) + "/data"
	clock := &gate.Clock{MS: 1_800_000_000_000}
	e, _, err := engine.Open(engine.Options{Now: clock.Now, Log: log.Options{FS: vfs.OS(), Dir: dir, Policy: log.No}})
	if err != nil {
		b.Fatal(err)
	}
	s := gate.Over(b, e, vfs.OS(), clock)
	value := fmt.Sprintf("%064d", 0)
	for i := range n / 10 {
		s.Do(fmt.Sprintf("SET user:%d %s", i, value))
	}
	if err := e.Save(); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		k := i * 7919 % (n / 10)
		switch i % 8 {
		case 0:
			s.Do(fmt.Sprintf("INCR c:%d", k))
		case 1:
			s.Do(fmt.Sprintf("HSET h:%d f%d %d", k%1000, i%50, i))
		case 2:
			s.Do(fmt.Sprintf("SET user:%d x", k))
		default:
			s.Do(fmt.Sprintf("SET user:%d %s", k, value))
		}
	}
	s.Close()
	return dir
}

var benchFrames = flag.Int("history.frames", 1_000_000, "how many frames the benchmark of restores has behind a snapshot set")

// BenchmarkRestoreFrames makes the state so many frames behind a snapshot set: frames a second and shard. The whole of a
// restore also writes and verifies the new directory.
func BenchmarkRestoreFrames(b *testing.B) {
	n := *benchFrames
	src := history.Source{Dir: behind(b, n)}
	for _, part := range []string{"fold", "plan a time and fold", "restore and verify"} {
		b.Run(part, func(b *testing.B) {
			cpu := processorTime(b)
			for i := 0; b.Loop(); i++ {
				if part == "restore and verify" {
					to := filepath.ToSlash(b.TempDir()) + "/to"
					if _, err := history.Restore(history.RestoreOptions{From: src, To: to}); err != nil {
						b.Fatal(err)
					}
					continue
				}
				h, err := history.Open(src)
				if err != nil {
					b.Fatal(err)
				}
				p := history.Latest()
				if part != "fold" {
					p = history.AtTime(1_900_000_000_000)
				}
				built, err := h.Build(p, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				if built.Plan.Frames != uint64(n) {
					b.Fatalf("%d frames", built.Plan.Frames)
				}
				built.Release()
				h.Close()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "frames/s")
			b.ReportMetric(float64(processorTime(b)-cpu)/float64(n)/float64(b.N), "cpu-ns/frame")
		})
	}
}

// processorTime returns what the process has used: on a busy machine it says more than the clock.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
