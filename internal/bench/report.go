package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is text in columns.
type Table struct {
	Head []string
	Rows [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the table; the first two columns begin at the left, numbers end at the right.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, r := range append([][]string{t.Head}, t.Rows...) {
		width = max(width, len(r[0]))
	}
	for _, r := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintf(tw, "%-*s\t%s\t\n", width, r[0], strings.Join(r[1:], "\t"))
	}
	return tw.Flush()
}

// Count writes 1200000 as 1.20M.
func Count(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0fk", n/1e3)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}

// Number writes a number with some three digits, and 0 (nothing known) as a dash.
func Number(n float64) string {
	switch {
	case n == 0:
		return "-"
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return fmt.Sprintf("%.1f", n)
	case n >= 1:
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.3f", n)
}

func (u Usage) cells() []string { return []string{Number(u.Server), Number(u.Client)} }

// Print writes a result of this package, or one that has a Table, as text.
func Print(w io.Writer, result any) error {
	t := new(Table)
	switch r := result.(type) {
	case interface{ Table() *Table }:
		t = r.Table()
	case LoadResult:
		t.Head = []string{"commands", "per second", "p50 us", "p99 us", "p99.9 us", "max us", "server us", "client us"}
		l := r.Latency
		t.Add(append([]string{
			Count(float64(r.Ops)), Count(r.Rate), Number(l.P50), Number(l.P99), Number(l.P999), Number(l.Max),
		}, r.Usage.cells()...)...)
	case []DrainRow:
		t.Head = []string{"reading", "consumers", "frames/s", "MB/s", "server us/frame", "client us/frame"}
		for _, r := range r {
			t.Add(append([]string{
				r.Name, fmt.Sprint(r.Consumers), Count(r.Rate), Number(r.MBps),
			}, r.Usage.cells()...)...)
		}
	case LatencyResult:
		t.Head = []string{"latency", "count", "p50 us", "p99 us", "p99.9 us", "max us"}
		for _, x := range []struct {
			name string
			p    Percentiles
		}{{"write", r.Write}, {"written to delivered", r.Deliver}} {
			t.Add(x.name, Count(float64(x.p.Count)), Number(x.p.P50), Number(x.p.P99), Number(x.p.P999), Number(x.p.Max))
		}
		fmt.Fprintf(w, "%s writes/s (asked %s, peak %s), %d frames lost\n",
			Count(r.Rate), Count(r.Asked), Count(r.Peak), r.Lost)
	case []WritersRow:
		t.Head = []string{"feed", "consumers", "writes/s", "frames/s", "server us/write", "client us/write", "rate x", "server x"}
		for _, r := range r {
			t.Add(append(append([]string{r.Name, fmt.Sprint(r.Consumers), Count(r.Rate), Count(r.Frames)},
				r.Usage.cells()...), Number(r.Ratio), Number(r.CPURatio))...)
		}
	case []ViewRow:
		t.Head = []string{"SET", "open", "writes/s", "p50 us", "p99 us", "max us", "server us", "client us", "p99 x"}
		for _, r := range r {
			t.Add(append(append([]string{
				r.Name, fmt.Sprintf("%.0f%%", 100*r.Open), Count(r.Rate), Number(r.P50), Number(r.P99), Number(r.Max),
			}, r.Usage.cells()...), Number(r.P99Ratio))...)
		}
	default:
		return fmt.Errorf("bench: no text for %T", result)
	}
	return t.Write(w)
}
