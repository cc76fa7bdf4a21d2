package migrate

import (
	"errors"
	"testing"

	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/testkit/faultfs"
	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
)

// TestSettleFails: what could not be written is not taken for safe when it is asked for again, as the end of a link does.
func TestSettleFails(t *testing.T) {
	fs := faultfs.New(vfs.NewMem())
	e, _, err := engine.Open(engine.Options{Log: log.Options{FS: fs, Dir: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(false) //nolint:errcheck // it has failed
	to := newStore(e)
	if err := to.apply(log.ByClient, [][][]byte{{[]byte("SET"), []byte("k"), []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	fs.Inject(func(op faultfs.Op) error {
		if op.Kind == faultfs.OpWriteAt {
			return errors.New("the disk is broken")
		}
		return nil
	})
	for range 2 {
		if to.settle() == nil {
			t.Error("it is safe although it was not written")
		}
	}
}
