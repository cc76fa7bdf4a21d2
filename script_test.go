package kevy_test

import (
	"errors"
	"testing"

	"github.com/kevydb/kevy"
)

func TestScriptsEmbedded(t *testing.T) {
	cfg := kevy.DefaultConfig()
	cfg.Dir = t.TempDir()
	s, err := kevy.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do := func(c kevy.Commands, want any, args ...any) {
		t.Helper()
		got, err := c.Do(args...)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: %v, want %v", args, got, want)
		}
	}
	do(s.Commands, int64(2), "EVAL", `redis.call("set",KEYS[1],1) return redis.call("incr",KEYS[1])`, 1, "k")
	do(s.Commands, "lib", "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('incr', k[1]) end)")
	do(s.Commands, int64(3), "FCALL", "f", 1, "k")
	do(s.Commands, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "SCRIPT", "LOAD", "return 1")
	undo := errors.New("undo")
	err = s.Update(func(tx *kevy.Tx) error {
		do(tx.Commands, int64(4), "FCALL", "f", 1, "k")
		do(tx.Commands, "OK", "FUNCTION", "FLUSH")
		do(tx.Commands, "ERR Function not found", "FCALL", "f", 1, "k")
		return undo
	})
	if !errors.Is(err, undo) {
		t.Errorf("Update: %v", err)
	}
	do(s.Commands, int64(4), "FCALL", "f", 1, "k")
}
