package kevy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/internal/replica"
	"github.com/kevydb/kevy/log"
)

// ErrReadOnly is the error of a write to a replica.
const ErrReadOnly = Error(engine.ReadOnly)

// replicaTimeout is after what silence the link to the source counts as dead.
const replicaTimeout = 60 * time.Second

// ReplicaStatus is how a replica is doing.
type ReplicaStatus struct {
	Source      string    // host:port that it follows; empty: the store is no replica
	Up          bool      // changes come in, or there are none
	Copying     bool      // a full copy is on its way: what the store has is what it had before
	Behind      uint64    // changes that the source had and the store did not, when it was last asked
	LastContact time.Time // zero: never
	Err         string    // why the link is down
	FullCopies  uint64    // since Open
}

// follow makes an engine follow what the configuration names.
func follow(cfg *Config, e *engine.Engine) (*replica.Follower, error) {
	host, port, err := net.SplitHostPort(cfg.ReplicaOf)
	if err != nil {
		return nil, err
	}
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	user, password := cfg.ReplicaUser, cfg.ReplicaPassword
	return replica.Follow(replica.Options{
		Engine: e, Host: host, Port: port, ID: hex.EncodeToString(id[:]), Logger: cfg.Logger, Dial: cfg.dialSource(),
		Login:    func() (string, string) { return user, password },
		Announce: func() (string, string) { return "", "0" }, // nobody reaches it
		Timeout:  func() time.Duration { return replicaTimeout },
	})
}

// dialSource returns what connects to the source.
func (c *Config) dialSource() func(ctx context.Context, addr string) (net.Conn, error) {
	if c.ReplicaTLS != nil {
		return c.ReplicaTLS.settings().DialSource
	}
	return client.DialTCP
}

// askLimit bounds the question how many shards a source has.
const askLimit = 10 * time.Second

// sourceShards asks the source how many shards it has.
func (c *Config) sourceShards() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	nc, err := c.dialSource()(ctx, c.ReplicaOf)
	if err != nil {
		return 0, err
	}
	conn := client.New(nc)
	defer conn.Close()
	if err := conn.Login(askLimit, c.ReplicaUser, c.ReplicaPassword); err != nil {
		return 0, err
	}
	v, err := conn.Do(askLimit, "FEED.SHARDS")
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok || n < 1 || n > log.MaxShards {
		return 0, fmt.Errorf("%w: it has %v shards", client.ErrProtocol, v)
	}
	return int(n), nil
}

// Replica returns how the replica is doing; the zero value if the store is none.
func (s *Store) Replica() ReplicaStatus {
	if s.replica == nil {
		return ReplicaStatus{}
	}
	st := s.replica.Status()
	return ReplicaStatus{
		Source: s.cfg.ReplicaOf, Up: st.Up, Copying: st.Syncing, Behind: st.Behind, LastContact: st.LastIO, Err: st.Err, FullCopies: st.FullCopies,
	}
}

// WaitReplica waits until the replica has all that its source had when it was last asked, or ctx ends: then the error
// says why the link is down. A store that is no replica does not wait.
func (s *Store) WaitReplica(ctx context.Context) error {
	if s.replica == nil {
		return nil
	}
	err := s.replica.Await(ctx, func(st *replica.Status) bool { return st.Up && st.Behind == 0 })
	if errors.Is(err, replica.ErrStopped) {
		return ErrClosed
	}
	return err
}
