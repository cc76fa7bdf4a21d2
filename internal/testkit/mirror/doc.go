// Package mirror tests kevy.Mirror against running servers: storms, restarts, SIGKILL, other data at the same address.
package mirror
