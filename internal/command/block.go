package command

import "github.com/kevydb/kevy/state"

// Wait is what a planner asks for that found nothing to answer with yet: that the client waits until one
// of its keys holds a value of the kind, and then is planned again. The engine keeps copies.
//
// The rules for the planner of a blocking command:
//
//   - It plans and replies as its plain counterpart whenever it can: the frame is that of the plain verb.
//   - Otherwise it writes no reply, plans nothing but what happens at once (XREADGROUP's consumer), and calls
//     Block. If Block refuses (inside a transaction or a script), it replies what its timeout would.
//   - Planned again (Ctx.Waited), it does the same; what it then gives as Deadline does not count.
type Wait struct {
	// Kind is the type of value that is waited for.
	Kind state.Type
	// Keys are waited for, the one that was ready first and the client that came first being served first.
	Keys [][]byte
	// Deadline is when the wait ends, in unix ms; 0 is never. The reply then is a null array.
	Deadline int64
	// AnyChange has the command planned again also when a key goes or gets another type.
	AnyChange bool
	// Args, if not nil, are the request to plan instead of the client's (XREAD with $ resolved).
	Args [][]byte
}

// Block asks that the client waits. It reports false if it must not.
func (c *Ctx) Block(w Wait) bool {
	if !c.CanBlock {
		return false
	}
	c.wait, c.waits = w, true
	return true
}

// Waits returns what the planner asked to wait for since Reset, or nil.
func (c *Ctx) Waits() *Wait {
	if !c.waits {
		return nil
	}
	return &c.wait
}
