package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// parseAll returns the requests of in, printed, and the error that ended it, with the input cut by next.
func parseAll(tb testing.TB, r *Reader, in []byte, next func() int) (reqs []string, err error) {
	tb.Helper()
	return parseAhead(tb, r, in, next, 0)
}

// parseAhead is parseAll of a reader that splits up to ahead requests before their turn.
func parseAhead(tb testing.TB, r *Reader, in []byte, next func() int, ahead int) (reqs []string, err error) {
	tb.Helper()
	var coming [][][]byte // requests split ahead
	for arrived := 0; ; {
		for {
			if ahead > 0 && r.sc.next == len(r.sc.ahead) {
				if len(coming) > 0 {
					tb.Fatalf("%q was announced and did not come", coming)
				}
				r.split(ahead)
				coming = r.coming(nil)
			}
			early := r.sc.next < len(r.sc.ahead)
			args, e := r.Next()
			if early {
				if len(coming) == 0 || !slices.EqualFunc(coming[0], args, bytes.Equal) {
					tb.Fatalf("%q announced, %q came", coming, args)
				}
				coming = coming[1:]
			}
			if errors.Is(e, ErrIncomplete) {
				break
			}
			if e != nil {
				return reqs, e
			}
			reqs = append(reqs, fmt.Sprintf("%q", args))
		}
		r.Settle()
		checkHeld(tb, r)
		if arrived == len(in) {
			return reqs, nil
		}
		n := min(next(), len(in)-arrived)
		arrived += feed(r, in[arrived:arrived+n], n%3 == 0)
	}
}

// checkHeld fails if r holds more than is allowed between turns.
func checkHeld(tb testing.TB, r *Reader) {
	tb.Helper()
	if r.Held() > 4*r.Buffered()+2*growStep {
		tb.Fatalf("holds %d bytes for %d", r.Held(), r.Buffered())
	}
	if r.Buffered() == 0 && r.Held() != 0 {
		tb.Fatalf("holds %d bytes for nothing", r.Held())
	}
}

// feed gives p to r in one of the two ways, and returns how much it took.
func feed(r *Reader, p []byte, direct bool) int {
	if direct {
		r.Feed(bytes.Clone(p))
		return len(p)
	}
	n := copy(r.Space(), p)
	r.Advance(n)
	return n
}

func newTestReader(authenticated bool) *Reader {
	r := NewReader(&Limits{})
	r.sc.pool.limit = 0 // a buffer from the pool may be larger than needed
	r.SetAuthenticated(authenticated)
	return r
}

func whole() int  { return 1 << 30 }
func single() int { return 1 }

// bothWays are the extremes of splitting.
var bothWays = map[string]func() int{"whole": whole, "bytes": single}

var protocolErrors = []struct {
	in   string
	auth bool
	want string // "" is no error
}{
	{"*1048577\r\n", true, "invalid multibulk length"},
	{"*1048576\r\n", true, ""},
	{"*9223372036854775807\r\n", true, "invalid multibulk length"},
	{"*99999999999999999999999\r\n", true, "invalid multibulk length"},
	{"*-99999999999999999999999\r\n", true, "invalid multibulk length"},
	{"*\r\n", true, "invalid multibulk length"},
	{"*x\r\n", true, "invalid multibulk length"},
	{"*+1\r\n", true, "invalid multibulk length"},
	{"*01\r\n", true, "invalid multibulk length"},
	{"*1 \r\n", true, "invalid multibulk length"},
	{"*-0\r\n", true, "invalid multibulk length"},
	{"*-\r\n", true, "invalid multibulk length"},
	{"*1" + tooLong, true, "too big mbulk count string"},
	{"*" + tooLong + "\r\n", true, "too big mbulk count string"},
	{"*11\r\n", false, "unauthenticated multibulk length"},
	{"*10\r\n", false, ""},
	{"*1\r\nPING\r\n", true, "expected '$', got 'P'"},
	{"*1\r\n\r\n", true, "expected '$', got '\r'"},
	{"*2\r\n$4\r\nECHO\r\n:1\r\n", true, "expected '$', got ':'"},
	{"*2\r\n$4\r\nECHOxx*1\r\n", true, "expected '$', got '*'"},
	{"*1\r\n$\r\n", true, "invalid bulk length"},
	{"*1\r\n$-1\r\n", true, "invalid bulk length"},
	{"*1\r\n$x\r\n", true, "invalid bulk length"},
	{"*1\r\n$01\r\nx\r\n", true, "invalid bulk length"},
	{"*1\r\n$+1\r\nx\r\n", true, "invalid bulk length"},
	{"*1\r\n$1x\r\nx\r\n", true, "invalid bulk length"},
	{"*1\r\n$536870913\r\n", true, "invalid bulk length"},
	{"*1\r\n$536870912\r\n", true, ""},
	{"*1\r\n$9223372036854775807\r\n", true, "invalid bulk length"},
	{"*1\r\n$9223372036854775808\r\n", true, "invalid bulk length"},
	{"*1\r\n$-9223372036854775808\r\n", true, "invalid bulk length"},
	{"*1\r\n$18446744073709551617\r\n", true, "invalid bulk length"},
	{"*1\r\n$" + tooLong, true, "too big bulk count string"},
	{"*1\r\n$" + tooLong + "\r\n", true, "too big bulk count string"},
	{"*1\r\n$16385\r\n", false, "unauthenticated bulk length"},
	{"*1\r\n$16384\r\n", false, ""},
	{strings.Repeat("x", maxLine+1), true, "too big inline request"},
	{strings.Repeat("x", maxLine+1) + "\r\n", true, "too big inline request"},
	{strings.Repeat("x", maxLine-1) + "\r\n", true, ""},
	{"SET \"a b\r\n", true, "unbalanced quotes in request"},
	{"SET 'a\r\n", true, "unbalanced quotes in request"},
	{"SET \"a\"b\r\n", true, "unbalanced quotes in request"},
	{"SET 'a'b\r\n", true, "unbalanced quotes in request"},
	{"SET \"a\\\r\n", true, "unbalanced quotes in request"},
	{"+OK\r\n", true, ""},
}

var tooLong = strings.Repeat("1", maxLine+1)

func TestProtocolErrors(t *testing.T) {
	for _, tt := range protocolErrors {
		for name, next := range bothWays {
			in := "PING\r\n*1\r\n$4\r\nPING\r\n" + tt.in
			reqs, err := parseAll(t, newTestReader(tt.auth), []byte(in), next)
			if len(reqs) < 2 || reqs[0] != `["PING"]` || reqs[1] != `["PING"]` {
				t.Errorf("%.40q %s: the requests before: %q", tt.in, name, reqs)
			}
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "Protocol error: ")
			}
			if got != tt.want {
				t.Errorf("%.40q %s: error %q, want %q", tt.in, name, got, tt.want)
			}
		}
	}
}

func TestRequests(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"*0\r\n*-1\r\n\r\n\n  \r\nPING\r\n", []string{`["PING"]`}},
		{"*-5\r\nPING\n", []string{`["PING"]`}},
		{"*2\r\n$0\r\n\r\n$1\r\n\r\r\n", []string{`["" "\r"]`}},
		{"*1\rX$1\rYaZZ", []string{`["a"]`}},
		{"  set  a\tb \r\n", []string{`["set" "a" "b"]`}},
		{`x "a b" 'c d' e"f g" ""` + "\r\n", []string{`["x" "a b" "c d" "ef g" ""]`}},
		{`"\x41\n\r\t\b\a\\\"\q\xzz\x4"` + "\n", []string{`["A\n\r\t\b\a\\\"qxzzx4"]`}},
		{`'a\'b\n'` + "\n", []string{`["a'b\\n"]`}},
		{"a\rb\n", []string{`["a" "b"]`}},
		{"\va\vb\v \f\n", []string{`["a\vb\v"]`}},
		{"*1\r\n$12\r\nabcdefghijkl\r\n*11\r\n" + strings.Repeat("$1\r\nx\r\n", 11), []string{
			`["abcdefghijkl"]`, `["x"` + strings.Repeat(` "x"`, 10) + `]`,
		}},
	}
	for _, tt := range tests {
		for name, next := range bothWays {
			reqs, err := parseAll(t, newTestReader(true), []byte(tt.in), next)
			if err != nil || strings.Join(reqs, "|") != strings.Join(tt.want, "|") {
				t.Errorf("%q %s: %q, %v; want %q", tt.in, name, reqs, err, tt.want)
			}
		}
	}
}

func TestReaderLimits(t *testing.T) {
	lim := &Limits{}
	lim.MaxBulk.Store(20000)
	r := NewReader(lim)
	r.Feed([]byte("*1\r\n$20001\r\n"))
	if _, err := r.Next(); !errors.Is(err, errBulk) {
		t.Errorf("beyond MaxBulk: %v", err)
	}
	lim.MaxBulk.Store(0)
	lim.QueryBuffer.Store(100000)
	r = NewReader(lim)
	in := append([]byte("*1\r\n$200000\r\n"), make([]byte, 200000)...)
	_, err := parseAll(t, r, in, func() int { return 1000 })
	if !errors.Is(err, ErrQueryBuffer) || r.Buffered() > 102000 {
		t.Errorf("beyond QueryBuffer: %v with %d buffered", err, r.Buffered())
	}
}

// TestReaderHoldsWhatArrived announces much and sends little.
func TestReaderHoldsWhatArrived(t *testing.T) {
	for _, in := range []string{"*1\r\n$536870912\r\nabc", "*1048576\r\n", "*1048576\r\n$536870912\r\n"} {
		r := newTestReader(true)
		if _, err := parseAll(t, r, []byte(in), single); err != nil {
			t.Fatal(err)
		}
		if r.Held() > smallBuffer {
			t.Errorf("%q: holds %d bytes", in, r.Held())
		}
	}
}

// TestReaderLinear fails by time if input is examined more than once or copied with every read.
func TestReaderLinear(t *testing.T) {
	inputs := map[string][]byte{
		"arguments": append([]byte("*1048576\r\n"), bytes.Repeat([]byte("$3\r\nabc\r\n"), 1<<20)...),
		"bulk":      append([]byte("*1\r\n$67108864\r\n"), make([]byte, 64<<20+2)...),
		"inline":    bytes.Repeat([]byte("PING\r\n"), 1<<20),
	}
	for name, in := range inputs {
		start := time.Now()
		r, requests := newTestReader(true), 0
		for rest := in; len(rest) > 0; {
			rest = rest[feed(r, rest[:min(1459, len(rest))], false):]
			for {
				_, err := r.Next()
				if errors.Is(err, ErrIncomplete) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				requests++
			}
			r.Settle()
		}
		if d := time.Since(start); d > 5*time.Second || requests == 0 {
			t.Errorf("%s: %d requests in %v", name, requests, d)
		}
	}
}

// TestRandomPipeline cuts 10 MB of all kinds of requests at random points.
func TestRandomPipeline(t *testing.T) {
	in, want := randomPipeline(rand.New(rand.NewPCG(1, 2)), 10<<20)
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 3))
		got, err := parseAhead(t, newTestReader(true), in, func() int { return 1 + rng.IntN(1<<rng.IntN(18)) }, int(seed)*8)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d requests, %v; want %d", len(got), err, len(want))
		}
		for i := range got {
			if w := fmt.Sprintf("%q", want[i]); got[i] != w {
				t.Fatalf("request %d: %.200s; want %.200s", i, got[i], w)
			}
		}
	}
}

// randomPipeline returns at least size bytes of requests, all of them ECHO, with inline ones and empty lines
// between, and their arguments.
func randomPipeline(rng *rand.Rand, size int) (in []byte, want [][][]byte) {
	for len(in) < size {
		args := [][]byte{[]byte("ECHO")}
		switch rng.IntN(8) {
		case 0:
			in = append(in, "\r\n*0\r\n\n*-1\r\n"...)
			continue
		case 1:
			args = append(args, fmt.Appendf(nil, "w%d", rng.Uint32()))
			in = fmt.Appendf(in, "ECHO  %s\r\n", args[1])
		case 2:
			for range rng.IntN(1 << rng.IntN(12)) {
				args = append(args, randomBytes(rng, rng.IntN(9)))
			}
			in = appendRequest(in, args...)
		default:
			args = append(args, randomBytes(rng, rng.IntN(1<<rng.IntN(17))))
			in = appendRequest(in, args...)
		}
		want = append(want, args)
	}
	return in, want
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func appendRequest(dst []byte, args ...[]byte) []byte {
	dst = appendInt(dst, '*', int64(len(args)))
	for _, a := range args {
		dst = appendInt(dst, '$', int64(len(a)))
		dst = append(append(dst, a...), "\r\n"...)
	}
	return dst
}

// FuzzReader checks that splitting does not matter: whole requests take the fast path, pieces the other one.
func FuzzReader(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING \"a\\x41\"\r\n\r\n*0\r\n"), uint64(1), true)
	f.Add([]byte("*1\r\n$536870912\r\nx"), uint64(2), true)
	f.Add([]byte("*11\r\n$1\r\nx\r\n"), uint64(3), false)
	f.Add([]byte("*1\rX$1\rYaZZset 'a\\'b' \"c\n"), uint64(4), true)
	f.Add([]byte("*9999999\r\n"), uint64(5), true)
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, auth bool) {
		want, wantErr := parseAll(t, newTestReader(auth), in, whole)
		rng := rand.New(rand.NewPCG(seed, 0))
		cuts := map[string]func() int{
			"bytes":  single,
			"random": func() int { return 1 + rng.IntN(1+rng.IntN(100)) },
		}
		for name, next := range cuts {
			for _, ahead := range []int{0, 1, 3, 16} {
				got, err := parseAhead(t, newTestReader(auth), in, next, ahead)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%s, %d ahead: error %v, want %v", name, ahead, err, wantErr)
				}
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Fatalf("%s, %d ahead: %q, want %q", name, ahead, got, want)
				}
			}
		}
	})
}

// TestAheadForgets: what was split ahead is input like any other once something changes.
func TestAheadForgets(t *testing.T) {
	args := make([][]byte, maxUnauthArgs+1)
	in := appendRequest(appendRequest(nil, []byte("RESET")), args...)
	for name, change := range map[string]func(r *Reader){
		"logged out": func(r *Reader) { r.SetAuthenticated(false) },
		"settled":    func(r *Reader) { r.Settle(); r.SetAuthenticated(false) },
		"fed":        func(r *Reader) { r.Feed([]byte("x")); r.SetAuthenticated(false) },
	} {
		r := newTestReader(true)
		r.Feed(bytes.Clone(in))
		r.split(16)
		if got, err := r.Next(); err != nil || string(got[0]) != "RESET" {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
		change(r)
		if got, err := r.Next(); err == nil || errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: %q passed the limit of a client without authentication", name, got)
		}
	}
}
