package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind says how a value is written.
type Kind uint8

// The kinds.
const (
	Text         Kind = iota // any string
	Bool                     // yes or no
	Int                      // decimal integer within Min..Max
	Size                     // bytes: 64mb, 1gb, 1000
	SizePercent              // bytes, or a percentage
	Octal                    // file mode
	Enum                     // one of Enum
	List                     // strings separated by spaces; an array in TOML
	Duration                 // 90s, 12h, 7d; 0 is off
	SaveRules                // "seconds changes" pairs
	OutputBounds             // "class hard soft seconds" quadruples
	Percentiles              // numbers between 0 and 100 separated by spaces
	Source                   // HOST PORT, or nothing
	Events                   // keyspace event classes
	Users                    // lines "name rule ..."; an array of them in TOML
)

var kindNames = [...]string{
	"string", "yes|no", "int", "size", "size|percent", "octal", "word",
	"words", "duration", "rules", "limits", "numbers", "host port", "classes", "users",
}

func (k Kind) String() string { return kindNames[k] }

// redisError is an error in the words that Redis replies.
type redisError string

func (e redisError) Error() string { return string(e) }

const (
	errBool       redisError = "argument must be 'yes' or 'no'"
	errInt        redisError = "argument couldn't be parsed into an integer"
	errSize       redisError = "argument must be a memory value"
	errPercent    redisError = "argument must be a memory or percent value"
	errOctal      redisError = "argument couldn't be parsed as an octal number"
	errDuration   redisError = "argument must be a duration such as 90s, 12h or 7d"
	errSave       redisError = "Invalid save parameters"
	errOutArgs    redisError = "Wrong number of arguments in buffer limit configuration."
	errOutClass   redisError = "Invalid client class specified in buffer limit configuration."
	errOutNumbers redisError = "Error in hard, soft or soft_seconds setting in buffer limit configuration."
	errBindMany   redisError = "Too many bind addresses specified."
	errEvents     redisError = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
	errPercentile redisError = "Invalid latency-tracking-info-percentiles parameters"
	errPercentBig redisError = "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
)

// ParseSize reads a size as Redis does: 1k is 1000, 1kb is 1024; no sign, no fraction.
func ParseSize(s string) (int64, error) {
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	var unit int64
	switch strings.ToLower(s[digits:]) {
	case "", "b":
		unit = 1
	case "k":
		unit = 1000
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1000 * 1000
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1000 * 1000 * 1000
	case "gb":
		unit = 1 << 30
	default:
		return 0, errSize
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errSize
	}
	return n * unit, nil
}

// parseInt reads a decimal integer in its only spelling: no sign +, no leading zeros, no spaces.
func parseInt(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, errInt
	}
	return n, nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "yes", "true":
		return true, nil
	case "no", "false":
		return false, nil
	}
	return false, errBool
}

func formatBool(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// parseDuration reads Go's durations and whole days (7d); a bare number is seconds.
func parseDuration(s string) (time.Duration, error) {
	unit := time.Duration(0)
	number := s
	if days, ok := strings.CutSuffix(s, "d"); ok {
		number, unit = days, 24*time.Hour
	} else if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		unit = time.Second
	}
	if unit != 0 {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > int64(math.MaxInt64/unit) {
			return 0, errDuration
		}
		return time.Duration(n) * unit, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errDuration
	}
	return d, nil
}

func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	if d == 0 {
		return "0"
	}
	return d.String()
}

func parseSave(s string) ([]SavePoint, error) {
	words := strings.Fields(s)
	if len(words)%2 != 0 {
		return nil, errSave
	}
	var out []SavePoint
	for i := 0; i < len(words); i += 2 {
		seconds, err1 := strconv.ParseInt(words[i], 10, 64)
		changes, err2 := strconv.ParseInt(words[i+1], 10, 64)
		if err1 != nil || err2 != nil || seconds < 1 || changes < 0 {
			return nil, errSave
		}
		out = append(out, SavePoint{seconds, changes})
	}
	return out, nil
}

func formatSave(points []SavePoint) string {
	words := make([]string, 0, len(points))
	for _, p := range points {
		words = append(words, fmt.Sprintf("%d %d", p.Seconds, p.Changes))
	}
	return strings.Join(words, " ")
}

// parseOutputLimits changes only the classes that s names.
func parseOutputLimits(old OutputLimits, s string) (OutputLimits, error) {
	words := strings.Fields(s)
	if len(words)%4 != 0 {
		return old, errOutArgs
	}
	for i := 0; i < len(words); i += 4 {
		class := old.class(words[i])
		if class == nil {
			return old, errOutClass
		}
		hard, err1 := ParseSize(words[i+1])
		soft, err2 := ParseSize(words[i+2])
		seconds, err3 := strconv.ParseInt(words[i+3], 10, 32)
		if err1 != nil || err2 != nil || err3 != nil || seconds < 0 {
			return old, errOutNumbers
		}
		*class = OutputLimit{Hard: hard, Soft: soft, SoftSeconds: seconds}
	}
	return old, nil
}

func (o *OutputLimits) class(name string) *OutputLimit {
	switch strings.ToLower(name) {
	case "normal":
		return &o.Normal
	case "slave", "replica":
		return &o.Replica
	case "pubsub":
		return &o.PubSub
	}
	return nil
}

// String shows the limits as CONFIG GET does.
func (o OutputLimits) String() string {
	show := func(name string, l OutputLimit) string {
		return fmt.Sprintf("%s %d %d %d", name, l.Hard, l.Soft, l.SoftSeconds)
	}
	return show("normal", o.Normal) + " " + show("slave", o.Replica) + " " + show("pubsub", o.PubSub)
}

// SplitReplicaOf splits a value of replicaof; false when it is empty.
func SplitReplicaOf(text string) (host, port string, ok bool) {
	words := strings.Fields(text)
	if len(words) != 2 {
		return "", "", false
	}
	return words[0], words[1], true
}

// parseSource checks a value of replicaof.
func parseSource(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", nil
	}
	host, port, ok := SplitReplicaOf(s)
	if n, err := strconv.ParseUint(port, 10, 16); !ok || err != nil || n == 0 {
		return "", fmt.Errorf("want HOST PORT, or nothing")
	}
	return host + " " + port, nil
}

// parsePercentiles checks and normalises a list of percentiles.
func parsePercentiles(s string) (string, error) {
	words := strings.Fields(s)
	for i, w := range words {
		f, err := strconv.ParseFloat(w, 64)
		if err != nil || math.IsNaN(f) {
			return "", errPercentile
		}
		if f < 0 || f > 100 {
			return "", errPercentBig
		}
		words[i] = strconv.FormatFloat(f, 'g', 17, 64)
		if short := strconv.FormatFloat(f, 'g', -1, 64); len(short) < len(words[i]) {
			words[i] = short
		}
	}
	return strings.Join(words, " "), nil
}

// parseEvents normalises keyspace event classes into Redis's order, A standing for all of them.
func parseEvents(s string) (string, error) {
	const all, order = "g$lshzxetd", "g$lshzxetdnKEm"
	have := make(map[rune]bool)
	for _, r := range s {
		switch {
		case r == 'A':
			for _, x := range all {
				have[x] = true
			}
		case strings.ContainsRune(order, r):
			have[r] = true
		default:
			return "", errEvents
		}
	}
	var out strings.Builder
	rest := order
	if len(have) > 0 && containsAll(have, all) {
		out.WriteByte('A')
		rest = order[len(all):]
	}
	for _, r := range rest {
		if have[r] {
			out.WriteRune(r)
		}
	}
	return out.String(), nil
}

func containsAll(have map[rune]bool, all string) bool {
	for _, r := range all {
		if !have[r] {
			return false
		}
	}
	return true
}
