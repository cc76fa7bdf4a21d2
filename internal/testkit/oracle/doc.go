// Package oracle compares kevy with Debian's redis-server, reply by reply and byte by byte.
//
// Four kinds of comparison:
//
//   - Streams: a seeded generator makes commands over small alphabets of keys and values (odd
//     arguments, options in any order, wrong arities, pipelines, MULTI/EXEC, several connections
//     in RESP2 and RESP3). Both servers get the same stream; the first differing reply fails it, and
//     the stream is shrunk to a minimal one and printed as redis-cli lines.
//   - Waiting streams: the same with connections that block, of which one writes. Who is served, with what and when
//     must be the same after every step.
//   - Hearing streams: the same with clients that hear of each other: messages of channels, keyspace notifications, keys to
//     drop from client-side caches, users and what they are refused, parameters of CONFIG. After every step each
//     connection must have got the same.
//   - Scripts: testdata/*.txt hold commands and the replies of redis-server; kevy must give the
//     same. `go test ./internal/testkit/oracle -run TestScripts -rewrite` records them anew.
//
// Replies are normalised only where they cannot be equal: see same.
//
// Flags of the test binary: -oracle.seed, -oracle.time, -rewrite. ORACLE_TIME in the environment is
// the default of -oracle.time. Three lengths are in use: 30s in every gate (.ci/run), 5m before a release, and 2h at
// night, each with another seed:
//
//	go test ./internal/testkit/oracle -count=1 -timeout 3h -run 'Stream|Scripts' -oracle.time 2h -oracle.seed $RANDOM
//
// The redis-server is the first one in PATH. One of 7.2 covers more: what 7.2 has changed is left out beside 7.0.
package oracle
