package config

import "testing"

// FuzzConfig feeds arbitrary files: reading never panics, and what was read survives REWRITE.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{
		"", "port = 1", "[feed]\nenabled = false\nfeed_buffer_size = \"32mb\"", "feed.enabled = true # x",
		"bind = [\"a\",\n # c\n 'b']\n", "requirepass = \"\"\"\na\\\"b\"\"\"\"\nport=2", "save = [900, 1]",
		"'port' = 3", "\"feed\".enabled = false", "unixsocketperm = 0o700\n[log]\nkeep_time=\"7d\"",
		"[ feed ] # c\n enabled=true", "client_output_buffer_limit = 'normal 1gb 1 1'", "port = 1\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseFile("f.toml", text)
		if err != nil {
			return
		}
		c := Default()
		c.File = "f.toml"
		for _, g := range values {
			if c.Set(g.key, g.text) != nil {
				return
			}
		}
		next := c.Clone()
		next.Port, next.LogKeepBytes = 4321, 77
		out, err := next.rewritten(text)
		if err != nil {
			return // refused, not damaged
		}
		if err := next.agrees(out); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}
