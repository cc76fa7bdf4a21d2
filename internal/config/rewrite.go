package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Rewrite brings the file c was read from up to date (CONFIG REWRITE): a value that is not what
// the file says is replaced where it stands, a key that the file lacks and that is not at its
// default is added to its table; comments, order and everything else stay. The file is replaced
// atomically.
func (c *Config) Rewrite() error {
	old, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	text, err := c.rewritten(string(old))
	if err != nil {
		return err
	}
	return replaceFile(c.File, text)
}

// rewritten returns the new text of a file whose text is old.
func (c *Config) rewritten(old string) (string, error) {
	current, err := parseFile(c.File, old)
	if err != nil {
		return "", err
	}
	d := newDocument(old)
	inFile := make(map[*Key]bool)
	for _, g := range current {
		inFile[g.key] = true
		was := Default()
		if err := was.Set(g.key, g.text); err != nil || was.Text(g.key) != c.Text(g.key) {
			d.replace(g.key, c.tomlValue(g.key))
		}
	}
	for _, k := range Keys() {
		if !k.Fixed && !inFile[k] && c.Text(k) != Default().Text(k) {
			d.add(k, c.tomlValue(k))
		}
	}
	text := d.String()
	return text, c.agrees(text)
}

// agrees checks that a file with this text gives exactly c's values: what cannot be rewritten
// faithfully is refused, not damaged.
func (c *Config) agrees(text string) error {
	values, err := parseFile(c.File, text)
	if err != nil {
		return fmt.Errorf("rewritten file does not parse: %w", err)
	}
	got := Default()
	for _, g := range values {
		if err := got.Set(g.key, g.text); err != nil {
			return fmt.Errorf("%s: %w", g.where, err)
		}
	}
	for _, k := range Keys() {
		if got.Text(k) != c.Text(k) {
			return fmt.Errorf("cannot rewrite %s in place; change it by hand to %s", k.TOML(), c.tomlValue(k))
		}
	}
	return nil
}

// tomlValue is k's value as TOML source.
func (c *Config) tomlValue(k *Key) string {
	v := c.Text(k)
	switch k.Kind {
	case Bool:
		return strconv.FormatBool(v == "yes")
	case Int, Size:
		return v
	case Octal:
		return "0o" + v
	case Users:
		return tomlArray(k.words(v))
	default:
		return quoteTOML(v)
	}
}

// tomlArray writes an array, one string a line.
func tomlArray(lines []string) string {
	if len(lines) == 0 {
		return "[]"
	}
	var b strings.Builder
	b.WriteString("[\n")
	for _, line := range lines {
		b.WriteString("  " + quoteTOML(line) + ",\n")
	}
	b.WriteByte(']')
	return b.String()
}

// quoteTOML writes s as a basic string. TOML holds UTF-8 only.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// replaceFile writes text beside path and renames it over path, both synced.
func replaceFile(path, text string) (err error) {
	mode := os.FileMode(0o600)
	if fi, serr := os.Stat(path); serr == nil {
		mode = fi.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.WriteString(text); err == nil {
		if err = f.Chmod(mode); err == nil {
			err = f.Sync()
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // opened for reading
	return d.Sync()
}

// document is a TOML file as text, with the places of its keys.
type document struct {
	text    string
	entries []entry
	ends    map[string]int // table -> where a new key of it goes
	tables  []string
}

// entry is one key = value; start and end enclose the value.
type entry struct {
	table, name string
	start, end  int
}

func newDocument(text string) *document {
	d := &document{text: text}
	d.scan()
	return d
}

// scan finds tables and keys. REQUIRES: text is valid TOML of plain tables and key = value lines.
func (d *document) scan() {
	d.entries, d.tables = nil, []string{""}
	d.ends = map[string]int{"": 0}
	table := ""
	for pos := 0; pos < len(d.text); {
		line, next := lineAt(d.text, pos)
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "["):
			table = strings.Trim(tableName(trimmed), `"' `)
			d.tables = append(d.tables, table)
			d.ends[table] = next
		case trimmed != "" && trimmed[0] != '#':
			if eq := strings.IndexByte(line, '='); eq >= 0 {
				start := pos + eq + 1
				for start < len(d.text) && (d.text[start] == ' ' || d.text[start] == '\t') {
					start++
				}
				end := valueEnd(d.text, start)
				d.entries = append(d.entries, entry{table, cleanKey(line[:eq]), start, end})
				_, next = lineAt(d.text, end)
				d.ends[table] = next
			}
		}
		pos = next
	}
}

func lineAt(text string, pos int) (line string, next int) {
	if nl := strings.IndexByte(text[pos:], '\n'); nl >= 0 {
		return text[pos : pos+nl], pos + nl + 1
	}
	return text[pos:], len(text)
}

func tableName(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
	return name
}

// cleanKey drops quotes and spaces of a key and its parts.
func cleanKey(s string) string {
	parts := strings.Split(s, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, ".")
}

// valueEnd returns the end of the TOML value that begins at start: strings (one-line and
// multi-line), arrays over several lines, or a bare word.
func valueEnd(text string, start int) int {
	depth := 0
	for i := start; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			i = stringEnd(text, i)
			if depth == 0 {
				return i
			}
		case c == '[' || c == '{':
			depth++
			i++
		case c == ']' || c == '}':
			depth--
			i++
			if depth == 0 {
				return i
			}
		case depth == 0 && (c == '#' || c == '\n' || c == '\r' || c == ' ' || c == '\t'):
			return i
		case c == '#':
			_, i = lineAt(text, i)
		default:
			i++
		}
	}
	return len(text)
}

// stringEnd returns the end of the string whose quote is at i.
func stringEnd(text string, i int) int {
	quote := text[i : i+1]
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for j := i + len(quote); j < len(text); {
		switch {
		case text[j] == '\\' && quote[0] == '"':
			j += 2
		case strings.HasPrefix(text[j:], quote):
			for j += len(quote); len(quote) == 3 && j < len(text) && text[j] == quote[0]; {
				j++ // a multi-line string may end in up to two more quotes
			}
			return j
		default:
			j++
		}
	}
	return len(text)
}

// replace puts value where k stands.
func (d *document) replace(k *Key, value string) {
	for _, e := range d.entries {
		name := strings.Split(e.name, ".")
		if e.table != "" {
			name = append([]string{e.table}, name...)
		}
		if found, ok := lookupFile(name); ok && found == k {
			d.text = d.text[:e.start] + value + d.text[e.end:]
			d.scan()
			return
		}
	}
}

// add puts k = value at the end of its table, making the table if there is none.
func (d *document) add(k *Key, value string) {
	line := k.localName() + " = " + value + "\n"
	if slices.Contains(d.tables, k.Section) {
		at := d.ends[k.Section]
		if at > 0 && d.text[at-1] != '\n' {
			line = "\n" + line
		}
		d.text = d.text[:at] + line + d.text[at:]
	} else {
		if d.text != "" && !strings.HasSuffix(d.text, "\n") {
			d.text += "\n"
		}
		d.text += "\n[" + k.Section + "]\n" + line
	}
	d.scan()
}

// String returns the text.
func (d *document) String() string { return d.text }
