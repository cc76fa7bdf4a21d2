// Package command is the one table of commands and their planners. A planner reads the keyspace
// and produces effects and a reply; it never changes anything. The table drives dispatch, arity
// errors, COMMAND, the docs and the equality gate.
//
// A command is a row (table_*.go) and, if it touches data, a planner in the file of its family. A
// planner has three steps: parse the arguments into a typed value, read what it needs through Ctx,
// plan effects and append the reply. The rules it keeps:
//
//   - An error reply plans nothing; so does whatever changes nothing.
//   - An effect is an absolute outcome: deadlines in unix ms, sums instead of increments. A deadline
//     that has passed is a DEL, and only of a key that is there.
//   - A key whose deadline has passed is not there, though its record may be: Lookup and Peek hide
//     it. Before an effect that works on what a record holds, DropExpired removes such a record.
//   - What reads and writes a key keeps its deadline, in the effect itself.
//   - Replies, error texts and the order in which errors are found are those of Redis 7.2. Where
//     they differ, the row's Differences says so.
//
// The tests compare with the redis-server in PATH, if there is one: scripts in testdata/oracle and
// random requests.
package command
