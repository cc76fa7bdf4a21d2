package rounds

import (
	"flag"
	"testing"
)

func TestFlags(t *testing.T) {
	t.Setenv("OWN_ROUNDS", "7")
	own, other := Register("own", "here"), Register("other", "there")
	if own.Rounds(3) != 7 || other.Rounds(3) != 3 {
		t.Errorf("%d and %d rounds", own.Rounds(3), other.Rounds(3))
	}
	if err := flag.Set("own.rounds", "9"); err != nil || own.Rounds(3) != 9 {
		t.Errorf("%d rounds, %v", own.Rounds(3), err)
	}
	if err := flag.Set("own.seed", "5"); err != nil || own.Seed(t) != 5 || own.Rand(t, 1).Uint64() != own.Rand(t, 1).Uint64() || own.Rand(t, 1).Uint64() == own.Rand(t, 2).Uint64() {
		t.Error("a seed does not decide")
	}
	if s := other.Seed(t); s == 0 || s != other.Seed(t) {
		t.Error("no seed of its own")
	}
}
