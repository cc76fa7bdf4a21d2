package server

import "time"

// rateSlots is the number of samples that an instantaneous rate averages over.
const rateSlots = 16

// rates are the instantaneous figures of INFO stats. Guarded by stats.mu.
type rates struct {
	commands, in, out rate
}

// rate is the average change per second of a counter over the last samples.
type rate struct {
	last    uint64
	at      time.Time
	samples [rateSlots]float64
	next    int
}

func (r *rate) sample(counter uint64, now time.Time) {
	if !r.at.IsZero() {
		if dt := now.Sub(r.at).Seconds(); dt > 0 && counter >= r.last {
			r.samples[r.next] = float64(counter-r.last) / dt
			r.next = (r.next + 1) % rateSlots
		}
	}
	r.last, r.at = counter, now
}

func (r *rate) perSecond() float64 {
	sum := 0.0
	for _, v := range r.samples {
		sum += v
	}
	return sum / rateSlots
}

// sampleRates is called every cronPeriod.
func (srv *Server) sampleRates(now time.Time) {
	net := srv.rs.Stats()
	st := srv.stats
	st.mu.Lock()
	defer st.mu.Unlock()
	st.rates.commands.sample(st.commands.Load(), now)
	st.rates.in.sample(net.BytesIn, now)
	st.rates.out.sample(net.BytesOut, now)
}
