// Command sqlite keeps a SQLite table in step with the hashes below a prefix of a kevy server: a row for each
// field. Stop it, start it, let the server crash, flush everything: the table is what the server has, and every change is applied
// once, since the position in the feed is stored in the transaction that applies the change.
//
//	go run . --addr 127.0.0.1:6379 --db users.db --prefix user:
//	sqlite3 users.db "select key, value from field where name = 'email'"
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/kevydb/kevy"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6379", "kevy server")
	path := flag.String("db", "kevy.db", "SQLite database")
	prefix := flag.String("prefix", "user:", "keys to mirror")
	flag.Parse()
	if err := mirror(*addr, *path, *prefix); err != nil {
		log.Fatal(err)
	}
}

// mirror runs until the process is interrupted.
func mirror(addr, path, prefix string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t, err := OpenTable(path)
	if err != nil {
		return err
	}
	m := kevy.Mirror{
		Addr: addr, Password: os.Getenv("KEVY_REQUIREPASS"), Prefixes: []string{prefix},
		Apply: t.Apply, Load: t.Load, Logger: slog.Default(),
	}
	err = m.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, t.Close())
}
