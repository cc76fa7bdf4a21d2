// Command replica holds a replica of a kevy server in this process: it reads without a network, sees each change when it has been
// applied, and goes on where it was when it is started again.
//
//	kevy --shards 1
//	go run . --addr 127.0.0.1:6379 --dir replica --prefix user:
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/kevydb/kevy"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6379", "kevy server with one shard")
	dir := flag.String("dir", "replica", "directory of the replica")
	prefix := flag.String("prefix", "user:", "keys whose changes are shown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cfg := kevy.DefaultConfig().WithDir(*dir).WithFeed(0).WithReplicaOf(*addr).WithReplicaLogin("", os.Getenv("KEVY_REQUIREPASS"))
	if err := follow(ctx, cfg, *prefix, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// follow shows changes until ctx ends.
func follow(ctx context.Context, cfg kevy.Config, prefix string, out io.Writer) (err error) {
	store, err := kevy.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.WaitReplica(ctx); err != nil {
		return err
	}
	cursor, err := store.ChangesTail()
	if err != nil {
		return err
	}
	stats, err := store.InfoPrefix([]byte(prefix))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d keys with %s\n", stats.Keys, prefix)
	for {
		for change, err := range store.Follow(ctx, cursor, []byte(prefix)) {
			var resync *kevy.ResyncError
			switch {
			case errors.As(err, &resync): // a FLUSHALL, or a full copy: nothing of before counts
				fmt.Fprintln(out, "all is new")
				cursor.Generation, cursor.Offset = resync.Generation, resync.Tail
			case errors.Is(err, context.Canceled):
				return nil
			case err != nil:
				return err
			default:
				fmt.Fprintf(out, "%s\n", change.Argv)
				cursor.Offset = change.Offset + 1
			}
		}
	}
}
