package compare

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kevydb/kevy/internal/bench"
)

// peer is a server program.
type peer struct {
	name string
	path string
	args []string // further words: all of the command line, with {port} and {dir}
}

// findPeers returns kevy and the others: those given as name=path or just a path, "name=path word..."
// with {port} and {dir} for a command line of its own, and Debian's redis-server if it is installed. One
// given as kevy or redis-server takes that one's place.
func findPeers(kevy string, given []string) ([]peer, error) {
	peers := []peer{{name: "kevy", path: kevy}}
	if path, err := exec.LookPath("redis-server"); err == nil {
		peers = append(peers, peer{name: "redis-server", path: path})
	}
	for _, g := range given {
		name, command, ok := strings.Cut(g, "=")
		if !ok {
			name, command = filepath.Base(g), g
		}
		words := strings.Fields(command)
		if len(words) == 0 {
			return nil, fmt.Errorf("%q: want name=path", g)
		}
		path, err := exec.LookPath(words[0])
		if err != nil {
			return nil, err
		}
		peers = slices.DeleteFunc(peers, func(p peer) bool { return p.name == name && name != "kevy" })
		p := peer{name: name, path: path, args: words[1:]}
		if name == "kevy" {
			peers[0] = p
			continue
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// command makes the peer's command line: its own; kevy's, if the name begins with kevy; or that of
// redis-server, which valkey-server shares.
func (p peer) command(log string) bench.Command {
	switch {
	case len(p.args) > 0:
		return func(port int, dir string) []string {
			var out []string
			for _, a := range p.args {
				a = strings.ReplaceAll(a, "{port}", strconv.Itoa(port))
				out = append(out, strings.ReplaceAll(a, "{dir}", dir))
			}
			return out
		}
	case strings.HasPrefix(p.name, "kevy"):
		if log == logOff {
			log = "no"
		}
		return bench.KevyCommand(append([]string{"--appendfsync", log}, bench.NoSnapshots...)...)
	}
	appendOnly, fsync := "yes", log
	if log == logOff {
		appendOnly, fsync = "no", "no"
	}
	return func(port int, dir string) []string {
		return append([]string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--daemonize", "no",
			"--save", "", "--appendonly", appendOnly, "--appendfsync", fsync,
		}, bench.NoSnapshots...)
	}
}

// fleet is one running server of each peer.
type fleet struct {
	dir     string
	servers []*bench.Server
	targets []*bench.Target
}

// startFleet starts every peer with an empty directory below a temporary one.
func startFleet(peers []peer, log string) (*fleet, error) {
	dir, err := os.MkdirTemp("", "kevy-compare-")
	if err != nil {
		return nil, err
	}
	f := &fleet{dir: dir}
	for _, p := range peers {
		s, err := bench.Start(p.name, p.path, filepath.Join(dir, p.name), p.command(log))
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		f.servers = append(f.servers, s)
		f.targets = append(f.targets, &bench.Target{Addr: s.Addr, PID: s.PID()})
	}
	return f, nil
}

// stop ends the servers and removes their data.
func (f *fleet) stop() error {
	var errs []error
	for _, s := range f.servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(f.dir))...)
}
