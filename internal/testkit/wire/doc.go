// Package wire is the tests' own RESP2/RESP3 client. It shares no code with resp/, so that an
// error there cannot hide itself: it keeps every reply's bytes as they came and parses them into
// a tree.
package wire
