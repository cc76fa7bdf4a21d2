package resp

import (
	"bytes"
	"testing"
)

// TestGive: a large reply becomes the output without a copy, behind others and when small it is copied.
func TestGive(t *testing.T) {
	c := &Conn{t: &turn{sc: newScratch(0)}}
	small, large := []byte("+OK\r\n"), append(TakeBuffer(300<<10), bytes.Repeat([]byte("x"), 200<<10)...)
	if cap(large) < 300<<10 {
		t.Fatalf("%d bytes of room", cap(large))
	}
	c.Give(large)
	if &c.W.Buf[0] != &large[0] {
		t.Fatal("a large reply was copied")
	}
	c.Give(small)
	if want := append(bytes.Clone(large), small...); !bytes.Equal(c.W.Buf, want) {
		t.Fatal("replies out of order")
	}
	c.W.Buf = make([]byte, 0, 64)
	c.Give(small)
	if &c.W.Buf[0] == &small[0] || !bytes.Equal(c.W.Buf, small) {
		t.Fatal("a small reply was not copied")
	}
}
