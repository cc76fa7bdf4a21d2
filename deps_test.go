package kevy_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/kevydb/kevy"

// depsRules says which packages of this module a package may import. It is a statement of policy
// (DESIGN.md section 2): do not change it to fix a build.
var depsRules = map[string][]string{
	"log/effect":       {},
	"internal/vfs":     {"internal/vfs/tree"},
	"log":              {"internal/vfs", "log/effect"},
	"internal/arena":   {},
	"state":            {"log/effect", "internal/arena"},
	"snapshot":         {"log", "log/effect", "state", "internal/vfs"},
	"resp":             {},
	"internal/rdb":     {},
	"internal/command": {"state", "log/effect", "resp", "internal/rdb"},
	"internal/engine":  {"internal/command", "internal/vfs", "log", "log/effect", "resp", "snapshot", "state"},
	"internal/archive": {"internal/vfs", "log", "snapshot"},
	"internal/history": {"internal/command", "internal/engine", "internal/vfs", "log", "log/effect", "snapshot", "state"},
	"internal/feed":    {"log", "log/effect", "resp"},
	"internal/script":  {"internal/command", "internal/engine", "log/effect", "resp", "state"},
	"internal/config":  {},
	"internal/pubsub":  {"resp"},
	"internal/acl":     {"internal/command"},
	"internal/bench":   {}, // a client: nothing of kevy
	"internal/client":  {},
	"internal/replica": {
		"internal/client", "internal/command", "internal/engine", "internal/rdb", "internal/vfs", "log", "log/effect", "resp", "snapshot", "state",
	},
	"internal/server": {
		"internal/acl", "internal/archive", "internal/client", "internal/command", "internal/config", "internal/engine", "internal/feed", "internal/migrate", "internal/pubsub", "internal/replica", "internal/script", "internal/vfs",
		"log", "log/effect", "resp", "snapshot", "state",
	},
	"": {
		"internal/client", "internal/command", "internal/engine", "internal/feed", "internal/history", "internal/replica", "internal/script", "internal/vfs",
		"log", "log/effect", "resp", "snapshot", "state",
	},
	"internal/warm": {"", "internal/engine", "internal/history", "internal/vfs", "log", "log/effect", "state"},
	"internal/migrate": {
		"internal/client", "internal/command", "internal/engine", "internal/history", "internal/rdb", "internal/replica", "internal/script", "internal/vfs",
		"log", "log/effect", "resp",
	},
	"cmd/kevy": {
		"", "internal/archive", "internal/bench", "internal/client", "internal/config", "internal/engine", "internal/feed", "internal/history", "internal/server", "internal/vfs",
		"internal/migrate", "internal/warm", "log", "log/effect", "resp", "snapshot", "state",
	},
}

// bannedImports are packages from outside that a package must not use, with the reason.
var bannedImports = map[string]map[string]string{
	"state": {
		"time":         "folding has no clock: time comes in with the frame",
		"os":           "the keyspace does no I/O",
		"math/rand":    "folding is deterministic",
		"math/rand/v2": "folding is deterministic",
		"crypto/rand":  "folding is deterministic",
	},
	"log/effect": {
		"time":         "an effect never depends on a clock",
		"os":           "effects do no I/O",
		"math/rand/v2": "an effect never depends on randomness",
	},
	"internal/command": {
		"time":         "one clock per group, handed in as Ctx.Now",
		"os":           "planners do no I/O",
		"math/rand/v2": "randomness is handed in as Ctx.Rand",
	},
}

// unsafeAllowed lists the packages that may import unsafe: mapped memory, and raw system calls.
var unsafeAllowed = []string{"internal/arena", "resp"}

// Limits of style: longer ones carry a comment `// size: <reason>`.
const (
	maxFileLines = 500
	maxFuncLines = 60
)

type goFile struct {
	path   string // slash-separated, from the module's root
	pkgDir string // "" for the root package
	test   bool
	syntax *ast.File
	lines  []string
}

// moduleFiles parses every Go file of the module; nested modules are not part of it.
func moduleFiles(t *testing.T) (*token.FileSet, []goFile) {
	t.Helper()
	fset := token.NewFileSet()
	var files []goFile
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enterDir(p, d.Name())
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := readGoFile(fset, p)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fset, files
}

func enterDir(p, name string) error {
	if p == "." {
		return nil
	}
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func readGoFile(fset *token.FileSet, p string) (goFile, error) {
	src, err := os.ReadFile(p)
	if err != nil {
		return goFile{}, err
	}
	syntax, err := parser.ParseFile(fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	dir := path.Dir(filepath.ToSlash(p))
	if dir == "." {
		dir = ""
	}
	return goFile{
		path:   filepath.ToSlash(p),
		pkgDir: dir,
		test:   strings.HasSuffix(p, "_test.go"),
		syntax: syntax,
		lines:  splitLines(string(src)),
	}, err
}

func splitLines(s string) []string {
	var lines []string
	sc := bufio.NewScanner(strings.NewReader(s))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	return lines
}

// governing returns the rule that applies to a package: its own or that of the nearest parent.
func governing(pkgDir string) (rule string, ok bool) {
	for dir := pkgDir; ; dir = path.Dir(dir) {
		if dir == "." {
			dir = ""
		}
		if _, ok := depsRules[dir]; ok && (dir != "" || pkgDir == "") {
			return dir, true
		}
		if dir == "" || dir == "/" {
			return "", false
		}
	}
}

func TestImportRules(t *testing.T) {
	_, files := moduleFiles(t)
	for _, f := range files {
		if f.test || freeToImport(f.pkgDir) {
			continue
		}
		rule, ok := governing(f.pkgDir)
		if !ok {
			t.Errorf("%s: package %q has no rule in depsRules", f.path, f.pkgDir)
			continue
		}
		for _, imp := range f.syntax.Imports {
			checkImport(t, f, rule, imp)
		}
	}
}

// freeToImport reports the places that only tests and tools use.
func freeToImport(pkgDir string) bool {
	return strings.HasPrefix(pkgDir, "internal/testkit") || strings.HasPrefix(pkgDir, "test/") ||
		strings.HasPrefix(pkgDir, "bench") || strings.HasSuffix(pkgDir, "test")
}

func checkImport(t *testing.T, f goFile, rule string, imp *ast.ImportSpec) {
	t.Helper()
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		t.Fatal(err)
	}
	if why, bad := bannedImports[rule][p]; bad {
		t.Errorf("%s imports %s: %s", f.path, p, why)
	}
	if p == "unsafe" && !slices.Contains(unsafeAllowed, rule) {
		t.Errorf("%s imports unsafe: only %v may", f.path, unsafeAllowed)
	}
	if p != modulePath && !strings.HasPrefix(p, modulePath+"/") {
		return
	}
	inner := strings.TrimPrefix(strings.TrimPrefix(p, modulePath), "/")
	if strings.HasPrefix(inner, "internal/testkit") {
		t.Errorf("%s imports %s: only tests may", f.path, p)
		return
	}
	if inner == rule || strings.HasPrefix(inner, rule+"/") && rule != "" {
		return
	}
	target, _ := governing(inner)
	if !slices.Contains(depsRules[rule], target) && !slices.Contains(depsRules[rule], inner) {
		t.Errorf("%s imports %s: not among %v", f.path, p, depsRules[rule])
	}
}

func TestSizes(t *testing.T) {
	fset, files := moduleFiles(t)
	for _, f := range files {
		if n := len(f.lines); n > maxFileLines && !fileHasReason(f.lines) {
			t.Errorf("%s has %d lines, more than %d, and no `// size: <reason>` near its top",
				f.path, n, maxFileLines)
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Body != nil {
				checkFuncSize(t, fset, f, fn)
			}
		}
	}
}

func checkFuncSize(t *testing.T, fset *token.FileSet, f goFile, fn *ast.FuncDecl) {
	t.Helper()
	first, last := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
	n := last - first + 1
	if n <= maxFuncLines || hasReason(commentLines(fn.Doc)) {
		return
	}
	t.Errorf("%s:%d: %s has %d lines, more than %d, and no `// size: <reason>` above it",
		f.path, first, fn.Name.Name, n, maxFuncLines)
}

func commentLines(g *ast.CommentGroup) []string {
	if g == nil {
		return nil
	}
	var lines []string
	for _, c := range g.List {
		lines = append(lines, c.Text)
	}
	return lines
}

func fileHasReason(lines []string) bool { return hasReason(lines[:min(len(lines), 30)]) }

func hasReason(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		reason, ok := strings.CutPrefix(strings.TrimSpace(l), "// size:")
		return ok && strings.TrimSpace(reason) != ""
	})
}
