package server

import "testing"

// TestKilledAtWork kills clients whose command runs on a goroutine of its own, at any moment of it: what such a session holds is
// given up by that goroutine, and its loop leaves it alone from then on. It is for the race detector.
func TestKilledAtWork(t *testing.T) {
	s := start(t, testOptions{})
	at := s.client()
	for range 300 {
		c := s.client()
		id := c.do("CLIENT ID")[1:]
		c.send("PREFIX.DIGEST x")
		at.do("CLIENT KILL ID " + id)
		c.Close()
	}
}
