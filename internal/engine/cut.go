package engine

import "github.com/kevydb/kevy/log"

// Cut returns cursors of all shards at one instant, so that no group is partly before them, once the logs are durable
// up to there. It holds all shards' locks for that instant, without I/O.
func (e *Engine) Cut() ([]log.Cursor, error) {
	if err := e.brokenErr(); err != nil {
		return nil, err
	}
	e.lock(e.all())
	cut := make([]log.Cursor, len(e.shards))
	for i, sh := range e.shards {
		cut[i] = sh.log().Tail()
	}
	e.unlock(e.all())
	for _, sh := range e.shards {
		if err := sh.log().Sync(); err != nil {
			return nil, err
		}
	}
	return cut, nil
}
