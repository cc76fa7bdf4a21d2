package kevy

import (
	"errors"

	"github.com/kevydb/kevy/internal/engine"
)

// Tx is a group of reads and writes inside Update. It must not be used after Update's function
// has returned, nor by other goroutines.
type Tx struct {
	Commands
}

// ErrTxDone is returned by a Tx used after its Update.
var ErrTxDone = errors.New("kevy: the transaction is over")

// Update runs fn as one group: its reads see its own writes and nothing changes in between; when fn
// returns nil all writes are logged as one group, durable together or not at all; when it returns an
// error or panics they are undone. fn must not use the Store itself. Other operations wait
// meanwhile.
func (s *Store) Update(fn func(tx *Tx) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	c := s.calls.Get().(*call)
	defer s.calls.Put(c)
	c.ticket.Reset()
	var failure error
	err := s.e.Update(c.ctx, &c.ticket, s.local, func(run func() error) error {
		tx := &Tx{}
		tx.run = func(args [][]byte, read func([]byte) error) error {
			cmd, err := s.lookup(args)
			if err != nil {
				return err
			}
			c.w.Buf = c.w.Buf[:0]
			c.ctx.Cmd, c.ctx.Args, c.ctx.W = cmd, args, &c.w
			if err := run(); err != nil {
				if cmd.Plan != nil {
					return Error(engine.Misconf(err))
				}
				return err
			}
			return read(c.w.Buf)
		}
		defer func() { tx.run = func([][]byte, func([]byte) error) error { return ErrTxDone } }()
		failure = fn(tx)
		return failure
	})
	switch {
	case failure != nil:
		return failure
	case err != nil:
		return Error(engine.Misconf(err))
	}
	return s.safe(&c.ticket)
}
