package archive_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/history"
	"github.com/kevydb/kevy/internal/vfs"
)

// names lists the objects of an archive.
func names(t testing.TB, s archive.Store) (all []string) {
	t.Helper()
	if err := s.List(context.Background(), "", func(name string, _ int64) { all = append(all, name) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func content(t testing.TB, s archive.Store, name string) []byte {
	t.Helper()
	r, err := s.Get(t.Context(), name, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// problems tells what Verify, or opening the archive, says.
func problems(s archive.Store) string {
	fsys, dir, err := archive.OpenFS(context.Background(), s)
	if err != nil {
		return err.Error()
	}
	defer fsys.Close()
	v, err := history.Verify(history.Source{FS: fsys, Dir: dir}, history.VerifyOptions{})
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, d := range v.Damage {
		all = append(all, d.Problem)
	}
	return strings.Join(all, "\n")
}

// damageAll damages each object in turn, and wants verify to name it.
func damageAll(t *testing.T, l *life, damage func(name string)) {
	t.Helper()
	l.o.Grace = 1
	l.open2()
	for _, name := range names(t, l.store) {
		whole := content(t, l.store, name)
		damage(name)
		if got := problems(l.store); !strings.Contains(got, name) {
			t.Errorf("%s is damaged; verify says %q", name, got)
		}
		if err := l.store.Put(t.Context(), name, strings.NewReader(string(whole)), int64(len(whole))); err != nil {
			t.Fatal(err)
		}
	}
	l.sound()
}

// open2 restarts, and lets retired objects go.
func (l *life) open2() {
	l.t.Helper()
	l.restart()
	l.s.Clock.Advance(10)
	l.pass()
}

func TestDamage(t *testing.T) {
	for what, damage := range map[string]func([]byte) []byte{
		"a flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"cut":           func(b []byte) []byte { return b[:len(b)-1] },
		"longer":        func(b []byte) []byte { return append(b, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			l := newLife(t, 21, archive.NewFileStore(vfs.NewMem(), place))
			l.live(40)
			damageAll(t, l, func(name string) {
				b := string(damage(content(t, l.store, name)))
				if err := l.store.Put(t.Context(), name, strings.NewReader(b), int64(len(b))); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	t.Run("missing", func(t *testing.T) {
		l := newLife(t, 22, archive.NewFileStore(vfs.NewMem(), place))
		l.live(40)
		damageAll(t, l, func(name string) {
			if err := l.store.Delete(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		})
	})
}
