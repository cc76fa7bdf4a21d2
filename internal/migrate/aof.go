package migrate

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxManifest bounds what is read as a manifest.
const maxManifest = 16 << 20

// aofParts returns the files of an append-only log: path is the single file of Redis up to 6, the manifest that Redis 7 keeps
// beside the files, or the directory of that.
func aofParts(path string) ([]part, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.IsDir() {
		found, err := filepath.Glob(filepath.Join(globQuote(path), "*.manifest"))
		switch {
		case err != nil:
			return nil, err
		case len(found) != 1:
			return nil, fmt.Errorf("%s has %d manifests (*.manifest): name the manifest, or the file", path, len(found))
		}
		path = found[0]
	}
	if !strings.HasSuffix(path, ".manifest") {
		return []part{{path: path, aof: true, last: true}}, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(b) > maxManifest {
		return nil, fmt.Errorf("%s: %d bytes are too many for a manifest", path, len(b))
	}
	parts, err := parseManifest(string(b), filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return parts, nil
}

// globQuote makes a pattern that matches a path only.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// parseManifest reads a manifest: lines "file NAME seq N type T", where T is b (base), i (increment) or h (history, of no use).
func parseManifest(text, dir string) ([]part, error) {
	type entry struct {
		part
		seq int
	}
	var base, incs []entry
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		e, kind, err := manifestLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		item := entry{part{path: filepath.Join(dir, e.name), aof: true}, e.seq}
		switch kind {
		case "b":
			base = append(base, item)
		case "i":
			incs = append(incs, item)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(base) > 1 || len(base)+len(incs) == 0 {
		return nil, fmt.Errorf("it names %d base files and %d increments", len(base), len(incs))
	}
	slices.SortStableFunc(incs, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	parts := make([]part, 0, len(base)+len(incs))
	for i, e := range append(base, incs...) {
		if i > len(base) && e.seq != incs[i-len(base)-1].seq+1 {
			return nil, fmt.Errorf("increment %d follows %d: one is missing", e.seq, incs[i-len(base)-1].seq)
		}
		parts = append(parts, e.part)
	}
	parts[len(parts)-1].last = true
	return parts, nil
}

type manifestEntry struct {
	name string
	seq  int
}

func manifestLine(line string) (e manifestEntry, kind string, err error) {
	bad := errors.New("want: file NAME seq NUMBER type b|i|h")
	rest, ok := strings.CutPrefix(line, "file ")
	if !ok {
		return e, "", bad
	}
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return e, "", bad
		}
		if e.name, err = strconv.Unquote(quoted); err != nil {
			return e, "", bad
		}
		rest = rest[len(quoted):]
	} else {
		e.name, rest, _ = strings.Cut(rest, " ")
	}
	f := strings.Fields(rest)
	if len(f) < 4 || f[0] != "seq" || f[2] != "type" || !slices.Contains([]string{"b", "i", "h"}, f[3]) {
		return e, "", bad
	}
	if e.seq, err = strconv.Atoi(f[1]); err != nil || e.seq < 1 {
		return e, "", bad
	}
	if e.name == "" || strings.ContainsAny(e.name, `/\`) {
		return e, "", fmt.Errorf("file name %q: want a name in the manifest's directory", e.name)
	}
	return e, f[3], nil
}
