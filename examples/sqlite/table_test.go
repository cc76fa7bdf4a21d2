package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/kevydb/kevy"
)

// TestInStep stops and starts the mirror while hashes change, expire, are renamed and flushed, and compares the table with the store.
func TestInStep(t *testing.T) {
	store, err := kevy.Open(kevy.DefaultConfig().WithFeed(64 << 10)) // small: some stops are longer than the window
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // in memory
	path := filepath.Join(t.TempDir(), "users.db")
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		table, err := OpenTable(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		m := &kevy.Mirror{Store: store, Prefixes: []string{"user:"}, Apply: table.Apply, Load: table.Load}
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		write(t, store, r, 300)
		if round%4 == 1 {
			if err := store.FlushAll(); err != nil {
				t.Fatal(err)
			}
			write(t, store, r, 100)
		}
		if round%2 == 0 {
			await(t, store, m, table)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, store, r, 50+round*100)
	}
}

// write changes hashes, and other keys of the same names.
func write(t *testing.T, s *kevy.Store, r *rand.Rand, n int) {
	t.Helper()
	for i := range n {
		key, other := fmt.Sprint("user:", r.IntN(40)), fmt.Sprint("user:", r.IntN(40))
		var err error
		switch r.IntN(8) {
		case 0:
			_, err = s.Do("HDEL", key, "name")
		case 1:
			_, err = s.Do("DEL", key, other, "order:1")
		case 2:
			_, err = s.Do("HINCRBY", key, "visits", 1)
		case 3:
			_, err = s.Do("PEXPIRE", key, 1+r.IntN(100))
		case 4:
			_, _ = s.Do("RENAME", key, other) // there may be no such key
		case 5:
			err = s.Update(func(tx *kevy.Tx) error {
				_, err1 := tx.Do("SET", key, "no hash")
				_, err2 := tx.Do("DEL", key)
				_, err3 := tx.Do("HSET", key, "", i)
				return errors.Join(err1, err2, err3)
			})
		default:
			_, err = s.Do("HSET", key, "name", i, "email", fmt.Sprint(i, "@example.com"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// await waits until the mirror stands at the store's tail and the table is what the store has; keys may expire meanwhile.
func await(t *testing.T, s *kevy.Store, m *kevy.Mirror, table *Table) {
	t.Helper()
	var got, want map[string]string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		tail, err := s.ChangesTail()
		if err != nil {
			t.Fatal(err)
		}
		st := m.Status()
		if len(st) != 1 || st[0].Cursor != tail || st[0].Rebuilding {
			continue
		}
		if got, want = inTable(t, table), inStore(t, s); len(want) > 0 && maps.Equal(got, want) {
			return
		}
	}
	t.Fatalf("the table has %v, the store %v; %+v", got, want, m.Status())
}

// inStore returns all fields of all hashes.
func inStore(t *testing.T, s *kevy.Store) map[string]string {
	t.Helper()
	fields := make(map[string]string)
	keys, err := s.Keys("user:*")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		reply, err := s.Do("HGETALL", key)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := reply.([]any)
		for i := 0; i < len(list); i += 2 {
			fields[fmt.Sprintf("%s %q", key, list[i])] = fmt.Sprint(list[i+1])
		}
	}
	return fields
}

// inTable returns all rows.
func inTable(t *testing.T, table *Table) map[string]string {
	t.Helper()
	rows, err := table.db.Query("select key, name, value from field")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // read to the end
	fields := make(map[string]string)
	for rows.Next() {
		var key, name, value []byte
		if err := rows.Scan(&key, &name, &value); err != nil {
			t.Fatal(err)
		}
		fields[fmt.Sprintf("%s %q", key, name)] = string(value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return fields
}
