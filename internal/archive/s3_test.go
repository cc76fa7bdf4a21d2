package archive_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/kevydb/kevy/internal/archive"
	"github.com/kevydb/kevy/internal/testkit/s3"
)

func openStore(t *testing.T, url string) archive.Store {
	t.Helper()
	s, err := archive.OpenStore(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestS3 archives to a real S3 server, which goes away in between.
func TestS3(t *testing.T) {
	srv := s3.Start(t)
	l := newLife(t, 11, openStore(t, srv.URL("one/kevy")))
	events := l.live(60)
	if n := l.check(); n != 2*len(l.instants) {
		t.Errorf("%d of %d points were restored", n, 2*len(l.instants))
	}
	t.Logf("%v, %+v", events, l.a.Status())
	srv.Stop()
	l.write(5)
	if err := l.a.Pass(t.Context()); err == nil {
		t.Error("a pass to a server that is gone succeeds")
	}
	if st := l.a.Status(); st.Err == nil || st.LagMS < 1 || st.LagBytes < 1 || st.InRow != 1 {
		t.Errorf("status of an archive that can't be reached: %+v", st)
	}
}

// TestS3Damage damages objects behind the server's back.
func TestS3Damage(t *testing.T) {
	srv := s3.Start(t)
	l := newLife(t, 12, openStore(t, srv.URL("two")))
	l.live(40)
	damageAll(t, l, func(name string) {
		b, err := os.ReadFile(srv.Path("two", name))
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 4
		if err := os.WriteFile(srv.Path("two", name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// TestS3Parts puts an object that takes several parts.
func TestS3Parts(t *testing.T) {
	srv := s3.Start(t)
	s := openStore(t, srv.URL(""))
	b := make([]byte, 40<<20)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	if err := s.Put(t.Context(), "shard-00/x", bytes.NewReader(b), int64(len(b))); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, "shard-00/x"); !bytes.Equal(got, b) {
		t.Errorf("%d bytes read back are not the %d written", len(got), len(b))
	}
	if all := names(t, s); len(all) != 1 || all[0] != "shard-00/x" {
		t.Errorf("the bucket has %v", all)
	}
}

func TestS3NoBucket(t *testing.T) {
	srv := s3.Start(t)
	s := openStore(t, "s3://nobucket/x?endpoint=http://"+srv.Addr+"&region=us-east-1")
	if _, _, err := archive.OpenFS(context.Background(), s); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bucket that does not exist: %v", err)
	}
	l := newLife(t, 13, s)
	if err := l.a.Pass(t.Context()); err == nil {
		t.Error("a pass into a bucket that does not exist succeeds")
	}
}
