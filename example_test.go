package kevy_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/kevydb/kevy"
)

// A Mirror copies what is there, then follows: here until it has seen enough.
func ExampleMirror() {
	store, err := kevy.Open(kevy.DefaultConfig().WithFeed(0))
	if err != nil {
		panic(err)
	}
	defer store.Close() //nolint:errcheck // it lives in memory
	if err := store.MSet(map[string][]byte{"user:1": []byte("Ada"), "user:2": []byte("Bob"), "order:1": []byte("tea")}); err != nil {
		panic(err)
	}
	enough := errors.New("enough")
	m := kevy.Mirror{Store: store, Prefixes: []string{"user:"}, Apply: func(_ context.Context, b *kevy.MirrorBatch) error {
		if b.Reset != nil {
			fmt.Println("forget all users")
		}
		for _, c := range b.Changes {
			fmt.Printf("%s\n", c.Argv)
		}
		if b.Reset == nil {
			return enough
		}
		_, err := store.Del("order:1", "user:2") // changes go on meanwhile
		return err
	}}
	if err := m.Run(context.Background()); !errors.Is(err, enough) {
		panic(err)
	}
	// Output:
	// forget all users
	// [SET user:1 Ada]
	// [SET user:2 Bob]
	// [DEL user:2]
}
