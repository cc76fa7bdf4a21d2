package state

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/kevydb/kevy/log/effect"
	"golang.org/x/sys/unix"
)

func cpuNow() int64 {
	var ts unix.Timespec
	unix.ClockGettime(3, &ts)
	return ts.Nano()
}

func measure(name string, batches, per int, f func()) {
	var all []float64
	for range batches {
		t := cpuNow()
		for range per {
			f()
		}
		all = append(all, float64(cpuNow()-t)/float64(per))
	}
	slices.Sort(all)
	fmt.Printf("%-28s min %7.1f  p25 %7.1f  median %7.1f\n", name, all[0], all[len(all)/4], all[len(all)/2])
}

func TestCPU(t *testing.T) {
	runtime.LockOSThread()
	n := uint64(1000000)
	if s := os.Getenv("KEYS"); s != "" {
		v, _ := strconv.Atoi(s)
		n = uint64(v)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	ks := New(42)
	e, key := benchSet(64)
	i := uint64(0)
	measure("load random", int(n/10000), 10000, func() { benchKey(key, scatter(i, n)); i++; ks.Fold(e) })
	fmt.Printf("spans/key %.1f\n", float64(ks.Memory().Spans)/float64(n))
	sum := 0
	big := make([]byte, 1<<30)
	for i := 0; i < len(big); i += 4096 { big[i] = 1 }
	unix.Madvise(big, unix.MADV_HUGEPAGE)
	x := uint64(1)
	measure("dependent random read 1GB", 60, 20000, func() { x = x*6364136223846793005 + uint64(big[x>>34]); sum += int(x) })
	big = nil
	measure("gen only", 60, 20000, func() { sum += int(benchKey(key, rnd.Uint64N(n))[3]) })
	measure("get", 60, 20000, func() { en, _ := ks.Lookup(benchKey(key, rnd.Uint64N(n))); sum += int(en.Value()[0]) })
	measure("miss", 60, 20000, func() { _, ok := ks.Lookup(benchKey(key, n+rnd.Uint64N(n))); if ok { sum++ } })
	measure("set", 60, 20000, func() { benchKey(key, rnd.Uint64N(n)); ks.Fold(e) })
	del := &effect.Effect{Op: effect.Del, Args: [][]byte{key}}
	measure("del+insert", 60, 20000, func() { benchKey(key, rnd.Uint64N(n)); ks.Fold(del); ks.Fold(e) })
	v := make([]byte, 200)
	measure("set other size", 60, 20000, func() { benchKey(key, rnd.Uint64N(n)); e.Args[1] = v[:40+rnd.IntN(160)]; ks.Fold(e) })
	msb := []byte("1700000000000")
	px := &effect.Effect{Op: effect.Set, Args: [][]byte{key, v[:64], []byte("PXAT"), msb}}
	measure("set pxat", 60, 20000, func() { benchKey(key, rnd.Uint64N(n)); benchKey16(msb, 1700000000000+rnd.Uint64N(3600000)); ks.Fold(px) })
	pe := &effect.Effect{Op: effect.PExpireAt, Args: [][]byte{key, msb}}
	measure("pexpireat", 60, 20000, func() { benchKey(key, rnd.Uint64N(n)); benchKey16(msb, 1700000000000+rnd.Uint64N(3600000)); ks.Fold(pe) })
	vw := ks.View()
	measure("set under view", 20, 5000, func() { benchKey(key, rnd.Uint64N(n)); ks.Fold(e) })
	vw.Close()
	ks.Release()
	ks = New(42)
	ks.BeginBulk()
	i = 0
	measure("bulk load", int(n/10000), 10000, func() { benchKey(key, scatter(i, n)); i++; ks.Fold(e) })
	tt := cpuNow()
	ks.EndBulk()
	fmt.Printf("EndBulk %.0f ms cpu\n", float64(cpuNow()-tt)/1e6)
	ks.Release()
}

func benchKey16(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}
