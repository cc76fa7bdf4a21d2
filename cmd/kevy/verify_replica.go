package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/kevydb/kevy/log"
)

// replicaOptions say which replica is compared with what.
type replicaOptions struct {
	replica, of, prefix string
}

// check refuses flags and arguments that do not go together.
func (o *replicaOptions) check(args []string, deep bool) error {
	if o.replica == "" {
		if o.of != "" || o.prefix != "" {
			return errors.New("--of and --prefix go with --replica")
		}
		return nil
	}
	if len(args) > 0 || deep {
		return errors.New("--replica compares servers: it takes neither a directory nor --deep")
	}
	if _, err := parseHostPort(o.replica); err != nil {
		return fmt.Errorf("--replica %w", err)
	}
	if o.of != "" {
		if _, err := parseHostPort(o.of); err != nil {
			return fmt.Errorf("--of %w", err)
		}
	}
	return nil
}

// comparison is a replica and its source at one cursor of each shard.
type comparison struct {
	Replica string   `json:"replica"`
	Source  string   `json:"source"`
	Prefix  string   `json:"prefix,omitempty"`
	Cursors []string `json:"cursors"` // by shard
	Keys    int64    `json:"keys"`    // of the replica
	Digest  string   `json:"digest"`
	// What the source has at these cursors.
	SourceKeys   int64  `json:"source_keys"`
	SourceDigest string `json:"source_digest"`
	Equal        bool   `json:"equal"`
}

// verifyReplica is kevy verify --replica.
func (t *tool) verifyReplica(o *replicaOptions) int {
	c, err := compareReplica(context.Background(), o)
	if err != nil {
		return t.fail(err)
	}
	if code := t.print(c, func() []byte { return describeComparison(c) }); code != exitOK {
		return code
	}
	if !c.Equal {
		return exitFound
	}
	return exitOK
}

func describeComparison(c *comparison) []byte {
	out := fmt.Appendf(nil, "%s and %s, its source, at %s\n", c.Replica, c.Source, strings.Join(c.Cursors, " "))
	if c.Equal {
		return fmt.Appendf(out, "equal: %d keys, digest %s\n", c.Keys, c.Digest)
	}
	return fmt.Appendf(out, "DIFFERENT: the replica has %d keys, digest %s; the source %d keys, digest %s\n", c.Keys, c.Digest, c.SourceKeys, c.SourceDigest)
}

// compareReplica asks the replica for its digest at cursors at which its source has frozen its state as well, and then the source.
func compareReplica(ctx context.Context, o *replicaOptions) (*comparison, error) {
	replica, err := parseHostPort(o.replica)
	if err != nil {
		return nil, err
	}
	rc, err := replica.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	source := serverAddr{user: replica.user, password: replica.password, dial: replica.dial}
	if o.of != "" {
		if source, err = parseHostPort(o.of); err != nil {
			return nil, err
		}
	}
	role, err := rc.Do(replyLimit, "ROLE")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", replica.addr, err)
	}
	if r, ok := role.([]any); !ok || len(r) < 3 || r[0] != "slave" {
		return nil, fmt.Errorf("%s is no replica", replica.addr)
	} else if source.addr == "" {
		source.addr = net.JoinHostPort(fmt.Sprint(r[1]), fmt.Sprint(r[2]))
	}
	if source.addr == replica.addr {
		return nil, fmt.Errorf("%s is not compared with itself", replica.addr)
	}
	sc, err := source.connect(ctx) // before the cut: the source remembers it for a while only
	if err != nil {
		return nil, err
	}
	defer sc.Close()
	v, err := rc.Do(0, "PREFIX.DIGEST", o.prefix, "SOURCE") // waits until the replica has come there
	if err != nil {
		return nil, fmt.Errorf("%s: %w", replica.addr, err)
	}
	c := &comparison{Replica: replica.addr, Source: source.addr, Prefix: o.prefix}
	at, err := readDigest(v, &c.Keys, &c.Digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", replica.addr, err)
	}
	args := []string{"PREFIX.DIGEST", o.prefix, "AT"}
	for _, cur := range at {
		c.Cursors = append(c.Cursors, cur.String())
		args = append(args, fmt.Sprint(cur.Generation), fmt.Sprint(cur.Offset))
	}
	if v, err = sc.Do(0, args...); err == nil {
		_, err = readDigest(v, &c.SourceKeys, &c.SourceDigest)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, at %s: %w", source.addr, strings.Join(c.Cursors, " "), err)
	}
	c.Equal = c.Keys == c.SourceKeys && c.Digest == c.SourceDigest
	return c, nil
}

// readDigest reads a reply of PREFIX.DIGEST at cursors.
func readDigest(v any, keys *int64, digest *string) (at []log.Cursor, err error) {
	bad := errors.New("PREFIX.DIGEST: unexpected reply")
	a, ok := v.([]any)
	if !ok || len(a) != 3 {
		return nil, bad
	}
	var ok1, ok2 bool
	*keys, ok = a[0].(int64)
	*digest, ok1 = a[1].(string)
	cursors, ok2 := a[2].([]any)
	if !ok || !ok1 || !ok2 {
		return nil, bad
	}
	for _, c := range cursors {
		cur, err := cursorOf(c)
		if err != nil {
			return nil, err
		}
		at = append(at, cur)
	}
	return at, nil
}
