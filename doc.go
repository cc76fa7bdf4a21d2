// Package kevy is an embedded, Redis-compatible store whose primary data structure is its change
// log: every write is first a frame in the log, then a change of the keyspace, and the log can be
// read back as a change feed with a cursor that survives restarts.
//
//	store, err := kevy.Open(kevy.DefaultConfig().WithDir("./data").WithFeed(0))
//	cur, err := store.ChangesTail()
//	err = store.Set("user:1", []byte("Ada"))
//	batch, err := store.ChangesSince(cur, 256, []byte("user:"))
//	for _, c := range batch.Changes {
//		fmt.Println(c.Offset, c.Argv)
//	}
//	cur = batch.Next
//
// The same directory can be served over the network by the kevy command, one process at a time.
package kevy
