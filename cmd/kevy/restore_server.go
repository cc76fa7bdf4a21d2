package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"time"

	api "github.com/kevydb/kevy"
	"github.com/kevydb/kevy/internal/warm"
)

// lagEvery is how often kevy restore --follow says where it stands.
const lagEvery = 10 * time.Second

// isServer reports whether --from names a server, not a directory.
func isServer(from string) bool {
	return strings.HasPrefix(from, "redis://") || strings.HasPrefix(from, "rediss://")
}

// checkServer refuses flags that do not go with what --from names.
func (o *restoreOptions) checkServer() error {
	if !isServer(o.from) {
		if o.follow {
			return errors.New("--follow goes with --from redis://host:port")
		}
		return nil
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"--time", o.time != ""},
		{"--before", o.before != ""},
		{"--since", o.since != ""},
		{"--at", len(o.at) > 0},
		{"--shard-cursors", o.shardCursors != ""},
		{"--before-damage", o.beforeDamage},
		{"--keep-expired", o.keepExpired},
		{"--dry-run", o.dryRun},
		{"--rebuild-manifest", o.rebuild},
	} {
		if f.set {
			return fmt.Errorf("%s goes with a data directory: of a server there is only what it has now", f.name)
		}
	}
	_, err := o.mirror()
	return err
}

// mirror says how the server of --from is reached.
func (o *restoreOptions) mirror() (*api.Mirror, error) {
	a, err := parseServer(o.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	m := &api.Mirror{Addr: a.addr, User: a.user, Password: a.password}
	if o.prefix != "" {
		m.Prefixes = []string{o.prefix}
	}
	if a.dial != nil {
		m.Dial = a.dial
	}
	return m, nil
}

// restoreServer is kevy restore from a running server.
func restoreServer(t *tool, o *restoreOptions) int {
	m, err := o.mirror()
	if err != nil {
		return t.fail(err)
	}
	m.Logger = slog.New(slog.NewTextHandler(t.stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	based := make(chan struct{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		t.sayLag(ctx, m, based)
	}()
	res, err := warm.Run(ctx, warm.Options{
		From: m, To: slashed(o.to), Follow: o.follow,
		Resumed: func(keys int, digest string) {
			fmt.Fprintf(t.stderr, "going on with a copy of %d keys, digest %s\n", keys, digest)
		},
		Based: func(keys int, digest string) {
			if o.follow {
				fmt.Fprintf(t.stderr, "copied %d keys, digest %s; following %s until interrupted\n", keys, digest, m.Addr)
				close(based)
			}
		},
	})
	stop()
	<-said
	if err != nil {
		return t.fail(err)
	}
	return t.print(res, func() []byte { return describeCopied(o, res) })
}

func describeCopied(o *restoreOptions, res *warm.Result) (out []byte) {
	for i, c := range res.Source {
		out = fmt.Appendf(out, "shard %d of the server: up to %s\n", i, c)
	}
	for i, c := range res.New {
		out = fmt.Appendf(out, "shard %d goes on as %s\n", i, c)
	}
	return fmt.Appendf(out, "%d keys, digest %s, verified\nStart it with: kevy --dir %s\n", res.Keys, res.Digest, shellWord(o.to))
}

// sayLag says how far the copy is behind, from the time the base is complete until ctx ends.
func (t *tool) sayLag(ctx context.Context, m *api.Mirror, based <-chan struct{}) {
	select {
	case <-based:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		fmt.Fprintln(t.stderr, lagLine(m.Status()))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lagLine describes how far the shards of a copy are behind.
func lagLine(shards []api.MirrorStatus) string {
	var behind, changes uint64
	for i := range shards {
		s := &shards[i]
		changes += s.Changes
		n, known := s.Behind()
		behind += n
		switch {
		case s.Err != nil:
			return fmt.Sprintf("behind: unknown, shard %d is out of reach: %v", i, s.Err)
		case s.Rebuilding:
			return fmt.Sprintf("behind: shard %d is being copied anew", i)
		case !known:
			return fmt.Sprintf("behind: unknown, shard %d goes on in another generation", i)
		}
	}
	return fmt.Sprintf("behind: %d frames; %d changes applied", behind, changes)
}
