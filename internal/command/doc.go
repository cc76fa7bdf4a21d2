// Package command is the one table of commands and their planners. A planner reads the keyspace
// and produces effects and a reply; it never changes anything. The table drives dispatch, arity
// errors, COMMAND, the docs and the equality gate.
package command
