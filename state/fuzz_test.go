package state

import (
	"testing"

	"github.com/kevydb/kevy/log/effect"
)

// FuzzFold reads effects from bytes, valid or not, and views in between: whatever they are, the keyspace stays
// whole, and the views stay as they were.
func FuzzFold(f *testing.F) {
	f.Add([]byte("\x01\x02a\x03bcd\x06\x01a\x05hello\x07\x01a\x0210\x02xy\x02\x01a\xff\x08"))
	f.Add([]byte("\x01\x41" + string(make([]byte, 70)) + "\x05\x04a\x02hi"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ks := New(1)
		defer ks.Release()
		var views []*View
		var digests []uint64
		for len(data) > 0 && len(views) < 8 {
			op := data[0]
			data = data[1:]
			if op >= 0xf0 {
				views = append(views, ks.View())
				_, d := ks.Digest(nil, 0)
				digests = append(digests, d)
				continue
			}
			e := effect.Effect{Op: effect.Op(op & 15)}
			for range op >> 4 & 7 {
				var arg []byte
				arg, data = fuzzArg(data)
				e.Args = append(e.Args, arg)
			}
			_, before := ks.Digest(nil, 0)
			if _, err := ks.Fold(&e); err != nil {
				if _, after := ks.Digest(nil, 0); after != before {
					t.Fatalf("%s failed and changed the state", e.Op)
				}
			}
		}
		if err := ks.Check(); err != nil {
			t.Fatal(err)
		}
		for i, v := range views {
			if _, d := v.Digest(nil, 0); d != digests[i] {
				t.Fatal("a view changed")
			}
			v.Close()
		}
		if err := ks.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// fuzzArg takes an argument: its length, long ones made of one repeated byte, then its bytes.
func fuzzArg(data []byte) (arg, rest []byte) {
	if len(data) == 0 {
		return nil, nil
	}
	n := int(data[0])
	data = data[1:]
	if n >= 0xc0 && len(data) > 0 {
		arg = make([]byte, (n-0xc0)*997)
		for i := range arg {
			arg[i] = data[0]
		}
		return arg, data[1:]
	}
	n = min(n, len(data))
	return data[:n], data[n:]
}
