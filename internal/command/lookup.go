package command

import (
	"encoding/binary"
	"slices"
	"strings"
)

// families are the groups of rows, in the order of their IDs.
var families = [][]*Command{
	stringCommands, listCommands, genericCommands, connectionCommands, serverCommands, transactionCommands,
	scriptingCommands, prefixCommands, feedCommands, snapshotCommands, replicationCommands,
	pubsubCommands, monitorCommands, moduleCommands, clusterCommands,
	hashCommands, hashFieldCommands,
	bitmapCommands, hyperloglogCommands, dumpCommands,
	setCommands, sortCommands, zsetCommands, zsetRangeCommands, zsetBlockingCommands, geoCommands,
	streamCommands, streamGroupCommands, aclCommands,
}

// table is the finished command table.
var table = buildTable(families)

// slots is a power of two well above the number of commands, so that most probes hit at once.
const slots = 2048

type commandTable struct {
	slots [slots]*Command
	rows  []*Command // every row, subcommands behind their container
	top   []*Command // rows that are commands of their own
}

func buildTable(families [][]*Command) *commandTable {
	t := &commandTable{}
	for _, rows := range families {
		t.top = append(t.top, rows...)
	}
	for _, c := range t.top {
		t.add(c)
		for _, sub := range c.Sub {
			sub.parent = c
			t.add(sub)
		}
		t.insert(c)
	}
	return t
}

func (t *commandTable) add(c *Command) {
	c.ID = len(t.rows)
	t.rows = append(t.rows, c)
}

func (t *commandTable) insert(c *Command) {
	i := hashName([]byte(c.Name))
	for t.slots[i] != nil {
		i = (i + 1) % slots
	}
	t.slots[i] = c
}

// Lookup returns the row of a command by the name a client sent, in any case, or nil.
func Lookup(name []byte) *Command {
	if len(name) == 0 {
		return nil
	}
	for i := hashName(name); ; i = (i + 1) % slots {
		c := table.slots[i]
		if c == nil || equalFold(name, c.Name) {
			return c
		}
	}
}

// Subcommand returns the row of a container's subcommand, in any case, or nil.
func (c *Command) Subcommand(name []byte) *Command {
	for _, s := range c.Sub {
		if equalFold(name, s.Name[len(c.Name)+1:]) {
			return s
		}
	}
	return nil
}

// All returns every row, subcommands behind their containers: All()[c.ID] == c. Read-only.
func All() []*Command { return table.rows }

// TopLevel returns the rows that are commands of their own, as COMMAND COUNT counts them. Read-only.
func TopLevel() []*Command { return table.top }

// Container returns the command that c is a subcommand of, or nil.
func (c *Command) Container() *Command { return c.parent }

// HasCategory reports whether c is in the ACL category name, given without @.
func (c *Command) HasCategory(name string) bool {
	return slices.Contains(strings.Fields(c.Categories), name)
}

const lowerBits = 0x2020202020202020

// hashName hashes the length and the first and last eight bytes of a name (overlapping in short
// ones), lower-cased: enough to tell commands apart. REQUIRES: len(b) > 0.
func hashName(b []byte) uint32 {
	var first, last uint64
	switch n := len(b); {
	case n >= 8:
		first, last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		first = uint64(binary.LittleEndian.Uint32(b))
		last = uint64(binary.LittleEndian.Uint32(b[n-4:]))
	default:
		first = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	h := (first | lowerBits) * 0x9e3779b97f4a7c15
	h = (h ^ (last | lowerBits) ^ uint64(len(b))) * 0xff51afd7ed558ccd
	return uint32(h>>40) % slots
}

// equalFold reports whether name is lower but for the case of ASCII letters.
func equalFold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, b := range name {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}
