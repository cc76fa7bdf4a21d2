// Package rueidis checks that rueidis, with client-side caching on, works with kevy. It is a module of its own so that kevy's go.mod
// does not require a client. test/clients/run starts the server and sets KEVY_ADDR.
package rueidis
