package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kevydb/kevy/internal/history"
)

const logUsage = `Usage: kevy log list DIR [flags]
       kevy log dump DIR [flags]

list shows what a data directory holds: segments, the tree of generations, snapshot sets, and which points can be
restored and which can't. dump prints frames. DIR is only read: it may be in use, a copy, or the
URL of an archive (file:///dir, s3://bucket/prefix).

kevy log list --help and kevy log dump --help list the flags.
`

const logListUsage = `Usage: kevy log list DIR [flags]

Shows what a data directory holds, without reading frames: the generations of each shard as a tree
with their causes, segments, snapshot sets, and the windows of cursors and times that can be restored,
and the gaps. Damage that shows in headers is named; kevy verify reads everything. Times are local (TZ).

Flags:
%s
Exit codes: 0 listed, 1 the directory can't be read, 2 a bad flag.
`

// logCommand is kevy log.
func logCommand(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "list":
			return logList(args[1:], stdout, stderr)
		case "dump":
			return logDump(args[1:], stdout, stderr)
		case "-h", "--help":
			fmt.Fprint(stdout, logUsage)
			return exitOK
		}
	}
	fmt.Fprint(stderr, "kevy log: want list or dump\n\n", logUsage)
	return exitUsage
}

// oneDir takes the one argument that names a directory, or an archive.
func oneDir(args []string) (string, error) {
	if len(args) != 1 || args[0] == "" {
		return "", errors.New("want one argument: the data directory")
	}
	return args[0], nil
}

func logList(args []string, stdout, stderr io.Writer) int {
	var dir string
	t := &tool{name: "kevy log list", usage: logListUsage, stdout: stdout, stderr: stderr}
	fs := newFlags("list")
	if done, code := t.parse(fs, args, func() (err error) { dir, err = oneDir(fs.Args()); return err }); done {
		return code
	}
	h, done, err := openHistory(dir)
	if err != nil {
		return t.fail(err)
	}
	defer done()
	l := h.List()
	if isURL(dir) {
		l.Dir = dir
	}
	return t.print(l, func() []byte { return describeListing(l) })
}

func describeListing(l *history.Listing) []byte {
	state := "in use, or not closed cleanly"
	if l.Clean {
		state = "closed cleanly"
	}
	out := fmt.Appendf(nil, "%s: %d shards, %s\n", l.Dir, len(l.Shards), state)
	for i := range l.Shards {
		out = appendShard(out, &l.Shards[i])
	}
	out = append(out, "snapshot sets:\n"...)
	if len(l.Sets) == 0 {
		out = append(out, "  none\n"...)
	}
	for _, s := range l.Sets {
		switch {
		case s.Err != "":
			out = fmt.Appendf(out, "  %s  can't be used: %s\n", s.ID, s.Err)
		case s.InUse:
			out = fmt.Appendf(out, "  %s  %s  %d keys  %d bytes  (the next start loads it)\n", s.ID, history.FormatMS(s.TimeMS), s.Keys, s.Bytes)
		default:
			out = fmt.Appendf(out, "  %s  %s  %d keys  %d bytes\n", s.ID, history.FormatMS(s.TimeMS), s.Keys, s.Bytes)
		}
	}
	for _, held := range l.Held {
		out = fmt.Appendf(out, "held for %s: %d bytes of log, from %s\n", held.For, held.Bytes, strings.Trim(fmt.Sprint(held.From), "[]"))
	}
	out = append(out, "times that can be restored (kevy restore --time):\n"...)
	for _, w := range l.Windows {
		end := "to " + history.FormatMS(w.ToMS)
		if w.Latest {
			end += " (the newest frame)"
		}
		out = fmt.Appendf(out, "  %s %s, from %s\n", history.FormatMS(w.FromMS), end, w.Base)
	}
	for _, g := range l.Gaps {
		out = fmt.Appendf(out, "  gap: %s to %s\n", history.FormatMS(g.FromMS), history.FormatMS(g.ToMS))
	}
	return out
}

func appendShard(out []byte, s *history.ShardListing) []byte {
	out = fmt.Appendf(out, "shard %d: tail %s, %s, %d bytes\n", s.Shard, s.Tail, history.FormatMS(s.TailMS), s.Bytes)
	for _, g := range s.Generations {
		from := ""
		if g.Parent != 0 {
			from = fmt.Sprintf(" of %d at %d", g.Parent, g.ParentOffset)
		}
		out = fmt.Appendf(out, "  %s%d  %s%s, %s, frames 0 to %d, %d segments here\n",
			strings.Repeat("  ", min(g.Depth, 12)), g.Generation, g.CauseName, from, history.FormatMS(g.TimeMS), g.End, g.Segments)
	}
	for _, g := range s.Segments {
		sealed := ""
		if g.Sealed {
			sealed = fmt.Sprintf("  sealed (%d raw)", g.RawBytes)
		}
		out = fmt.Appendf(out, "  segment %d  %s to %d  %d bytes  %s to %s%s\n",
			g.Number, g.Start, g.End, g.Bytes, history.FormatMS(g.FirstMS), history.FormatMS(g.LastMS), sealed)
		if g.Broken != nil {
			out = fmt.Appendf(out, "    does not continue the one before: %v\n", g.Broken)
		}
	}
	for _, w := range s.Windows {
		out = fmt.Appendf(out, "  restorable: %s to %s, from %s\n", w.From, w.To, w.Base)
	}
	for _, g := range s.Gaps {
		out = fmt.Appendf(out, "  gap: %s to %s: %s\n", g.From, g.To, g.Why)
	}
	for _, d := range s.Damage {
		out = fmt.Appendf(out, "  damage: %s\n", d)
	}
	if s.UncleanTail != "" {
		out = fmt.Appendf(out, "  unclean tail: %s\n", s.UncleanTail)
	}
	return out
}
