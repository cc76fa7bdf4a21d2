package server

import (
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

// maxSpans is the room for spans that a session keeps from turn to turn.
const maxSpans = 256

// EndTurn implements resp.Handler: it settles what the replies of this turn wait for.
func (h handler) EndTurn(touched []*resp.Conn) {
	l := touched[0].Data.(*session).loop
	l.flushCalls()
	l.ctx.Turn = 0
	l.turn.Reset()
	for _, c := range touched {
		s := c.Data.(*session)
		s.publish()
		if s.tick != nil && !s.tick.Empty() {
			l.turn.Merge(s.tick)
		}
	}
	h.srv.evictor.check(h.srv)
	if !l.turn.Empty() {
		h.settle(l, touched)
	}
	for _, c := range touched {
		s := c.Data.(*session)
		s.tick = nil
		if !c.Held() {
			s.forgetSpans()
		}
	}
	l.used = 0
}

func (h handler) settle(l *loop, touched []*resp.Conn) {
	done, err := h.srv.eng.Settle(&l.turn)
	switch {
	case err != nil:
		for _, s := range waiting(touched) {
			s.unacknowledge(err)
		}
	case !done:
		held := waiting(touched)
		for _, s := range held {
			s.conn.Hold()
		}
		h.srv.eng.OnSafe(&l.turn, func(err error) {
			for _, s := range held {
				s.conn.Release(func() {
					if err != nil {
						s.unacknowledge(err)
					}
				})
			}
		})
	}
}

// waiting returns the sessions whose replies depend on the log.
func waiting(touched []*resp.Conn) []*session {
	var out []*session
	for _, c := range touched {
		if s := c.Data.(*session); s.tick != nil && !s.tick.Empty() {
			out = append(out, s)
		}
	}
	return out
}

func (s *session) forgetSpans() {
	s.spans = s.spans[:0]
	if cap(s.spans) > maxSpans {
		s.spans = nil
	}
}

// unacknowledge replaces the replies of commands that have logged something: the log has failed,
// so none of them is safe.
func (s *session) unacknowledge(cause error) {
	if len(s.spans) == 0 {
		return
	}
	w := &s.conn.W
	old := w.Buf
	text := engine.Misconf(cause)
	w.Buf = make([]byte, 0, len(old)+len(s.spans)*(len(text)+3))
	at := 0
	for _, p := range s.spans {
		w.Raw(old[at:p.start])
		w.Error(text)
		s.srv.stats.errorReply(text)
		at = p.end
	}
	w.Raw(old[at:])
	s.forgetSpans() // all are replaced
}
