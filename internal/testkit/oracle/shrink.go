package oracle

import "time"

// shrinkLimit bounds the time spent on making a failing stream smaller.
const shrinkLimit = 60 * time.Second

// Shrink makes a failing stream smaller while fails holds: first by steps, then by commands, then
// by arguments. fails must be true for steps.
func Shrink(steps []Step, fails func([]Step) bool) []Step {
	end := time.Now().Add(shrinkLimit)
	try := func(s []Step) bool { return time.Now().Before(end) && len(s) > 0 && fails(s) }
	steps = minimize(steps, try)
	if single := singles(steps); try(single) {
		steps = minimize(single, try)
	} else {
		steps = shrinkPipelines(steps, try)
	}
	steps = shrinkArgs(steps, try)
	return minimize(steps, try)
}

// minimize is delta debugging: it removes ever smaller runs of elements.
func minimize[T any](items []T, fails func([]T) bool) []T {
	for size := (len(items) + 1) / 2; size >= 1; {
		removed := false
		for at := 0; at < len(items); {
			rest := make([]T, 0, len(items))
			rest = append(rest, items[:at]...)
			rest = append(rest, items[min(at+size, len(items)):]...)
			if len(rest) < len(items) && fails(rest) {
				items, removed = rest, true
				continue
			}
			at += size
		}
		if size == 1 && !removed {
			break
		}
		size = max(min(size/2, len(items)/2), 1)
		if len(items) <= 1 {
			break
		}
	}
	return items
}

// singles sends every command by itself, as an array.
func singles(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		for i, c := range s.Cmds {
			one := Step{Conn: s.Conn, Cmds: []Command{{Args: c.Args}}}
			if i == len(s.Cmds)-1 {
				one.Sleep = s.Sleep
			}
			out = append(out, one)
		}
	}
	return out
}

func shrinkPipelines(steps []Step, fails func([]Step) bool) []Step {
	for i := range steps {
		cmds := minimize(steps[i].Cmds, func(c []Command) bool {
			return len(c) > 0 && fails(withCmds(steps, i, c))
		})
		steps = withCmds(steps, i, cmds)
	}
	return steps
}

func withCmds(steps []Step, i int, cmds []Command) []Step {
	out := append([]Step(nil), steps...)
	out[i].Cmds = cmds
	return out
}

// shrinkArgs drops arguments from the end and makes the others shorter.
func shrinkArgs(steps []Step, fails func([]Step) bool) []Step {
	for i := range steps {
		for j := range steps[i].Cmds {
			steps = shrinkCommand(steps, i, j, fails)
		}
	}
	return steps
}

func shrinkCommand(steps []Step, i, j int, fails func([]Step) bool) []Step {
	with := func(args []string) []Step {
		cmds := append([]Command(nil), steps[i].Cmds...)
		cmds[j].Args = args
		return withCmds(steps, i, cmds)
	}
	for {
		args := steps[i].Cmds[j].Args
		if len(args) < 2 || !fails(with(args[:len(args)-1])) {
			break
		}
		steps = with(args[:len(args)-1])
	}
	for k := 1; k < len(steps[i].Cmds[j].Args); k++ {
		args := append([]string(nil), steps[i].Cmds[j].Args...)
		if len(args[k]) <= 8 {
			continue
		}
		args[k] = args[k][:4]
		if next := with(args); fails(next) {
			steps = next
		}
	}
	return steps
}
