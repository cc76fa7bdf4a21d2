package log

import (
	"sync"
	"testing"

	"github.com/kevydb/kevy/internal/testkit/crashfs"
	"github.com/kevydb/kevy/internal/vfs"
)

// backFS notes what segments' files are asked to begin writing.
type backFS struct {
	vfs.FS
	mu    sync.Mutex
	asked [][2]int64 // offset and length
}

type backFile struct {
	vfs.File
	fs *backFS
}

func (f *backFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return &backFile{file, f}, err
}

func (f *backFS) OpenReadWrite(name string) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name)
	return &backFile{file, f}, err
}

// take returns what was asked for since the last take.
func (f *backFS) take() [][2]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func (f *backFile) WriteBack(off, n int64) {
	f.fs.mu.Lock()
	f.fs.asked = append(f.fs.asked, [2]int64{off, n})
	f.fs.mu.Unlock()
	f.File.WriteBack(off, n)
}

// TestWriteBack: under everysec the disk begins with what is written before the sync of the second, each page once, and
// anew in the next segment. Under the other policies the sync comes at once, or is the system's business.
func TestWriteBack(t *testing.T) {
	for _, policy := range []Policy{EverySec, Always, No} {
		t.Run(policy.String(), func(t *testing.T) {
			fsys := &backFS{FS: crashfs.New()}
			o := testOptions(fsys)
			o.Policy = policy
			d, _ := mustOpen(t, o)
			l := d.Log(0)
			for segment := range 2 {
				for l.w.seg.end.Load() < 3*backEvery {
					put(t, l, 1000)
					l.maintain(false)
				}
				asked := fsys.take()
				if policy != EverySec {
					if len(asked) > 0 {
						t.Fatalf("asked for %v", asked)
					}
					continue
				}
				at := int64(0)
				for _, a := range asked {
					if a[0] != at || a[1] < backEvery || a[1]%pageBytes != 0 {
						t.Fatalf("segment %d: asked for %v", segment, asked)
					}
					at += a[1]
				}
				if left := l.w.seg.end.Load() - at; left >= backEvery+pageBytes {
					t.Fatalf("segment %d: asked for %v of %d", segment, asked, l.w.seg.end.Load())
				}
				if err := l.roll(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
