package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var (
	errImmutable = errors.New("can't set immutable config")
	errDuplicate = errors.New("duplicate parameter")
)

// Pair is one name and value of CONFIG SET.
type Pair struct{ Name, Value string }

// Match returns the names that CONFIG GET shows for the patterns, each once: a pattern without
// glob characters is a name and shown as asked for, the others match every name that is not
// hidden. match is Redis's glob matching, ignoring case.
func Match(patterns []string, match func(pattern, name string) bool) []string {
	shown := make(map[string]string) // by the parameter's own name
	show := func(name, as string) {
		if shown[name] == "" {
			shown[name] = as
		}
	}
	for _, p := range patterns {
		if !strings.ContainsAny(p, "[*?") {
			if k, ok := Lookup(p); ok && !k.Private {
				show(strings.ToLower(p), p)
			}
			continue
		}
		for name, k := range table().byName {
			if !k.Hidden && !k.Private && match(p, name) {
				show(name, name)
			}
		}
	}
	return slices.Sorted(maps.Values(shown))
}

// Change applies the pairs of CONFIG SET to a copy of c: all of them or, with an error worded as
// Redis words it, none. changed are the rows whose value is another one now, or is to be put into force again.
func (c *Config) Change(pairs []Pair) (next *Config, changed []*Key, err error) {
	rows, err := c.changeable(pairs)
	if err != nil {
		return nil, nil, err
	}
	next = c.Clone()
	for i, k := range rows {
		if err := next.Set(k, pairs[i].Value); err != nil {
			return nil, nil, SetFailed(strings.ToLower(pairs[i].Name), err)
		}
		if next.Text(k) != c.Text(k) || k.Again {
			changed = append(changed, k)
		}
	}
	return next, changed, nil
}

// SetFailed is CONFIG SET's error for one parameter.
func SetFailed(name string, cause error) error {
	return fmt.Errorf("ERR CONFIG SET failed (possibly related to argument '%s') - %w", name, cause)
}

// changeable finds the rows of the pairs; the first pair that cannot be set is the error. A key
// that needs a restart, or that tells a fact, may be set to the value it has.
func (c *Config) changeable(pairs []Pair) ([]*Key, error) {
	rows := make([]*Key, 0, len(pairs))
	for _, p := range pairs {
		k, ok := Lookup(p.Name)
		switch {
		case !ok || k.Private:
			return nil, fmt.Errorf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", p.Name)
		case !k.Live && !c.has(k, p.Value):
			return nil, SetFailed(p.Name, errImmutable)
		case slices.Contains(rows, k):
			return nil, SetFailed(p.Name, errDuplicate)
		}
		rows = append(rows, k)
	}
	return rows, nil
}

// has reports whether k's value is the one that text names.
func (c *Config) has(k *Key, text string) bool {
	d := c.Clone()
	return d.Set(k, text) == nil && d.Text(k) == c.Text(k)
}
