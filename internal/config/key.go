package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Key is one row of the table.
type Key struct {
	Name    string   // as CONFIG GET shows it; also the flag
	Aliases []string // further names in CONFIG GET and SET, and as flags
	Section string   // TOML table, empty: top level
	Local   string   // name within the table where it is not Name without the table's name
	// TopLevel lets the file give the key outside its table as well.
	TopLevel bool
	Kind     Kind
	Default  string
	Min      int64 // of Int, Size and Octal
	Max      int64 // of Int, Size and Octal; of List: words. 0: no bound
	Least    int64 // of Int and Size: what is below is shown as Least, what is above Most as Most, unless that is 0
	Most     int64
	Enum     []string
	Help     string
	Live     bool // CONFIG SET may change it
	Again    bool // CONFIG SET of the value it has puts it into force again
	Secret   bool // not to be logged
	Compat   bool // a parameter of Redis that has no effect here
	Hidden   bool // CONFIG GET needs its exact name
	Private  bool // no parameter of CONFIG GET and SET
	Fixed    bool // not a setting at all: reported with Default

	field func(*Config) any // pointer to the field; nil for rows kept in Config.compat
}

// index is the table and its lookup by every name.
type index struct {
	keys   []*Key
	byName map[string]*Key
}

var table = sync.OnceValue(func() *index {
	ix := &index{byName: make(map[string]*Key)}
	for _, rows := range [][]Key{ownKeys(), redisKeys()} {
		for i := range rows {
			k := &rows[i]
			ix.keys = append(ix.keys, k)
			for _, name := range append([]string{k.Name}, k.Aliases...) {
				if ix.byName[name] != nil {
					panic("config: key twice: " + name) // invariant: table tested
				}
				ix.byName[name] = k
			}
		}
	}
	return ix
})

// Keys returns the table. The rows must not be changed.
func Keys() []*Key { return table().keys }

// Lookup finds a row by any of its names, whatever the case.
func Lookup(name string) (*Key, bool) {
	k, ok := table().byName[strings.ToLower(name)]
	return k, ok
}

// TOML returns the key's place in the file: "section.name" or "name".
func (k *Key) TOML() string {
	name := k.localName()
	if k.Section == "" {
		return name
	}
	return k.Section + "." + name
}

// localName is the key's name within its TOML table.
func (k *Key) localName() string {
	if k.Local != "" {
		return k.Local
	}
	name := k.Name
	if k.Section != "" {
		name = strings.TrimPrefix(name, k.Section+"-")
	}
	return strings.ReplaceAll(name, "-", "_")
}

// fixed says of a row that is no setting what it is.
func (k *Key) fixed() string {
	return fmt.Sprintf("a parameter of Redis that is no setting here: %s is always %q", k.Name, k.Default)
}

// Env returns the key's environment variable.
func (k *Key) Env() string {
	return "KEVY_" + strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_"))
}

// store parses text into the field p points to.
func (k *Key) store(p any, text string) error {
	switch p := p.(type) {
	case *string:
		if k.Kind == Enum {
			word, err := k.parseEnum(text)
			if err == nil {
				*p = word
			}
			return err
		}
		*p = text
		return nil
	case *bool:
		return assign(p, text, parseBool)
	case *int64:
		return assign(p, text, k.parseNumber)
	case *time.Duration:
		return assign(p, text, parseDuration)
	case *[]string:
		words := k.words(text)
		if int64(len(words)) > k.max() {
			return errBindMany
		}
		*p = words
		return nil
	case *[]SavePoint:
		return assign(p, text, parseSave)
	case *OutputLimits:
		return assign(p, text, func(s string) (OutputLimits, error) { return parseOutputLimits(*p, s) })
	}
	panic(fmt.Sprintf("config: field type %T of %s", p, k.Name)) // invariant: table tested
}

// words are the elements of a List, or the lines of Users.
func (k *Key) words(text string) []string {
	if k.Kind != Users {
		return strings.Fields(text)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func assign[T any](p *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	if err == nil {
		*p = v
	}
	return err
}

// format shows the field p points to.
func (k *Key) format(p any) string {
	switch p := p.(type) {
	case *string:
		return *p
	case *bool:
		return formatBool(*p)
	case *int64:
		if k.Kind == Octal {
			return strconv.FormatInt(*p, 8)
		}
		return strconv.FormatInt(*p, 10)
	case *time.Duration:
		return formatDuration(*p)
	case *[]string:
		if k.Kind == Users {
			return strings.Join(*p, "\n")
		}
		return strings.Join(*p, " ")
	case *[]SavePoint:
		return formatSave(*p)
	case *OutputLimits:
		return p.String()
	}
	panic(fmt.Sprintf("config: field type %T of %s", p, k.Name)) // invariant: table tested
}

// parseNumber reads an Int, Size or Octal and checks its bounds.
func (k *Key) parseNumber(text string) (int64, error) {
	var n int64
	var err error
	switch k.Kind {
	case Size:
		n, err = ParseSize(text)
	case Octal:
		if n, err = strconv.ParseInt(text, 8, 64); err != nil {
			err = errOctal
		}
	default:
		n, err = parseInt(text)
	}
	if err != nil {
		return 0, err
	}
	if n < k.Min || n > k.max() {
		if k.Kind == Octal {
			return 0, fmt.Errorf("argument must be between %o and %o inclusive", k.Min, k.max())
		}
		return 0, fmt.Errorf("argument must be between %d and %d inclusive", k.Min, k.max())
	}
	if k.Most != 0 {
		n = min(max(n, k.Least), k.Most)
	}
	return n, nil
}

func (k *Key) max() int64 {
	if k.Max == 0 {
		return math.MaxInt64
	}
	return k.Max
}

func (k *Key) parseEnum(text string) (string, error) {
	word := strings.ToLower(text)
	if !slices.Contains(k.Enum, word) {
		return "", fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(k.Enum, ", "))
	}
	return word, nil
}

// parseCompat checks the value of a row without a field and returns it as CONFIG GET shows it.
func (k *Key) parseCompat(text string) (string, error) {
	switch k.Kind {
	case Bool:
		v, err := parseBool(text)
		return formatBool(v), err
	case Int, Size, Octal:
		n, err := k.parseNumber(text)
		if k.Kind == Octal {
			return strconv.FormatInt(n, 8), err
		}
		return strconv.FormatInt(n, 10), err
	case SizePercent:
		return parseSizePercent(text)
	case Enum:
		return k.parseEnum(text)
	case List:
		return k.parseWords(text)
	case Percentiles:
		return parsePercentiles(text)
	case Events:
		return parseEvents(text)
	case Source:
		return parseSource(text)
	default:
		return text, nil
	}
}

func parseSizePercent(text string) (string, error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		n, err := parseInt(number)
		if err != nil || n < 0 {
			return "", errPercent
		}
		if n > 100 {
			return "", fmt.Errorf("percentage argument must be less or equal to 100")
		}
		return text, nil
	}
	n, err := ParseSize(text)
	if err != nil {
		return "", errPercent
	}
	return strconv.FormatInt(n, 10), nil
}

// parseWords reads words that all come from Enum; they are shown in its order.
func (k *Key) parseWords(text string) (string, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		words = []string{""}
	}
	for i, w := range words {
		canonical, err := k.parseEnum(w)
		if err != nil {
			return "", err
		}
		words[i] = canonical
	}
	if slices.Contains(words, "save") && slices.Contains(words, "nosave") {
		return "", fmt.Errorf("shutdown options SAVE and NOSAVE can't be used simultaneously")
	}
	slices.SortStableFunc(words, func(a, b string) int { return slices.Index(k.Enum, a) - slices.Index(k.Enum, b) })
	words = slices.Compact(words)
	return strings.Join(words, " "), nil
}
