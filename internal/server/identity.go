package server

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
)

// identity are the random names that INFO shows.
type identity struct {
	run string // of this process

	mu   sync.Mutex
	repl string // changed by DEBUG CHANGE-REPL-ID
}

func (i *identity) init() { i.run, i.repl = randomHex(), randomHex() }

func (i *identity) replID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.repl
}

func (i *identity) changeReplID() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.repl = randomHex()
}

func randomHex() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
