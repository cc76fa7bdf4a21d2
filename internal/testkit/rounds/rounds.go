// Package rounds has the flags of tests that do something again and again, at random.
package rounds

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Flags are -NAME.rounds and -NAME.seed of a package's tests.
type Flags struct {
	name   string
	rounds *int
	seed   *uint64
}

// Register makes the flags. It is to be called before the flags are parsed. The environment variable NAME_ROUNDS does what -NAME.rounds does.
func Register(name, what string) *Flags {
	given, err := strconv.Atoi(os.Getenv(strings.ToUpper(name) + "_ROUNDS"))
	if err != nil {
		given = 0
	}
	return &Flags{
		name:   name,
		rounds: flag.Int(name+".rounds", given, fmt.Sprintf("rounds %s (0: each test's own number)", what)),
		seed:   flag.Uint64(name+".seed", 0, "seed of the moments (0: a new one)"),
	}
}

// Rounds returns how many rounds to make: own, unless the command line says otherwise.
func (f *Flags) Rounds(own int) int {
	if *f.rounds > 0 {
		return *f.rounds
	}
	return own
}

// Seed returns the seed, and notes in the test's log how to have it again.
func (f *Flags) Seed(t testing.TB) uint64 {
	t.Helper()
	if *f.seed == 0 {
		*f.seed = rand.Uint64()>>1 | 1
	}
	t.Logf("seed %d (repeat with -%s.seed %d)", *f.seed, f.name, *f.seed)
	return *f.seed
}

// Rand returns a generator for a test; tests with other numbers have others.
func (f *Flags) Rand(t testing.TB, test uint64) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(f.Seed(t), test))
}
