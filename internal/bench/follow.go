package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// followBlock is the BLOCK of consumers that wait for frames.
const followBlock = time.Second

// followers read the feed as it grows: one connection for each shard and consumer.
type followers struct {
	frames atomic.Uint64
	stop   context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	err    error // the first; guarded by mu
}

// follow starts consumers at the tail. Each frame's value, the last argument, is given to f if that
// is not nil; f is called for one frame of a shard at a time.
func follow(ctx context.Context, addr string, consumers int, f func(value []byte)) (*followers, error) {
	shards, err := spans(addr)
	if err != nil {
		return nil, err
	}
	fs := new(followers)
	ctx, fs.stop = context.WithCancel(ctx)
	for range consumers {
		for _, s := range shards {
			c, err := newConsumer(addr, s.shard, cursor{s.generation, s.tail})
			if err != nil {
				return nil, errors.Join(err, fs.close())
			}
			c.block = followBlock
			context.AfterFunc(ctx, c.close)
			fs.wg.Go(func() { fs.end(ctx, fs.read(ctx, c, f)) })
		}
	}
	return fs, nil
}

func (fs *followers) read(ctx context.Context, c *consumer, f func(value []byte)) error {
	for ctx.Err() == nil {
		if err := c.request(); err != nil {
			return err
		}
		n, err := c.head()
		if err != nil {
			return err
		}
		if f == nil {
			err = c.skipFrames(n)
		} else {
			err = c.values(n, f)
		}
		if err != nil {
			return err
		}
		fs.frames.Add(uint64(n))
	}
	return nil
}

// end keeps the first error that is not due to stop.
func (fs *followers) end(ctx context.Context, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if ctx.Err() == nil && fs.err == nil {
		fs.err = err
	}
}

// close ends the consumers and returns the first error of one.
func (fs *followers) close() error {
	fs.stop()
	fs.wg.Wait()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.err
}
