package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// ErrHelp is returned by Load after --help was asked for and written.
var ErrHelp = pflag.ErrHelp

// Load builds the configuration from flags (args, without the program's name), environment
// (NAME=value strings) and the file that --config or KEVY_CONFIG names. usage takes the text of
// --help. Every error names the key and where its value was given.
func Load(args, environ []string, usage io.Writer) (*Config, error) {
	flags, path, err := readFlags(args, usage)
	if err != nil {
		return nil, err
	}
	env, envPath, err := readEnv(environ)
	if err != nil {
		return nil, err
	}
	if path == "" {
		path = envPath
	}
	var file []given
	if path != "" {
		if file, err = readFile(path); err != nil {
			return nil, err
		}
	}
	c := Default()
	c.File = path
	for _, source := range [][]given{file, env, flags} {
		for _, g := range source {
			if err := c.Set(g.key, g.text); err != nil {
				return nil, fmt.Errorf("%s: %w (given: %s)", g.where, err, g.shown())
			}
		}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

func (g given) shown() string {
	if g.key.Secret {
		return "a secret"
	}
	return fmt.Sprintf("%q", g.text)
}

// textFlag collects a flag's text; the checking happens in Load, where all sources are equal.
type textFlag struct {
	key *Key
	out *[]given
}

func (f textFlag) String() string { return f.key.Default }

// Type is what --help shows.
func (f textFlag) Type() string { return f.key.Kind.String() }

// Set keeps the flag's text.
func (f textFlag) Set(s string) error {
	*f.out = append(*f.out, given{key: f.key, text: s, where: "flag --" + f.key.Name})
	return nil
}

// readFlags parses the command line into the keys it gives and the path of --config.
func readFlags(args []string, usage io.Writer) (out []given, path string, err error) {
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	fs.SetOutput(usage)
	fs.SortFlags = false
	fs.Usage = func() {} // errors are the caller's to print
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if k, ok := Lookup(name); ok {
			name = k.Name
		}
		return pflag.NormalizedName(name)
	})
	fs.StringVar(&path, "config", "", "TOML file to read (environment: KEVY_CONFIG)")
	for _, k := range Keys() {
		if k.Fixed {
			continue
		}
		f := fs.VarPF(textFlag{k, &out}, k.Name, "", k.Help)
		f.Hidden = k.Compat
		if k.Kind == Bool {
			f.NoOptDefVal = "yes"
		}
	}
	err = fs.Parse(joinWords(args))
	switch {
	case errors.Is(err, pflag.ErrHelp):
		if _, werr := io.WriteString(usage, usageText(fs.FlagUsages())); werr != nil {
			return nil, "", werr
		}
		return nil, "", ErrHelp
	case err != nil:
		return nil, "", fmt.Errorf("%w (%s)", err, fixedHint(args))
	case fs.NArg() > 0:
		return nil, "", fmt.Errorf("unexpected argument %q (flags begin with --; a configuration file is TOML, and named by --config)", fs.Arg(0))
	}
	return joinGiven(out), path, nil
}

// fixedHint says of the first flag that is a parameter of Redis's which can't be set what it is.
func fixedHint(args []string) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if k, ok := Lookup(strings.ReplaceAll(name, "_", "-")); ok && k.Fixed && strings.HasPrefix(arg, "--") {
			return k.fixed()
		}
	}
	return "kevy serve --help lists the flags"
}

// joinWords makes --name=value of a flag and the words behind it, as redis-server takes them: of a switch one, of a key whose value has several words all
// up to the next flag.
func joinWords(args []string) (out []string) {
	for i := 0; i < len(args); {
		arg := args[i]
		from := i + 1
		for i = from; i < len(args) && belongs(arg, args[i], i-from); i++ {
		}
		if i > from {
			arg += "=" + strings.Join(args[from:i], " ")
		}
		out = append(out, arg)
	}
	return out
}

// belongs reports whether word is the nth one of the flag's value.
func belongs(flag, word string, n int) bool {
	name, ok := strings.CutPrefix(flag, "--")
	k, known := Lookup(strings.ReplaceAll(name, "_", "-"))
	if !ok || !known {
		return false
	}
	switch k.Kind {
	case Bool:
		return n == 0 && !strings.HasPrefix(word, "-")
	case List, SaveRules, OutputBounds, Percentiles, Source, Users:
		return !strings.HasPrefix(word, "--") // -::1 is an address, -@all a rule
	default:
		return false
	}
}

// joinGiven makes one value of all users that flags give, and one of all rules of save: each flag gives some. As in Redis an empty one of save
// forgets those before it.
func joinGiven(all []given) []given {
	var out []given
	for _, g := range all {
		first := slices.IndexFunc(out, func(o given) bool { return o.key == g.key })
		switch {
		case first < 0 || g.key.Kind != Users && g.key.Kind != SaveRules:
			out = append(out, g)
		case g.key.Kind == Users:
			out[first].text += "\n" + g.text
		case g.text == "":
			out[first].text = ""
		default:
			out[first].text = strings.TrimSpace(out[first].text + " " + g.text)
		}
	}
	return out
}

// usageText is the text of kevy serve --help.
func usageText(flags string) string {
	return "Usage: kevy [serve] [flags]\n\n" +
		"Every flag is also a key of the TOML file (tcp_keepalive, feed.enabled) and an environment\n" +
		"variable (KEVY_TCP_KEEPALIVE, KEVY_FEED_ENABLED); a flag wins over the environment, the\n" +
		"environment over the file. Values of several words need no quotes: --save 900 1 300 10.\n\nFlags:\n" + flags +
		"\nRedis's other parameters are accepted, stored and reported without effect.\n"
}

// Variables that container platforms set for a service or linked container called kevy.
var platformPrefixes = []string{"KEVY_SERVICE_", "KEVY_PORT_", "KEVY_ENV_"}

// Variables of this repository's tests and scripts, which a server that they start inherits.
var testPrefixes = []string{"KEVY_TEST_", "KEVY_BINARY", "KEVY_RACE"}

// readEnv takes the variables that begin with KEVY_.
func readEnv(environ []string) (out []given, path string, err error) {
	byName := make(map[string]*Key)
	for _, k := range Keys() {
		if !k.Fixed {
			byName[k.Env()] = k
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		k := byName[name]
		switch {
		case !strings.HasPrefix(name, "KEVY_"):
		case name == "KEVY_CONFIG":
			path = value
		case k != nil && name == "KEVY_PORT" && strings.Contains(value, "://"):
			return nil, "", fmt.Errorf("environment variable KEVY_PORT is %q: Kubernetes sets it for "+
				"a service called kevy; set enableServiceLinks: false or rename the service", value)
		case k != nil:
			out = append(out, given{key: k, text: value, where: "environment variable " + name})
		case hasPrefix(name, platformPrefixes), hasPrefix(name, testPrefixes):
		case name == "KEVY_NAME": // set by linked containers
		default:
			return nil, "", fmt.Errorf("environment variable %s: no such key", name)
		}
	}
	return out, path, nil
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
