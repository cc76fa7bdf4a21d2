package bench

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
)

// capture returns the bytes of the FEED.READ reply at the beginning of s.
func capture(addr string, s span) ([]byte, error) {
	c, err := newConsumer(addr, s.shard, cursor{s.generation, s.base})
	if err != nil {
		return nil, err
	}
	defer c.close()
	var reply bytes.Buffer
	c.src = io.TeeReader(c.nc, &reply)
	if err := c.request(); err != nil {
		return nil, err
	}
	n, err := c.head()
	if err != nil {
		return nil, explainWindow(err)
	}
	err = c.skipFrames(n)
	return reply.Bytes(), err
}

// probe is the least that a feed could be: it answers whatever it is asked with the same bytes,
// copied once.
type probe struct {
	addr  string
	l     net.Listener
	reply []byte
	wg    sync.WaitGroup
}

func startProbe(reply []byte) (*probe, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &probe{addr: l.Addr().String(), l: l, reply: reply}
	p.wg.Go(p.accept)
	return p, nil
}

func (p *probe) accept() {
	for {
		nc, err := p.l.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { _ = p.serve(nc) }) // ends when the client leaves
	}
}

func (p *probe) serve(nc net.Conn) error {
	defer nc.Close()
	requests := newReplies(nc, 4<<10) // a request has the form of a reply
	buf := make([]byte, len(p.reply))
	for {
		if err := requests.skip(); err != nil {
			return err
		}
		copy(buf, p.reply)
		if _, err := nc.Write(buf); err != nil {
			return err
		}
	}
}

// close ends the probe. REQUIRES: its clients have left.
func (p *probe) close() error {
	err := p.l.Close()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
