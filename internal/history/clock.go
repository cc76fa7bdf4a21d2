package history

import (
	"fmt"
	"strings"
	"time"
)

// TimeForms describes what ParseTime reads.
const TimeForms = `RFC 3339 ("2026-03-01T10:42:00Z"), "2026-03-01 10:42[:05[.678]]", "yesterday 10:42", "10:42" (today), ` +
	`"-15m" (before now; units h, m, s, ms)`

// ParseTime reads a time as people write it, in the time zone of now where it names none. It cuts what is finer
// than a millisecond off. A time after now is an error.
func ParseTime(text string, now time.Time) (time.Time, error) {
	t, ok := parseTime(strings.TrimSpace(text), now)
	if !ok {
		return t, fmt.Errorf("time %q: want %s", text, TimeForms)
	}
	t = t.Truncate(time.Millisecond)
	if t.After(now) {
		return t, fmt.Errorf("time %q is %s, which is after now, %s", text, FormatTime(t), FormatTime(now))
	}
	return t, nil
}

// FormatTime spells a time with its time zone.
func FormatTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }

// FormatMS is FormatTime of unix milliseconds in local time; 0 is "-".
func FormatMS(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return FormatTime(time.UnixMilli(ms))
}

func parseTime(text string, now time.Time) (time.Time, bool) {
	if text == "now" {
		return now, true
	}
	if strings.HasPrefix(text, "-") {
		d, err := time.ParseDuration(text)
		return now.Add(d), err == nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, true
	}
	y, m, d := now.Date()
	if day, rest, ok := strings.Cut(text, " "); ok {
		switch day {
		case "today":
			text = rest
		case "yesterday":
			text, d = rest, d-1
		default:
			date, err := time.ParseInLocation(time.DateOnly, day, now.Location())
			if err != nil {
				return now, false
			}
			y, m, d = date.Date()
			text = rest
		}
	}
	for _, layout := range []string{"15:04", time.TimeOnly} { // parsing takes fractions of a second too
		if c, err := time.Parse(layout, text); err == nil {
			return time.Date(y, m, d, c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), now.Location()), true
		}
	}
	return now, false
}
