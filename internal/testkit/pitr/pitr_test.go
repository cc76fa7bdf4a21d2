package pitr

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/testkit/proc"
	"github.com/kevydb/kevy/internal/testkit/wire"
	"github.com/kevydb/kevy/log"
)

var (
	timeFlag   = flag.Duration("pitr.time", 8*time.Second, "how long to write")
	pointsFlag = flag.Int("pitr.points", 40, "how many points to record")
	seedFlag   = flag.Uint64("pitr.seed", 0, "seed of the workload (0: a new one)")
)

func TestMain(m *testing.M) { os.Exit(proc.Main(m)) }

const (
	shards  = 4
	workers = 4
)

// record is a point and what was there.
type record struct {
	cursors []log.Cursor
	ms      int64 // the server's clock
	digest  string
	timed   bool // nothing was written behind it before the millisecond had passed
}

type run struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	srv     *proc.Server
	conn    *wire.Conn
	crew    *crew
	n       int
	records []record
	events  map[string]int
}

func TestExact(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	t.Logf("seed %d (repeat with -pitr.seed %d)", seed, seed)
	r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 7)), dir: filepath.Join(t.TempDir(), "data"), events: map[string]int{}}
	r.start()
	end := time.Now().Add(*timeFlag)
	pause := *timeFlag / time.Duration(*pointsFlag)
	for !t.Failed() && (time.Now().Before(end) || len(r.records) < *pointsFlag) {
		time.Sleep(time.Duration(r.rng.Int64N(int64(2 * pause)))) // the moments are random
		r.record(r.rng.IntN(2) == 0)
		r.event()
	}
	r.crew.stop()
	r.conn.Close()
	if err := r.srv.Stop(); err != nil {
		t.Fatal(err)
	}
	wrote := time.Since(end) + *timeFlag
	timed := r.checkAll()
	r.checkArchive()
	t.Logf("%d points, %d by time too; events %v; written for %s, checked for %s", len(r.records), timed, r.events, wrote, time.Since(end)+*timeFlag-wrote)
}

func (r *run) start() {
	r.t.Helper()
	srv, err := proc.StartKevy(r.dir, "--shards", strconv.Itoa(shards), "--log-keep-bytes", "100gb", "--log-segment-size", "1mb", "--log-seal-after", "0",
		"--maxmemory-policy", "allkeys-random", "--archive-url", r.archiveURL(), "--archive-interval", "1s")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { srv.KillAndCheck(r.t) })
	if r.conn, err = srv.Dial(); err != nil {
		r.t.Fatal(err)
	}
	r.srv = srv
	r.crew = hire(srv, r.rng, workers, &r.n)
}

// archiveURL is where the server archives to.
func (r *run) archiveURL() string { return "file://" + filepath.ToSlash(r.dir) + "-archive" }

// checkArchive restores to all records from the archive alone.
func (r *run) checkArchive() {
	r.t.Helper()
	store, err := archive.OpenStore(r.archiveURL())
	if err != nil {
		r.t.Fatal(err)
	}
	fsys, dir, err := archive.OpenFS(r.t.Context(), store)
	if err != nil {
		r.t.Fatal(err)
	}
	defer fsys.Close()
	src := history.Source{FS: fsys, Dir: dir}
	h, err := history.Open(src)
	if err != nil {
		r.t.Fatal(err)
	}
	defer h.Close()
	for i := range r.records {
		r.check(h, i)
	}
	v, err := history.Verify(src, history.VerifyOptions{Deep: true})
	if err != nil || len(v.Damage) > 0 {
		r.t.Errorf("verify of the archive: %v, %+v", err, v)
	}
	r.t.Logf("the archive: %d segments, %d frames, %d sets", v.Segments, v.Frames, len(v.Sets))
}

func (r *run) must(args ...string) *wire.Reply {
	r.t.Helper()
	reply, err := r.conn.Must(args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return &reply
}

// now returns the server's clock in unix ms.
func (r *run) now() int64 {
	r.t.Helper()
	v := r.must("TIME")
	s, _ := strconv.ParseInt(v.Elems[0].Text(), 10, 64)
	us, _ := strconv.ParseInt(v.Elems[1].Text(), 10, 64)
	return s*1000 + us/1000
}

// record takes the cursors of all shards, the clock and the digest at one instant. With timed, nobody writes before the
// millisecond has passed, so that its point in time is the same state.
func (r *run) record(timed bool) {
	r.t.Helper()
	if timed {
		r.crew.turn.Lock()
		defer r.crew.turn.Unlock()
	}
	const life = 1_000_000_000
	r.must("MULTI")
	r.must("SET", "probe", "x", "PX", strconv.Itoa(life)) // its deadline tells the clock of the transaction
	r.must("PEXPIRETIME", "probe")
	for i := range shards {
		r.must("FEED.TAIL", strconv.Itoa(i))
	}
	r.must("PREFIX.DIGEST", "")
	reply := r.must("EXEC").Elems[1:]
	deadline, _ := reply[0].Int()
	rec := record{ms: deadline - life, timed: timed, digest: reply[shards+1].Elems[1].Text()}
	for _, tail := range reply[1 : shards+1] {
		gen, _ := tail.Elems[0].Int()
		off, _ := tail.Elems[1].Int()
		rec.cursors = append(rec.cursors, log.Cursor{Generation: uint64(gen), Offset: uint64(off)})
	}
	for timed && r.now() <= rec.ms {
		continue // a millisecond at most
	}
	for i := 0; rec.timed && i < shards; i++ {
		rec.timed = r.quiet(i, &rec)
	}
	r.records = append(r.records, rec)
}

// quiet reports whether no frame behind a record is of its millisecond: the expirer may have written one.
func (r *run) quiet(shard int, rec *record) bool {
	r.t.Helper()
	c := rec.cursors[shard]
	frames := r.must("FEED.READ", strconv.Itoa(shard), fmt.Sprint(c.Generation), fmt.Sprint(c.Offset), "COUNT", "1", "WITHMETA").Elems[2].Elems
	if len(frames) == 0 {
		return true
	}
	at, ok := frames[0].Elems[2].Field("time")
	ms, _ := at.Int()
	if !ok {
		r.t.Fatalf("no time in %s", frames[0].String())
	}
	return ms > rec.ms
}

// event does something to the server.
func (r *run) event() {
	r.t.Helper()
	name := "nothing"
	switch r.rng.IntN(9) {
	case 0:
		name = "snapshot"
		_, _ = r.conn.Do("BGSAVE") // one may be under way
	case 1:
		name = "clean restart"
		r.crew.stop()
		r.conn.Close()
		if err := r.srv.Stop(); err != nil {
			r.t.Fatal(err)
		}
		r.start()
	case 2:
		name = "kill"
		if err := r.srv.Kill(); err != nil {
			r.t.Fatal(err)
		}
		r.crew.stop()
		r.conn.Close()
		r.start()
	case 3:
		name = "eviction"
		_, rest, _ := strings.Cut(r.must("INFO", "memory").Text(), "used_memory:")
		text, _, _ := strings.Cut(rest, "\r\n")
		used, err := strconv.Atoi(text)
		if err != nil {
			r.t.Fatal(err)
		}
		r.must("CONFIG", "SET", "maxmemory", strconv.Itoa(used-20_000))
		time.Sleep(time.Duration(r.rng.IntN(100)) * time.Millisecond) // writes evict meanwhile
		r.must("CONFIG", "SET", "maxmemory", "0")
	case 4:
		name = "restore while in use"
		h, err := history.Open(history.Source{Dir: filepath.ToSlash(r.dir)})
		if err != nil {
			r.t.Fatal(err)
		}
		r.check(h, r.rng.IntN(len(r.records)))
		h.Close()
	}
	r.events[name]++
}

// check restores to one record.
func (r *run) check(h *history.History, i int) {
	r.t.Helper()
	rec := &r.records[i]
	points := []history.Point{history.At(rec.cursors...)}
	if rec.timed {
		points = append(points, history.AtTime(rec.ms))
	}
	for _, p := range points {
		b, err := h.Build(p, nil, nil)
		if err != nil {
			r.t.Errorf("record %d, %s: %v", i, p, err)
			continue
		}
		// The server leaves out of its digest what is due at its clock.
		if keys, sum := b.Digest(nil, rec.ms); sum != rec.digest {
			r.t.Errorf("record %d, %s, from set %q: %d keys with digest %s, was %s", i, p, b.Plan.Set, keys, sum, rec.digest)
		}
		if len(b.Found) > 0 {
			r.t.Errorf("record %d, %s: %v", i, p, b.Found)
		}
		b.Release()
	}
}

// checkAll restores to all records, and two of them into directories that servers are started on.
func (r *run) checkAll() (timed int) {
	h, err := history.Open(history.Source{Dir: filepath.ToSlash(r.dir)})
	if err != nil {
		r.t.Fatal(err)
	}
	defer h.Close()
	for i := range r.records {
		r.check(h, i)
		if r.records[i].timed {
			timed++
		}
	}
	v, err := history.Verify(history.Source{Dir: filepath.ToSlash(r.dir)}, history.VerifyOptions{Deep: true})
	if err != nil || len(v.Damage) > 0 {
		r.t.Errorf("verify: %v, %+v", err, v)
	}
	causes, frames := map[string]int{}, uint64(0)
	for _, s := range h.List().Shards {
		for _, g := range s.Generations {
			causes[g.CauseName]++
			frames += g.End
		}
	}
	r.t.Logf("%d frames, generations by cause %v", frames, causes)
	for range 2 {
		rec := &r.records[r.rng.IntN(len(r.records))]
		r.serve(rec)
	}
	return timed
}

// serve restores to a record and asks a server.
func (r *run) serve(rec *record) {
	to := filepath.Join(r.t.TempDir(), "restored")
	res, err := history.Restore(history.RestoreOptions{
		From: history.Source{Dir: filepath.ToSlash(r.dir)}, To: filepath.ToSlash(to), Point: history.At(rec.cursors...), KeepExpired: true,
	})
	if err != nil {
		r.t.Error(err)
		return
	}
	srv, err := proc.StartKevy(to)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer srv.KillAndCheck(r.t)
	c, err := srv.Dial()
	if err != nil {
		r.t.Error(err)
		return
	}
	defer c.Close()
	reply, err := c.Must("PREFIX.DIGEST", "")
	if err != nil || reply.Elems[1].Text() != res.Digest {
		r.t.Errorf("a server on the restored directory has %s, restored was %s (%v)", reply.Text(), res.Digest, err)
	}
}
