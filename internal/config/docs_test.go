package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedWithoutEffect: docs/compatibility.md names exactly the parameters that can be set and do nothing.
func TestDocumentedWithoutEffect(t *testing.T) {
	data, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "## Parameters of CONFIG without effect\n")
	if !ok {
		t.Fatal("no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var documented, known []string
	for line := range strings.Lines(section) {
		if names, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `") {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(names, -1) {
				documented = append(documented, m[1])
			}
		}
	}
	for _, k := range Keys() {
		if k.Compat && !k.Fixed {
			known = append(known, k.Name)
		}
	}
	slices.Sort(documented)
	slices.Sort(known)
	for _, name := range documented {
		if !slices.Contains(known, name) {
			t.Errorf("%s is documented to be without effect", name)
		}
	}
	for _, name := range known {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is without effect, which is not documented", name)
		}
	}
}
