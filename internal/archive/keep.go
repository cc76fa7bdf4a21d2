package archive

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/snapshot"
)

// retain removes from the manifest the sets and the log that nobody asked to keep. The sets are chosen as those of a directory
// are (snapshot.Plan); the log stays from the oldest set on that stays, so every set that stays leads to all points behind it.
func (a *Archiver) retain(ctx context.Context) error {
	if a.o.KeepTime == 0 && a.o.KeepSets == 0 || len(a.man.Sets) == 0 {
		return nil
	}
	var candidates []snapshot.Candidate
	for i, s := range a.man.Sets {
		c := snapshot.Candidate{InUse: i == len(a.man.Sets)-1, Reachable: true}
		c.ID, c.TimeMS = s.ID, s.TimeMS
		candidates = append(candidates, c)
	}
	now := a.src.Now()
	plan, _, short := snapshot.Plan(candidates, snapshot.Keep{Count: a.o.KeepSets, LogTime: a.o.KeepTime}, now)
	m := a.man.clone()
	m.Sets = nil
	for i, d := range plan {
		if d.Keep {
			m.Sets = append(m.Sets, a.man.Sets[i])
		} else {
			m.retire(now, a.man.Sets[i].Files...)
		}
	}
	if !short {
		m.dropBefore(m.Sets[0].Cursors, now)
	}
	if len(m.Retired) == len(a.man.Retired) {
		return nil
	}
	return a.publish(ctx, m)
}

// dropBefore leaves out the segments that lie wholly before the cursors.
func (m *manifest) dropBefore(cursors []log.Cursor, nowMS int64) {
	for i := range m.Shards {
		p := &m.Shards[i]
		keep := 0
		for j, s := range p.Segments {
			if s.Start.Generation == cursors[i].Generation && s.Start.Offset <= cursors[i].Offset {
				keep = j
			}
		}
		for _, s := range p.Segments[:keep] {
			m.retire(nowMS, s.objects()...)
		}
		p.Segments = p.Segments[keep:]
	}
}

// maxRetired bounds the retired objects, and so the manifest: beyond it the oldest go before their time.
const maxRetired = 4096

// removeRetired removes the objects that have been no part of the archive for the time of grace.
func (a *Archiver) removeRetired(ctx context.Context) error {
	m := a.man.clone()
	m.Retired = nil
	now := a.src.Now()
	for i, r := range a.man.Retired {
		if now-r.AtMS < a.o.Grace.Milliseconds() && len(a.man.Retired)-i <= maxRetired {
			m.Retired = append(m.Retired, r)
			continue
		}
		if err := a.o.Store.Delete(ctx, r.Name); err != nil {
			return err
		}
	}
	if len(m.Retired) == len(a.man.Retired) {
		return nil
	}
	return a.publish(ctx, m)
}

// ours are the names that an archive gives: nothing else is ever removed.
var ours = regexp.MustCompile(`^(shard-\d\d/\d{20}\.(sealed|seg\.\d+-\d+)|snapshots/[0-9a-f]{16}/(SET|shard-\d\d\.snap)|ARCHIVE)$`)

// listOrphans lists the objects that m does not name, and no others.
func (a *Archiver) listOrphans(ctx context.Context, m *manifest) (map[string]int64, error) {
	known := map[string]bool{manifestName: true}
	if m != nil {
		known = m.names()
	}
	orphans := make(map[string]int64)
	err := a.o.Store.List(ctx, "", func(name string, size int64) {
		whole := strings.TrimSuffix(name, putSuffix)
		if ours.MatchString(whole) && (whole != name || !known[name]) {
			orphans[name] = size
		}
	})
	return orphans, err
}

// removeOrphans removes what interrupted passes left. REQUIRES: no object is being written.
func (a *Archiver) removeOrphans(ctx context.Context) error {
	orphans, err := a.listOrphans(ctx, a.man)
	for name := range orphans {
		err = errors.Join(err, a.o.Store.Delete(ctx, name))
	}
	a.orphans = nil
	return err
}
