package server

import (
	"math"
	"strconv"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// snapshotPrune is SNAPSHOT.PRUNE [KEEP sets] [DRYRUN]: it removes the sets that the configuration does not keep, with KEEP
// other than so many of the newest, and replies with a map for each set: id, time (unix ms), keys, bytes, keep
// (1 or 0) and the reason.
func snapshotPrune(s *session, args [][]byte) {
	dry, keep := false, 0
	for i := 1; i < len(args); i++ {
		switch {
		case isName(args[i], "dryrun"):
			dry = true
		case isName(args[i], "keep") && i+1 < len(args):
			i++
			n, err := strconv.Atoi(string(args[i]))
			if err != nil || n < 1 || n > math.MaxInt32 {
				s.w.Error("ERR invalid KEEP: at least one set stays")
				return
			}
			keep = n
		default:
			s.w.Error(msgSyntax)
			return
		}
	}
	s.parkRun(func(w *resp.Writer) {
		plan, err := s.srv.eng.Prune(dry, func(p *engine.SnapshotPolicy) {
			if keep > 0 {
				p.Keep = keep
			}
		})
		if err != nil {
			w.Error(saveError(err))
			return
		}
		w.Array(len(plan))
		for _, d := range plan {
			w.Map(6)
			w.BulkString("id")
			w.BulkString(d.ID)
			w.BulkString("time")
			w.Int(d.TimeMS)
			w.BulkString("keys")
			w.Uint(d.Keys)
			w.BulkString("bytes")
			w.Int(d.Bytes)
			w.BulkString("keep")
			w.Int(int64(bit(d.Keep)))
			w.BulkString("reason")
			w.BulkString(d.Reason)
		}
	})
}
