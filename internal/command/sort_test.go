package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSortKeys(t *testing.T) {
	for request, want := range map[string][]int{
		"SORT l":                                   {1},
		"SORT l STORE d":                           {1, 3},
		"SORT l BY store GET store STORE d":        {1, 7},
		"SORT l STORE d LIMIT 0 1 STORE e":         {1, 8},
		"SORT l LIMIT store 1 ASC alpha STORE d":   {1, 8},
		"SORT l STORE":                             {1},
		"SORT_RO l BY w_*":                         {1},
		"SORT store GET # GET store STORE store":   {1, 7},
		"SORT l ALPHA DESC STORE d GET h_*->store": {1, 5},
	} {
		args := fields(request)
		if got := KeyPositions(Lookup(args[0]), args, nil); !slices.Equal(got, want) {
			t.Errorf("%s: keys %v, want %v", request, got, want)
		}
	}
	args := fields("SORT l STORE d")
	if got := Lookup(args[0]).keyFlags(args, 3); !slices.Equal(got, []string{"OW", "update"}) {
		t.Errorf("flags of the destination: %v", got)
	}
}

var sortEffectCases = []effectCase{
	{"RPUSH l 2 1 3", "SORT l", "", ""},
	{"RPUSH l 2 1 3", "SORT l STORE d", "RPUSH d 1 2 3", ":3\r\n"},
	{"RPUSH l 2 1 3", "SORT l STORE l", "DEL l; RPUSH l 1 2 3", ":3\r\n"},
	{"SADD l 2 1;SET d v", "SORT l DESC STORE d", "DEL d; RPUSH d 2 1", ":2\r\n"},
	{"SET d v", "SORT l STORE d", "DEL d", ":0\r\n"},
	{"", "SORT l STORE d", "", ":0\r\n"},
	{"RPUSH l 1;SET d v", "SORT l GET d* GET * STORE d", "DEL d; RPUSH d  ", ":2\r\n"},
	{"RPUSH l x;SET d v", "SORT l STORE d", "", ""},
}

func TestSortEffects(t *testing.T) {
	for _, c := range sortEffectCases {
		h := newHarness(t, 1)
		for line := range strings.SplitSeq(c.before, ";") {
			if line != "" {
				h.exec(fields(line))
			}
		}
		if reply := h.exec(fields(c.request)); h.did != c.want || c.reply != "" && reply != c.reply {
			t.Errorf("%s; %s: effects %q, reply %q; want %q, %q", c.before, c.request, h.did, reply, c.want, c.reply)
		}
	}
}

// TestSortStoresInPieces stores more elements than one effect takes.
func TestSortStoresInPieces(t *testing.T) {
	h := newHarness(t, 2)
	for i := range 2000 {
		h.run("SADD", "s", fmt.Sprint(1999-i))
	}
	if got := h.run("SORT", "s", "STORE", "s"); got != ":2000\r\n" {
		t.Fatal(got)
	}
	if n := strings.Count(h.did, "RPUSH"); n != 4 {
		t.Errorf("%d effects", n)
	}
	if got := h.run("LRANGE", "s", "-1", "-1"); got != "*1\r\n$4\r\n1999\r\n" {
		t.Error(got)
	}
}
