package server

import (
	"context"

	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/resp"
)

// digestCommand is PREFIX.DIGEST prefix [CURSORS | SOURCE | AT generation offset ...]. Without more words it is a planner's: it shows
// the live keys. With them it shows the state at a cursor of each shard, from frozen views: writers go on meanwhile.
func digestCommand(s *session, args [][]byte) {
	if len(args) == 2 {
		s.runSlow(s.cmd, args)
		return
	}
	srv := s.srv
	args = cloneArgs(args)
	prefix := args[1]
	switch {
	case isName(args[2], "cursors") && len(args) == 3:
		s.parkDigest(func(context.Context) (replica.Digest, error) {
			v, err := srv.eng.FreezeAll()
			if err != nil {
				return replica.Digest{}, err
			}
			return replica.DigestOf(v, prefix)
		})
	case isName(args[2], "source") && len(args) == 3:
		f := srv.repl.follower.Load()
		if f == nil {
			s.w.Error("ERR this server follows no other")
			return
		}
		s.parkDigest(func(ctx context.Context) (replica.Digest, error) { return f.Digest(ctx, prefix) })
	case isName(args[2], "at"):
		at, err := replica.ParseCursors(args[3:], srv.eng.Shards())
		if err != nil {
			s.w.Error(err.Error())
			return
		}
		s.parkDigest(func(ctx context.Context) (replica.Digest, error) { return srv.repl.source.At(ctx, prefix, at) })
	default:
		s.w.Error("ERR syntax error")
	}
}

// parkDigest replies what get returns, once it does.
func (s *session) parkDigest(get func(context.Context) (replica.Digest, error)) {
	s.parkWait(func(ctx context.Context, w *resp.Writer) {
		d, err := get(ctx)
		if err != nil {
			w.Error(errorReply(err))
			return
		}
		w.Array(3)
		w.Int(int64(d.Keys))
		w.BulkString(d.Digest)
		w.Array(len(d.Cursors))
		for _, c := range d.Cursors {
			w.Array(2)
			w.Uint(c.Generation)
			w.Uint(c.Offset)
		}
	})
}

// replFreezeCommand answers REPL.FREEZE; the digest is computed behind the reply.
func replFreezeCommand(s *session, args [][]byte) {
	args = cloneArgs(args)
	s.onLink(func(w *resp.Writer, k *replica.Link) {
		at, run, err := k.Freeze(args[1])
		if err != nil {
			w.Error(errorReply(err))
			return
		}
		s.srv.jobs.Go(run)
		w.Array(2 * len(at))
		for _, c := range at {
			w.Uint(c.Generation)
			w.Uint(c.Offset)
		}
	})
}
