// Package netns makes hosts on one machine, for tests of servers under bad networks: each is a network namespace of its own with
// one tun device. The wire between them is this process, which passes packets on, or loses, delays and cuts them, each direction
// on its own. So it needs no tools and no queueing disciplines of the kernel, nothing is seen outside, and nothing is left behind: a namespace
// goes with its last process and file.
//
// It needs Linux, CAP_SYS_ADMIN, CAP_NET_ADMIN and /dev/net/tun: ErrUnavailable says what is missing.
package netns
