package main

import (
	"fmt"
	"io"

	"github.com/kevydb/kevy/internal/history"
)

const verifyUsage = `Usage: kevy verify DIR [flags]
       kevy verify --replica host:port [--of host:port] [flags]

Reads a whole data directory: every header and chain link, the checksum of every frame, every snapshot set. It
names the places that are not as they were written: file, byte, cursor. With --deep the log is folded up
to each snapshot set, and the digests must agree. DIR is only read; it may be in use, a copy, or
the URL of an archive (file:///dir, s3://bucket/prefix), whose objects are all checked.

With --replica a running replica is compared with its source, while writes go on: the source freezes its state at
a cursor of each shard, the replica when it comes there, and the digests of all keys must agree.
` + loginUsage + `
Flags:
%s
Exit codes: 0 sound, or equal; 1 the directory can't be read, or a server not be asked; 2 a bad flag; 4 damage was found, or a
difference.
`

// verify is kevy verify.
func verify(args []string, stdout, stderr io.Writer) int {
	var dir string
	var o history.VerifyOptions
	var ro replicaOptions
	t := &tool{name: "kevy verify", usage: verifyUsage, stdout: stdout, stderr: stderr}
	fs := newFlags("verify")
	fs.BoolVar(&o.Deep, "deep", false, "fold the log up to each snapshot set and compare digests")
	fs.StringVar(&ro.replica, "replica", "", "the replica to compare with its source")
	fs.StringVar(&ro.of, "of", "", "the source, if it is not reached at the address that the replica has")
	fs.StringVar(&ro.prefix, "prefix", "", "compare only keys that start with this")
	done, code := t.parse(fs, args, func() (err error) {
		if err = ro.check(fs.Args(), o.Deep); err == nil && ro.replica == "" {
			dir, err = oneDir(fs.Args())
		}
		return err
	})
	if done {
		return code
	}
	if ro.replica != "" {
		return t.verifyReplica(&ro)
	}
	o.Meter = &t.meter
	v, err := t.verifyPlace(dir, o)
	if err != nil {
		return t.fail(err)
	}
	if code := t.print(v, func() []byte { return describeVerified(dir, v) }); code != exitOK {
		return code
	}
	if len(v.Damage) > 0 {
		return exitFound
	}
	return exitOK
}

// verifyPlace verifies what a place holds.
func (t *tool) verifyPlace(place string, o history.VerifyOptions) (*history.Verified, error) {
	src, gone, err := openPlace(place)
	if err != nil {
		return history.Unopened(place, err)
	}
	defer gone()
	defer t.watch()()
	v, err := history.Verify(src, o)
	if v != nil && isURL(place) {
		v.Dir = place
	}
	return v, err
}

func describeVerified(place string, v *history.Verified) []byte {
	out := fmt.Appendf(nil, "%s: %d frames in %d segments, %d snapshot sets\n", v.Dir, v.Frames, v.Segments, len(v.Sets))
	for _, s := range v.Sets {
		out = fmt.Appendf(out, "snapshot set %s: %d keys, digest %s", s.ID, s.Keys, s.Digest)
		if s.Folded {
			out = fmt.Appendf(out, ", the same as the log folded from %s", s.Base)
		}
		out = append(out, '\n')
	}
	for _, n := range v.Notes {
		out = fmt.Appendf(out, "note: %s\n", n)
	}
	for _, d := range v.Damage {
		shard := ""
		if d.Shard >= 0 {
			shard = fmt.Sprintf("shard %d: ", d.Shard)
		}
		out = fmt.Appendf(out, "DAMAGE: %s%s\n", shard, d.Problem)
	}
	if len(v.Damage) == 0 {
		return append(out, "sound\n"...)
	}
	out = fmt.Appendf(out, "%d places are damaged\n", len(v.Damage))
	if v.Segments > 0 { // it could be opened
		out = fmt.Appendf(out, "kevy restore --from %s --to NEWDIR --before-damage makes a directory with the newest state that needs none of them\n", shellWord(place))
	}
	return out
}
