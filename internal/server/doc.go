// Package server is the glue between connections and the engine: sessions, dispatch,
// transactions, CLIENT, CONFIG, INFO, DEBUG and the like.
//
// # Ownership
//
//	who                     alone writes                                   may read             talks by
//	event loop              its sessions, its loop state (context,         -                    -
//	                        tickets, counts of the turn)
//	goroutine of a parked   its job (reply, ticket); session.w while the   its session          conn.Resume
//	session                 session's transaction runs on it
//	any                     -                                              session.pub          its lock
//
// # A turn
//
//  1. The loop runs the commands that have arrived. Data commands run at once under the shard
//     locks; a Slow one parks its connection and runs on a goroutine. What each session's replies
//     must wait for is collected in a ticket, and where in the reply buffer the replies of
//     commands lie that have logged something.
//  2. EndTurn settles all tickets at once. Under everysec and no that writes the log; then the
//     replies leave. Under always they are held until the group commit is done.
//  3. If the log failed, every reply of a command that has logged something is replaced by
//     MISCONF before anything leaves: nothing is acknowledged that did not reach the log.
package server
