package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the driver

	"github.com/kevydb/kevy"
)

// schema: every row knows the shard its key came from, since a reset is about the keys of one shard.
const schema = `
	create table if not exists field (key blob, name blob, value blob, shard integer, primary key (key, name)) without rowid;
	create table if not exists position (shard integer primary key, text text);`

// Table is a SQLite database with a row for each field of each hash.
type Table struct{ db *sql.DB }

// OpenTable opens the database at path, or makes it.
func OpenTable(path string) (*Table, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("pragma journal_mode = wal"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := db.Exec(schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Table{db}, nil
}

// Close closes the database.
func (t *Table) Close() error { return t.db.Close() }

// Load returns the position of a shard: Mirror.Load.
func (t *Table) Load(ctx context.Context, shard int) (position string, err error) {
	err = t.db.QueryRowContext(ctx, "select text from position where shard = ?", shard).Scan(&position)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return position, err
}

// Apply applies a batch and stores its position, both or neither: Mirror.Apply.
func (t *Table) Apply(ctx context.Context, b *kevy.MirrorBatch) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	do := func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
	if r := b.Reset; r != nil {
		if err := do("delete from field where shard = ? and key >= ? and (? or key < ?)", b.Shard, blob(r.From), len(r.To) == 0, blob(r.To)); err != nil {
			return err
		}
	}
	for _, c := range b.Changes {
		if err := change(do, b.Shard, c.Argv); err != nil {
			return fmt.Errorf("%s: %w", c.Argv[0], err)
		}
	}
	if err := do("insert or replace into position values (?, ?)", b.Shard, b.Position); err != nil {
		return err
	}
	return tx.Commit()
}

// change applies one effect. A field or key that expires comes as HDEL or DEL, so deadlines are of no interest; keys that are no hashes are
// passed over, except that a SET ends the hash that was there.
func change(do func(query string, args ...any) error, shard int, argv [][]byte) error {
	keys := argv[1:]
	switch string(argv[0]) {
	case "HSET":
		for i := 2; i+1 < len(argv); i += 2 {
			if err := do("insert or replace into field values (?, ?, ?, ?)", blob(argv[1]), blob(argv[i]), blob(argv[i+1]), shard); err != nil {
				return err
			}
		}
		return nil
	case "HDEL":
		for _, name := range argv[2:] {
			if err := do("delete from field where key = ? and name = ?", blob(argv[1]), blob(name)); err != nil {
				return err
			}
		}
		return nil
	case "DEL":
	case "SET":
		keys = argv[1:2]
	case "MSET":
		keys = nil
		for i := 1; i < len(argv); i += 2 {
			keys = append(keys, argv[i])
		}
	default:
		return nil
	}
	for _, key := range keys {
		if err := do("delete from field where key = ?", blob(key)); err != nil {
			return err
		}
	}
	return nil
}

// blob keeps an empty string from being stored as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
