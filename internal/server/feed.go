package server

import (
	"context"

	"github.com/kevydb/kevy/internal/feed"
	"github.com/kevydb/kevy/resp"
)

// newFeed returns the change feed of the server's engine. A flush that fails is no reader's
// business: what it could not write stays invisible.
func (srv *Server) newFeed(enabled bool) *feed.Feed {
	return feed.New(srv.eng.DirAfter, enabled, func(shard int) { _ = srv.eng.Flush(shard) })
}

func registerFeed(r registry) {
	r["feed.shards"] = feedShardsCommand
	r["feed.tail"] = feedTailCommand
	r["feed.read"] = feedReadCommand
	r["feed.scan"] = feedScanCommand
	r["feed.info"] = feedInfoCommand
}

func feedShardsCommand(s *session, _ [][]byte) { s.srv.feed.Shards(s.w) }

func feedTailCommand(s *session, args [][]byte) { s.srv.feed.Tail(args, s.w, s.pending) }

func feedInfoCommand(s *session, args [][]byte) { s.srv.feed.Info(args, s.w) }

// feedReadCommand reads off the loop: a reply may carry megabytes, and BLOCK waits. Inside a
// transaction it answers at once.
func feedReadCommand(s *session, args [][]byte) {
	if s.multi.running {
		s.srv.feed.Read(context.Background(), args, s.w, false)
		return
	}
	args = cloneArgs(args)
	s.parkWait(func(ctx context.Context, w *resp.Writer) { s.srv.feed.Read(ctx, args, w, true) })
}

// feedScanCommand scans off the loop: it takes as long as its keys are large.
func feedScanCommand(s *session, args [][]byte) {
	in := s.inGroup
	if !s.multi.running {
		args, in = cloneArgs(args), nil
	}
	s.parkRun(func(w *resp.Writer) {
		s.srv.feed.Scan(args, w, func(shard int) (feed.Frozen, error) { return s.srv.eng.Freeze(in, shard) })
	})
}
