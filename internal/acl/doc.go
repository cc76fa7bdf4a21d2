// Package acl decides who may run which command on which keys and channels.
//
// A User is immutable: SETUSER makes a new one and puts it into the user's Account, which is what a connection
// holds on to; so a check takes one atomic load and no lock. Users is the table of accounts by name.
// Rules are spelled as in Redis's ACL SETUSER and described in the same form.
package acl
