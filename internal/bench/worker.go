package bench

import (
	"strings"
	"time"
)

// keyDigits are the digits of a key, as in redis-benchmark: key:000000000042.
const keyDigits = 12

// worker is one connection's share of a load.
type worker struct {
	conn *conn
	keys *chooser
	o    *LoadOptions
	sent int        // requests so far
	reqs []template // sent in turn; of Mix: GET, SET
	hist Histogram
}

// template is a request with the places of its keys' numbers.
type template struct {
	text []byte
	keys []int // offsets of the digits; the three bytes before ':' are the prefix
}

// newTemplate makes a template of args in which each key is given as placeholder.
func newTemplate(args ...string) template {
	text := appendCommand(nil, args...)
	t := template{text: text}
	for at := 0; ; at += keyDigits {
		i := strings.Index(string(text[at:]), placeholder)
		if i < 0 {
			return t
		}
		at += i
		t.keys = append(t.keys, at)
	}
}

const placeholder = "{key number}" // keyDigits long

// appendTo appends the request for the keys that next draws.
func (t *template) appendTo(out []byte, next func() uint64, every uint64) []byte {
	at := len(out)
	out = append(out, t.text...)
	for _, k := range t.keys {
		n := next()
		if every > 0 && n%every == 0 {
			copy(out[at+k-4:], "hit")
		}
		for i := at + k + keyDigits - 1; i >= at+k; i-- {
			out[i] = '0' + byte(n%10)
			n /= 10
		}
	}
	return out
}

func newWorkers(addr string, o *LoadOptions) ([]*worker, error) {
	reqs := o.Op.templates(o.Size)
	choosers := newChoosers(o.Clients, o.Keys, o.Dist, o.Seed)
	var out []*worker
	for i := range o.Clients {
		c, err := dial(addr)
		if err != nil {
			for _, w := range out {
				w.conn.close()
			}
			return nil, err
		}
		out = append(out, &worker{conn: c, keys: choosers[i], o: o, reqs: reqs})
	}
	return out, nil
}

// request appends one command.
func (w *worker) request(out []byte) []byte {
	i := w.sent % len(w.reqs)
	w.sent++
	if w.o.Op == Mix {
		i = 1
		if w.keys.rng.Float64() < w.o.ReadPart {
			i = 0
		}
	}
	return w.reqs[i].appendTo(out, w.keys.key, w.o.Every)
}

// run sends pipelines until the loader has no more. i is the worker's number: at a given rate the
// workers begin one after the other.
func (w *worker) run(l *loader, i int) error {
	pace := newPace(l.begin, w.o, i)
	for {
		start := pace.wait()
		n := l.take(w.o.Pipeline)
		if n == 0 {
			return nil
		}
		for range n {
			w.conn.out = w.request(w.conn.out)
		}
		now := time.Now()
		if start.IsZero() {
			start = now
		}
		if err := w.conn.nc.SetDeadline(now.Add(ioLimit)); err != nil {
			return err
		}
		if err := w.conn.send(); err != nil {
			return err
		}
		for range n {
			if err := w.conn.skip(); err != nil {
				return err
			}
		}
		w.hist.Record(time.Since(start), n)
		l.done.Add(uint64(n))
	}
}

// pace spaces the pipelines of one worker.
type pace struct {
	interval time.Duration // 0: no pace
	next     time.Time
}

func newPace(begin time.Time, o *LoadOptions, worker int) pace {
	if o.Rate == 0 {
		return pace{}
	}
	interval := time.Duration(float64(o.Pipeline*o.Clients) / o.Rate * float64(time.Second))
	return pace{interval: interval, next: begin.Add(interval * time.Duration(worker) / time.Duration(o.Clients))}
}

// wait waits for the next pipeline's turn. If its turn is past, because the one before it took long, it
// returns that turn: the latency counts from there. Else it returns zero: from now.
func (p *pace) wait() time.Time {
	if p.interval == 0 {
		return time.Time{}
	}
	turn := p.next
	p.next = p.next.Add(p.interval)
	if d := time.Until(turn); d > 0 {
		time.Sleep(d)
		return time.Time{}
	}
	return turn
}
