package netns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"time"
)

// ErrUnavailable says why there can be no namespaces here.
var ErrUnavailable = errors.New("netns: not available here")

// Host is a network namespace. Its methods are safe for concurrent use.
type Host struct {
	Name string
	addr netip.Addr
	ns   *os.File
	tun  *os.File
}

// IP returns the address at which the other hosts reach it.
func (h *Host) IP() string { return h.addr.String() }

// Do runs f on the host: the sockets that it opens and the processes that it starts itself, not by other goroutines, are there
// for good. f runs on a goroutine of its own.
func (h *Host) Do(f func() error) error {
	return onThread(func() error {
		if err := h.enter(); err != nil {
			return fmt.Errorf("netns: entering %s: %w", h.Name, err)
		}
		return f()
	})
}

// Fault is what becomes of the packets from one host to another. The zero value passes them all on, at once.
type Fault struct {
	Down   bool          // all are lost
	Loss   float64       // this part of them is lost
	Delay  time.Duration // they come later
	Jitter time.Duration // and up to so much later again, so some overtake others
	// CutAfter, if it is not 0, is how many bytes pass before Down is true.
	CutAfter int
}

type direction struct{ from, to netip.Addr }

// Network is hosts and the wire between them. Its methods are safe for concurrent use.
type Network struct {
	hosts map[netip.Addr]*Host
	done  sync.WaitGroup

	mu     sync.Mutex
	faults map[direction]*Fault
	rng    *rand.Rand
}

// New makes a network of hosts with the given names. seed decides which packets are lost.
func New(seed uint64, names ...string) (*Network, []*Host, error) {
	n := &Network{hosts: make(map[netip.Addr]*Host), faults: make(map[direction]*Fault), rng: rand.New(rand.NewPCG(seed, 0))}
	var hosts []*Host
	for i, name := range names {
		h := &Host{Name: name, addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)})}
		n.hosts[h.addr] = h
		hosts = append(hosts, h)
		if err := makeHost(h); err != nil {
			n.Close()
			return nil, nil, err
		}
	}
	for _, h := range hosts {
		n.done.Go(func() { n.serve(h) })
	}
	return n, hosts, nil
}

// Close ends the network. What runs on its hosts loses all connections.
func (n *Network) Close() {
	for _, h := range n.hosts {
		for _, f := range []*os.File{h.tun, h.ns} {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	n.done.Wait()
}

// Set makes f the fault of the packets from one host to another.
func (n *Network) Set(from, to *Host, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[direction{from.addr, to.addr}] = &f
}

// Both is Set for both directions.
func (n *Network) Both(a, b *Host, f Fault) {
	n.Set(a, b, f)
	n.Set(b, a, f)
}

// Heal ends all faults.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.faults)
}

// Part cuts the hosts off all others.
func (n *Network) Part(hosts ...*Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	inside := make(map[netip.Addr]bool)
	for _, h := range hosts {
		inside[h.addr] = true
	}
	for a := range n.hosts {
		for b := range n.hosts {
			if inside[a] != inside[b] {
				n.faults[direction{a, b}] = &Fault{Down: true}
			}
		}
	}
}

// serve passes on what h sends, until the network is closed.
func (n *Network) serve(h *Host) {
	buf := make([]byte, 64<<10)
	for {
		size, err := h.tun.Read(buf)
		if err != nil {
			return
		}
		p := buf[:size]
		if size < 20 || p[0]>>4 != 4 {
			continue // the kernel's own, of IPv6
		}
		to, ok := n.hosts[netip.AddrFrom4([4]byte(p[16:20]))]
		if !ok {
			continue
		}
		switch later, passes := n.decide(direction{h.addr, to.addr}, size); {
		case !passes:
		case later > 0:
			late := append([]byte(nil), p...)
			time.AfterFunc(later, func() { _, _ = to.tun.Write(late) }) // a full queue, or the end of the network, loses it
		default:
			_, _ = to.tun.Write(p)
		}
	}
}

// decide says what becomes of a packet.
func (n *Network) decide(d direction, size int) (later time.Duration, passes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.faults[d]
	switch {
	case f == nil:
		return 0, true
	case f.Down || f.Loss > 0 && n.rng.Float64() < f.Loss:
		return 0, false
	case f.CutAfter > 0:
		if f.CutAfter -= size; f.CutAfter <= 0 {
			f.Down = true
		}
	}
	later = f.Delay
	if f.Jitter > 0 {
		later += time.Duration(n.rng.Int64N(int64(f.Jitter)))
	}
	return later, true
}
