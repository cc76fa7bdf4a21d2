package kevy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kevydb/kevy"
)

// TestTooLarge: what no key may hold, or no frame, is refused before anything is logged, alone, in a transaction and by a script; the store
// goes on and opens again. The bytes are never touched, so they take no memory.
func TestTooLarge(t *testing.T) {
	cfg := kevy.DefaultConfig().WithDir(t.TempDir()).WithFeed(0)
	s := must[*kevy.Store](t)(kevy.Open(cfg))
	if err := s.Set("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	tail := must[any](t)(s.Do("FEED.TAIL", 0))
	big := make([]byte, 512<<20+1)
	most := big[:512<<20]
	for name, write := range map[string]func(c kevy.Commands) error{
		"value":   func(c kevy.Commands) error { return c.Set("a", big) },
		"key":     func(c kevy.Commands) error { _, err := c.Do("SET", big, "x"); return err },
		"element": func(c kevy.Commands) error { _, err := c.Do("RPUSH", "l", "x", big); return err },
		"frame":   func(c kevy.Commands) error { _, err := c.Do("RPUSH", "l", most, most, most, most); return err },
		"pairs": func(c kevy.Commands) error {
			_, err := c.Do("MSET", "b", most, "c", most, "d", most, "e", most)
			return err
		},
	} {
		for where, err := range map[string]error{
			"alone":            write(s.Commands),
			"in a transaction": s.Update(func(tx *kevy.Tx) error { return write(tx.Commands) }),
		} {
			if reply, ok := errors.AsType[kevy.Error](err); !ok || !strings.HasPrefix(string(reply), "ERR string exceeds maximum allowed size") {
				t.Errorf("%s %s: %v", name, where, err)
			}
		}
	}
	if err := s.Update(func(tx *kevy.Tx) error { _ = tx.Set("a", big); return tx.Set("b", []byte("2")) }); err != nil {
		t.Error(err)
	}
	if _, err := s.Do("DEL", "b"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg)
	if n, err := s.Exists("a", "b", "c", "d", "e", "l"); n != 1 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	now := must[any](t)(s.Do("FEED.TAIL", 0))
	if was := tail.([]any)[1].(int64); now.([]any)[1] != was+2 {
		t.Errorf("tail %v, before %v: frames of what was refused", now, tail)
	}
}
