package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// given is a value and where it came from, for messages.
type given struct {
	key   *Key
	text  string
	where string // "flag --port", "environment variable KEVY_PORT", "kevy.toml: port"
}

// readFile reads the keys a TOML file gives, in the file's order.
func readFile(path string) ([]given, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	return parseFile(path, string(data))
}

// parseFile is readFile on the file's text.
func parseFile(path, data string) ([]given, error) {
	root := make(map[string]any)
	meta, err := toml.Decode(data, &root)
	if err != nil {
		if perr, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, fmt.Errorf("%s:%d: no TOML, which this file has to be: %s", path, perr.Position.Line, perr.Message)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []given
	seen := make(map[*Key]string)
	for _, name := range meta.Keys() {
		full := strings.Join(name, ".")
		value, isTable := valueAt(root, name)
		if isTable {
			if len(name) != 1 || !isSection(name[0]) {
				return nil, fmt.Errorf("%s: unknown table [%s]", path, full)
			}
			continue
		}
		k, ok := lookupFile(name)
		if !ok {
			if k, known := Lookup(strings.ReplaceAll(full, "_", "-")); known && k.Fixed {
				return nil, fmt.Errorf("%s: unknown key %s (%s)", path, full, k.fixed())
			}
			return nil, fmt.Errorf("%s: unknown key %s", path, full)
		}
		if other, twice := seen[k]; twice {
			return nil, fmt.Errorf("%s: %s is given twice, also as %s", path, full, other)
		}
		seen[k] = full
		text, err := tomlText(k, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, full, err)
		}
		out = append(out, given{key: k, text: text, where: path + ": " + full})
	}
	return out, nil
}

// valueAt follows name into root; isTable is true for a table.
func valueAt(root map[string]any, name []string) (value any, isTable bool) {
	value = root
	for _, part := range name {
		m, ok := value.(map[string]any)
		if !ok {
			return value, false
		}
		value = m[part]
	}
	_, isTable = value.(map[string]any)
	return value, isTable
}

func isSection(name string) bool {
	for _, k := range Keys() {
		if k.Section == name {
			return true
		}
	}
	return false
}

// lookupFile finds the row a key of the file means. Dashes and underscores are the same there.
func lookupFile(name []string) (*Key, bool) {
	last := strings.ReplaceAll(name[len(name)-1], "-", "_")
	section := ""
	if len(name) == 2 {
		section = name[0]
	}
	if len(name) > 2 {
		return nil, false
	}
	for _, k := range Keys() {
		if k.Fixed {
			continue
		}
		if k.localName() == last && (k.Section == section || (section == "" && k.TopLevel)) {
			return k, true
		}
		if k.Section == "" && section == "" && matchesAlias(k, last) {
			return k, true
		}
	}
	return nil, false
}

func matchesAlias(k *Key, name string) bool {
	for _, a := range k.Aliases {
		if strings.ReplaceAll(a, "-", "_") == name {
			return true
		}
	}
	return false
}

// tomlText turns a TOML value into the text form Set reads.
func tomlText(k *Key, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		if k.Kind == Bool || k.Kind == Enum {
			return formatBool(v), nil
		}
	case int64:
		if k.Kind == Octal {
			return strconv.FormatInt(v, 8), nil // mode = 0o700 is read as the number it is
		}
		if k.Kind != Bool && k.Kind != Enum && k.Kind != Text {
			return strconv.FormatInt(v, 10), nil
		}
	case float64:
		if k.Kind == Percentiles {
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
	case []any:
		return tomlWords(k, v)
	case time.Time:
		return "", fmt.Errorf("a date is not a value for this key (%s)", k.Kind)
	}
	return "", fmt.Errorf("%v is not a value for this key (%s)", v, k.Kind)
}

// tomlWords joins an array for the kinds that are several words.
func tomlWords(k *Key, values []any) (string, error) {
	switch k.Kind {
	case List, SaveRules, OutputBounds, Percentiles:
	case Users:
		return tomlLines(values)
	default:
		return "", fmt.Errorf("an array is not a value for this key (%s)", k.Kind)
	}
	words := make([]string, 0, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case string:
			words = append(words, v)
		case int64:
			words = append(words, strconv.FormatInt(v, 10))
		case float64:
			words = append(words, strconv.FormatFloat(v, 'g', -1, 64))
		default:
			return "", fmt.Errorf("%v is not an element for this key (%s)", v, k.Kind)
		}
	}
	return strings.Join(words, " "), nil
}

// tomlLines joins an array of lines.
func tomlLines(values []any) (string, error) {
	lines := make([]string, 0, len(values))
	for _, v := range values {
		line, ok := v.(string)
		if !ok || strings.ContainsAny(line, "\r\n") {
			return "", fmt.Errorf("%v is not a user: a string of one line is, \"name rule ...\"", v)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}
