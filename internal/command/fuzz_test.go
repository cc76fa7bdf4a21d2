package command

import (
	"bytes"
	"strings"
	"testing"
)

// plannedRows are the rows that have a planner.
func plannedRows() []*Command {
	var rows []*Command
	for _, c := range All() {
		if c.Plan != nil {
			rows = append(rows, c)
		}
	}
	return rows
}

// FuzzPlan runs requests built from bytes, one a line: the first byte picks the row, the arguments
// are separated by spaces. No planner may panic; effects must be valid and fold; the reply must be
// exactly one value; requests without effects must change nothing.
func FuzzPlan(f *testing.F) {
	rows := plannedRows()
	index := map[string]byte{}
	for i, c := range rows {
		index[c.Name] = byte(i)
	}
	seed := func(script string) {
		var b []byte
		for line := range strings.SplitSeq(script, ";") {
			name, rest, _ := strings.Cut(line, " ")
			b = append(append(append(b, index[name]), rest...), '\n')
		}
		f.Add(b)
	}
	for _, c := range effectCases {
		script := strings.ReplaceAll(c.request, `""`, "")
		if c.before != "" {
			script = c.before + ";" + script
		}
		parts := strings.Split(script, ";")
		for i, p := range parts {
			name, rest, _ := strings.Cut(p, " ")
			parts[i] = strings.ToLower(name) + " " + rest
		}
		seed(strings.Join(parts, ";"))
	}
	seed("set a abc;set b xbc;lcs a b IDX WITHMATCHLEN;getrange a -2 -1;object|encoding a;keys a*;scan 0 MATCH [^")
	seed("incrbyfloat k 0x1p3;incrbyfloat k 1e-30;incrbyfloat k -inf;setrange k 70000 x;pexpiretime k")
	f.Fuzz(func(t *testing.T, script []byte) {
		h := newHarness(t, 3)
		h.ctx.MaxBulk = 1 << 20
		for line := range bytes.SplitSeq(script, []byte{'\n'}) {
			if len(line) == 0 {
				continue
			}
			c := rows[int(line[0])%len(rows)]
			args := bytes.Split(line[1:], []byte{' '})
			fuzzOne(t, h, append(bytes.Split([]byte(c.Name), []byte{'|'}), args...))
			h.ctx.Now += int64(len(line))
			h.w.Proto = 5 - max(2, h.w.Proto)
		}
	})
}

func fuzzOne(t *testing.T, h *harness, args [][]byte) {
	before := h.digest()
	h.exec(args)
	if err := oneReply(h.w.Buf); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if len(h.ctx.Planned()) == 0 && h.digest() != before {
		t.Fatalf("%q: no effects, but the state changed", args)
	}
}
