// Package redigo checks that redigo works with kevy. It is a module of its own so that kevy's go.mod
// does not require a client. test/clients/run starts the server and sets KEVY_ADDR.
package redigo
