package engine

import "github.com/kevydb/kevy/log"

// Cut returns cursors of all shards at one instant, so that no group is partly before them, once the logs are durable
// up to there. It holds all shards' locks for that instant, without I/O.
func (e *Engine) Cut() ([]log.Cursor, error) {
	if err := e.brokenErr(); err != nil {
		return nil, err
	}
	_, cut := e.Tails()
	for _, sh := range e.shards {
		if err := sh.log().Sync(); err != nil {
			return nil, err
		}
	}
	return cut, nil
}

// Tails returns the log directory and its appended tails at one instant: no group is partly before them. It holds all
// shards' locks for that instant, without I/O.
func (e *Engine) Tails() (*log.Dir, []log.Cursor) {
	e.lock(e.all())
	defer e.unlock(e.all())
	tails := make([]log.Cursor, len(e.shards))
	for i, sh := range e.shards {
		tails[i] = sh.log().Tail()
	}
	return e.Dir(), tails
}
