package migrate

import (
	"bufio"
	"errors"
	"io"

	"github.com/kevydb/kevy/resp"
)

// requests reads the commands of an append-only file, or of a primary.
type requests struct {
	in   *bufio.Reader
	r    *resp.Reader
	fed  int64        // bytes taken from in
	idle func() error // called before a read that may have to wait; may be nil
}

func newRequests(in *bufio.Reader) *requests {
	return &requests{in: in, r: resp.NewReader(new(resp.Limits))}
}

// at returns how many bytes the requests returned so far take, with what lies between them.
func (q *requests) at() int64 { return q.fed - int64(q.r.Buffered()) }

// next returns the next request, valid until the next call; io.EOF behind the last one, io.ErrUnexpectedEOF within one.
func (q *requests) next() ([][]byte, error) {
	for {
		args, err := q.r.Next()
		if !errors.Is(err, resp.ErrIncomplete) {
			return args, err
		}
		if q.in.Buffered() == 0 && q.idle != nil {
			if err := q.idle(); err != nil {
				return nil, err
			}
		}
		n, err := q.in.Read(q.r.Space())
		q.r.Advance(n)
		q.fed += int64(n)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) && q.r.Buffered() > 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
