package history

import (
	"fmt"

	"github.com/kevydb/kevy/internal/vfs"
)

// CheckCopy reads a new directory once more and compares its newest snapshot set with the keys and the digest it was made with. m may be nil.
func CheckCopy(fsys vfs.FS, dir string, keys int, digest string, m *Meter) error {
	v, err := Verify(Source{FS: fsys, Dir: dir}, VerifyOptions{Meter: m})
	if err != nil {
		return fmt.Errorf("verifying %s: %w", dir, err)
	}
	if len(v.Damage) > 0 || len(v.Sets) == 0 {
		return fmt.Errorf("verifying %s: %d places are not as written, %d snapshots: do not use it", dir, len(v.Damage), len(v.Sets))
	}
	if last := v.Sets[len(v.Sets)-1]; last.Keys != keys || last.Digest != digest {
		return fmt.Errorf("%s has %d keys with digest %s, copied were %d with %s: do not use it", dir, last.Keys, last.Digest, keys, digest)
	}
	return nil
}
