package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// Lost is an archive whose manifest is lost or damaged. Its FS shows the objects as a directory that has lost its MANIFEST: for each segment the sealed object, or the
// parts that follow each other from its first byte on, and the snapshot sets. Nothing is known of the objects but their names: who reads
// them as a directory has to check everything that is in them. They are summed up when they are opened, so what is read later are the same bytes.
type Lost struct {
	*FS
	// Notes tell what was left out: what interrupted passes leave.
	Notes []string

	store  Store
	ctx    context.Context
	sizes  map[string]int64
	sums   map[string]object
	shards map[int]map[uint64]*segment
	copies []*log.Copy
	read   func(bytes int64)
}

// OpenLost opens an archive that has no manifest, or a damaged one. read, which may be nil, is told how much has been read so far, and of how much.
// Close ends the use.
func OpenLost(ctx context.Context, s Store, read func(done, total int64)) (l *Lost, dir string, err error) {
	switch m, err := readManifest(ctx, s); {
	case err == nil && m != nil:
		return nil, "", fmt.Errorf("%s has an %s that can be read: there is nothing to make anew", s, manifestName)
	case err != nil && !errors.Is(err, ErrCorrupt):
		return nil, "", err
	}
	l = &Lost{FS: newFS(s, newCache(ctx, s)), store: s, ctx: ctx, sizes: make(map[string]int64), sums: make(map[string]object), shards: make(map[int]map[uint64]*segment)}
	total := int64(0)
	err = s.List(ctx, "", func(name string, size int64) {
		if ours.MatchString(name) && name != manifestName {
			l.sizes[name] = size
			total += size
		}
	})
	if err == nil && len(l.sizes) == 0 {
		err = fmt.Errorf("%s is no archive: it has no objects of one", s)
	}
	if err != nil {
		return nil, "", err
	}
	done := int64(0)
	l.read = func(bytes int64) {
		if done += bytes; read != nil {
			read(done, total)
		}
	}
	if err := errors.Join(l.findSegments(), l.findSets()); err != nil {
		l.Close()
		return nil, "", err
	}
	return l, l.dir, nil
}

// Close ends the use of l. REQUIRES: no file is open.
func (l *Lost) Close() {
	for _, c := range l.copies {
		c.Close()
	}
	l.FS.Close()
}

// sum reads an object and returns what a manifest says of it.
func (l *Lost) sum(name string) (object, error) {
	if o, ok := l.sums[name]; ok {
		return o, nil
	}
	size, crc, err := sumObject(l.ctx, l.store, name)
	if err == nil && size != l.sizes[name] {
		err = fmt.Errorf("%w: %s/%s is listed with %d bytes, and has %d", ErrCorrupt, l.store, name, l.sizes[name], size)
	}
	l.sums[name] = object{name, size, crc}
	l.read(size)
	return l.sums[name], err
}

// segmentObjects are the names of a segment's objects.
type segmentObjects struct {
	sealed string
	parts  []named
}

// named is a part as its name tells it.
type named struct {
	name     string
	from, to int64
}

// findSegments shows the segments.
func (l *Lost) findSegments() error {
	found := make(map[int]map[uint64]*segmentObjects)
	for name, size := range l.sizes {
		dir, file, _ := strings.Cut(name, "/")
		number, kind, _ := strings.Cut(file, ".")
		shard, err := strconv.Atoi(strings.TrimPrefix(dir, "shard-"))
		if err != nil {
			continue // of a set
		}
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %s/%s is no name of a segment", ErrCorrupt, l.store, name)
		}
		if found[shard] == nil {
			found[shard] = make(map[uint64]*segmentObjects)
		}
		s := found[shard][n]
		if s == nil {
			s = &segmentObjects{}
			found[shard][n] = s
		}
		if kind == "sealed" {
			s.sealed = name
			continue
		}
		p := named{name: name}
		if _, err := fmt.Sscanf(kind, "seg.%d-%d", &p.from, &p.to); err != nil || p.to-p.from != size {
			return fmt.Errorf("%w: %s/%s has %d bytes", ErrCorrupt, l.store, name, size)
		}
		s.parts = append(s.parts, p)
	}
	for shard, segments := range found {
		if err := l.showShard(shard, segments); err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
	}
	return nil
}

// showShard shows the segments of a shard. What is left of the oldest ones is what was being removed.
func (l *Lost) showShard(shard int, found map[uint64]*segmentObjects) error {
	numbers := slices.Sorted(maps.Keys(found))
	have := make(map[uint64]*segment)
	l.shards[shard] = have
	for i, n := range numbers {
		s, newest := found[n], i == len(numbers)-1
		chain, end := longest(s.parts)
		switch whole := chain != nil && end == lastByte(s.parts); {
		case s.sealed != "" && !newest || whole:
		case s.sealed != "":
			chain = nil
		case len(have) == 0 && !newest:
			l.Notes = append(l.Notes, fmt.Sprintf("shard %d: of segment %d, the oldest, only a part is there: left out", shard, n))
			continue
		default:
			return fmt.Errorf("%w: segment %d: bytes from %d on are in no object of %s", ErrCorrupt, n, end, l.store)
		}
		if len(have) > 0 && have[n-1] == nil {
			return fmt.Errorf("%w: segment %d is in no object of %s, and %d is: what lies before it does not lead on; it can be tried again when the objects of older segments "+
				"have been put elsewhere", ErrCorrupt, n-1, l.store, n)
		}
		if newest && chain != nil {
			s.sealed = "" // it was being sent: the parts are the archive's
		}
		g, err := l.show(shard, n, s.sealed, chain, newest)
		if err != nil {
			return err
		}
		have[n] = g
	}
	return nil
}

// show shows a segment: the sealed object if there is one. The newest segment of a log is never sealed, so it is shown raw.
func (l *Lost) show(shard int, n uint64, sealed string, chain []named, newest bool) (*segment, error) {
	g := &segment{Number: n}
	file := fmt.Sprintf("shard-%02d/%020d", shard, n)
	if sealed == "" {
		for _, p := range chain {
			o, err := l.sum(p.name)
			if err != nil {
				return nil, err
			}
			g.Parts = append(g.Parts, part{object: o, From: p.from})
		}
		l.add(file+".seg", &entry{objects: g.objects(), parts: true, size: size(g.objects())})
		if newest {
			return g, l.checkEnd(shard, n)
		}
		return g, nil
	}
	o, err := l.sum(sealed)
	if err != nil {
		return nil, err
	}
	g.Sealed = &o
	e := &entry{objects: g.objects(), size: o.Size}
	if !newest {
		l.add(file+".sealed", e)
		return g, nil
	}
	alone := newFS(l.store, l.cache)
	alone.add(file+".sealed", e)
	c, err := log.OpenSegment(alone, alone.dir, shard, n)
	if err != nil {
		return nil, err
	}
	l.copies = append(l.copies, c)
	l.add(file+".seg", &entry{raw: c, size: c.Size()})
	return g, nil
}

// checkEnd reads the newest segment, which has to end with a group: in an archive no tail is torn, as it may be in a directory.
func (l *Lost) checkEnd(shard int, n uint64) error {
	c, err := log.OpenSegment(l, l.dir, shard, n)
	if err != nil {
		return err
	}
	defer c.Close()
	st := log.NewStream(c, fmt.Sprintf("%s/shard-%02d/%020d.seg", l.dir, shard, n), shard, c.Start(), log.HeaderBytes, c.Size())
	defer st.Close()
	whole := true
	for {
		f, err := st.Next()
		switch {
		case err == nil:
			whole = f.GroupLast
			continue
		case !errors.Is(err, io.EOF):
			return err
		case !whole:
			return fmt.Errorf("%w: segment %d ends within a group", ErrCorrupt, n)
		}
		return nil
	}
}

// longest returns parts that follow each other from byte 0 as far as there are any, and where they end. Parts that were replaced by one that
// has them too may still be there.
func longest(parts []named) (chain []named, end int64) {
	slices.SortFunc(parts, func(a, b named) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	best := make(map[int64][]named) // by first byte
	for _, p := range slices.Backward(parts) {
		c := append([]named{p}, best[p.to]...)
		old := best[p.from]
		if further := cmp.Compare(lastByte(c), lastByte(old)); further > 0 || further == 0 && len(c) < len(old) {
			best[p.from] = c
		}
	}
	return best[0], lastByte(best[0])
}

// lastByte is where the last of parts ends.
func lastByte(parts []named) (end int64) {
	for _, p := range parts {
		end = max(end, p.to)
	}
	return end
}

// findSets shows the snapshot sets whose objects are all there. Their SET is written last, and removed last.
func (l *Lost) findSets() error {
	described := newFS(l.store, l.cache)
	sets := make(map[string][]string) // by id: the objects
	for name := range l.sizes {
		id := setOf(name)
		if id == "" {
			continue
		}
		sets[id] = append(sets[id], name)
		if path.Base(name) == snapshot.SetFile {
			if err := l.showIn(described, name); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sets)) {
		if !l.complete(described, id) {
			l.Notes = append(l.Notes, fmt.Sprintf("snapshot set %s is there in part only: left out", id))
			continue
		}
		for _, name := range sets[id] {
			if err := l.showIn(l.FS, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// showIn shows an object as a file.
func (l *Lost) showIn(f *FS, name string) error {
	o, err := l.sum(name)
	if err != nil {
		return err
	}
	f.add(name, &entry{objects: []object{o}, size: o.Size})
	return nil
}

// complete reports whether a set's objects are all there. One whose SET is damaged counts as complete: it is refused when it is read.
func (l *Lost) complete(described *FS, id string) bool {
	if _, there := l.sizes[setObject(id, snapshot.SetFile)]; !there {
		return false
	}
	set, err := snapshot.ReadSet(described, l.dir, id)
	for i := range set.Shards {
		if _, there := l.sizes[shardObject(id, i)]; err == nil && !there {
			return false
		}
	}
	return true
}

// setOf is the id of the set that an object belongs to, "" if none.
func setOf(name string) string {
	if rest, ok := strings.CutPrefix(name, "snapshots/"); ok {
		return path.Dir(rest)
	}
	return ""
}
