package killloop

import (
	"sync"

	"github.com/kevydb/kevy/internal/testkit/feed"
	"github.com/kevydb/kevy/internal/testkit/wire"
)

// follower reads one shard's feed until the server goes.
type follower struct {
	seen feed.Cursor
	err  error // other than the connection's end
}

func follow(addr string, shard int, from feed.Cursor, wg *sync.WaitGroup) (*follower, error) {
	c, err := wire.Dial(addr)
	if err != nil {
		return nil, err
	}
	f := &follower{seen: from}
	wg.Go(func() {
		defer c.Close()
		for {
			_, next, err := feed.Read(c, shard, f.seen, "BLOCK", "50", "COUNT", "100")
			if err != nil {
				if !wire.IsConnError(err) {
					f.err = err
				}
				return
			}
			f.seen = next
		}
	})
	return f, nil
}
