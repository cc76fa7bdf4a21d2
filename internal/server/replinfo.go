package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/log"
)

// roleCommand answers ROLE.
func roleCommand(s *session, _ [][]byte) {
	srv, w := s.srv, s.w
	if f := srv.repl.follower.Load(); f != nil {
		st := f.Status()
		port, _ := strconv.ParseInt(st.Port, 10, 64)
		w.Array(5)
		w.BulkString("slave")
		w.BulkString(st.Host)
		w.Int(port)
		w.BulkString(linkState(&st))
		w.Uint(srv.replOffset())
		return
	}
	followers, _ := srv.followers()
	w.Array(3)
	w.BulkString("master")
	w.Uint(srv.replOffset())
	w.Array(len(followers))
	for i := range followers {
		f := &followers[i]
		w.Array(3)
		w.BulkString(f.Host)
		w.BulkString(f.Port)
		w.BulkString(strconv.FormatUint(srv.ackOffset(f), 10))
	}
}

// linkState is the state of the link in ROLE's words.
func linkState(st *replica.Status) string {
	switch {
	case st.Up:
		return "connected"
	case st.Syncing:
		return "sync"
	case st.LastIO.IsZero():
		return "connect"
	}
	return "connecting"
}

// replOffset is the number of frames in the histories of all shards; of a server that follows a kevy, that of the newest cut that it holds; of one that follows
// another server, where it is in that one's stream.
func (srv *Server) replOffset() uint64 {
	if srv.repl.follower.Load() == nil {
		return srv.frames()
	}
	held, _ := srv.eng.HeldCut()
	return srv.offsetAt(held)
}

// offsetAt is replOffset at cursors.
func (srv *Server) offsetAt(at []log.Cursor) uint64 {
	if f := srv.repl.follower.Load(); f != nil {
		if st := f.Status(); st.Stock {
			return uint64(st.SourceOffset) //nolint:gosec // not negative
		}
	}
	return srv.framesTo(at)
}

// frames is the number of frames in the histories of all shards.
func (srv *Server) frames() uint64 { return srv.framesTo(srv.repl.source.Tails()) }

// framesTo is the number of frames before cursors, one for each shard or none.
func (srv *Server) framesTo(at []log.Cursor) (n uint64) {
	dir := srv.eng.Dir()
	for i, c := range at {
		n += replica.Position(dir.Lineage(i), c)
	}
	return n
}

// ackOffset is replOffset as far as a follower has acknowledged it.
func (srv *Server) ackOffset(f *replica.FollowerInfo) uint64 {
	at := make([]log.Cursor, len(f.Acks))
	for i := range at {
		at[i] = f.Acks[i].Cut
	}
	return srv.framesTo(at)
}

func (r *report) replication() {
	srv := r.srv
	f := srv.repl.follower.Load()
	offset := srv.replOffset()
	if f == nil {
		r.field("role", "master")
	} else {
		r.following(f, offset)
	}
	r.followers(srv.frames())
	former, at := strings.Repeat("0", 40), int64(-1)
	if f := srv.repl.former.Load(); f != nil {
		former, at = f.id, int64(f.at) //nolint:gosec // a count of frames
	}
	r.fields(
		"master_failover_state", srv.repl.over.state(), "master_replid", srv.replID(), "master_replid2", former,
		"master_repl_offset", offset, "second_repl_offset", at,
	)
	dir := srv.eng.Dir()
	r.backlog(f, dir, offset)
	for i := range dir.Shards() {
		l := dir.Log(i)
		c := l.Tail()
		fmt.Fprintf(&r.b, "repl_shard%d:generation=%d,tail=%d,durable=%d,visible=%d\r\n", i, c.Generation, c.Offset, l.Durable(), l.Visible())
	}
}

// backlog tells from where on a replica can go on: the log on disk is the backlog, in frames as all offsets here. At a server that follows a stock Redis the
// offset is that one's, of whose stream nothing is kept.
func (r *report) backlog(f *replica.Follower, dir *log.Dir, offset uint64) {
	first, kept := uint64(0), uint64(0)
	if f == nil || !f.Status().Stock {
		for i := range dir.Shards() {
			first += replica.Position(dir.Lineage(i), dir.Log(i).Oldest())
		}
		kept, first = offset-min(first, offset), first+1
	}
	r.fields("repl_backlog_active", bit(first > 0), "repl_backlog_size", r.text("repl-backlog-size"),
		"repl_backlog_first_byte_offset", first, "repl_backlog_histlen", kept)
}

// following is what a server that follows another says.
func (r *report) following(f *replica.Follower, offset uint64) {
	st := f.Status()
	link, ago := "down", int64(-1)
	if st.Up {
		link = "up"
	}
	if !st.LastIO.IsZero() {
		ago = seconds(r.now.Sub(st.LastIO))
	}
	r.fields("role", "slave", "master_host", st.Host, "master_port", st.Port, "master_link_status", link,
		"master_last_io_seconds_ago", ago, "master_sync_in_progress", bit(st.Syncing),
		"slave_read_repl_offset", offset, "slave_repl_offset", offset)
	if st.Syncing {
		r.fields("master_sync_total_bytes", st.SyncTotal, "master_sync_read_bytes", st.SyncBytes,
			"master_sync_left_bytes", st.SyncTotal-st.SyncBytes)
	}
	if !st.Up && !st.DownSince.IsZero() {
		r.field("master_link_down_since_seconds", seconds(r.now.Sub(st.DownSince)))
	}
	r.fields("slave_priority", r.text("replica-priority"), "slave_read_only", 1, "replica_announced", bit(r.text("replica-announced") == "yes"))
	late := 0.0
	if !st.BehindSince.IsZero() {
		late = time.Since(st.BehindSince).Seconds()
	}
	source := "kevy"
	if st.Stock {
		source = "stock"
	}
	r.fields("repl_source", source, "repl_frames_behind", st.Behind, "repl_seconds_behind", fixed2(late), "repl_frames_applied", st.Frames,
		"repl_full_copies", st.FullCopies, "repl_bytes_resumed", st.Resumed, "repl_rewinds", st.Rewinds, "repl_connects", st.Connects, "repl_kept_aside", len(st.Aside),
		"repl_error", strings.NewReplacer("\r", " ", "\n", " ").Replace(st.Err))
}

// followers returns the replicas that others reach, and those in programs, which have no port: nothing that looks for servers, as Sentinel does, is to find them.
func (srv *Server) followers() (servers, embedded []replica.FollowerInfo) {
	for _, f := range srv.repl.source.Followers() {
		if f.Port == "0" && !f.Stock {
			embedded = append(embedded, f)
		} else {
			servers = append(servers, f)
		}
	}
	return servers, embedded
}

// followers is what a server says about those that follow it.
func (r *report) followers(offset uint64) {
	servers, embedded := r.srv.followers()
	r.field("connected_slaves", len(servers))
	r.each("slave", servers, offset)
	if len(embedded) > 0 {
		r.field("embedded_replicas", len(embedded))
		r.each("embedded", embedded, offset)
	}
}

// each has a line for each follower.
func (r *report) each(name string, followers []replica.FollowerInfo, offset uint64) {
	dir := r.srv.eng.Dir()
	for i := range followers {
		f := &followers[i]
		state, lag, at := "online", seconds(f.Since), r.srv.ackOffset(f)
		if !f.Online {
			state, lag = "wait_bgsave", 0
		}
		fmt.Fprintf(&r.b, "%s%d:ip=%s,port=%s,state=%s,offset=%d,lag=%d", name, i, f.Host, f.Port, state, at, lag)
		if f.Acks != nil {
			fmt.Fprintf(&r.b, ",frames_behind=%d,bytes_behind=%d", offset-min(offset, at), bytesBehind(dir, f.Acks))
			for j, a := range f.Acks {
				fmt.Fprintf(&r.b, ",shard%d=%d:%d:%d", j, a.Generation, a.Applied, a.Durable)
			}
		}
		r.b.WriteString("\r\n")
	}
}

// bytesBehind is about how many bytes of log a follower has yet to apply.
func bytesBehind(dir *log.Dir, acks []replica.Ack) (n int64) {
	for i, a := range acks {
		l := dir.Log(i)
		if c := l.Tail(); c.Generation == a.Generation && c.Offset > 0 && a.Applied < c.Offset {
			n += int64(float64(l.Bytes()) * float64(c.Offset-a.Applied) / float64(c.Offset))
		} else if c.Generation != a.Generation {
			n += l.Bytes()
		}
	}
	return n
}
