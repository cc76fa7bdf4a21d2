package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/vfs"
	"github.com/kevydb/kevy/log"
	"github.com/kevydb/kevy/log/effect"
)

// frames returns what a shard's log holds, as "cause first|last verb args".
func (s *store) frames(shard int) (out []string) {
	s.t.Helper()
	l := s.e.Dir().Log(shard)
	r, err := l.NewReader(l.Oldest(), log.ReaderOptions{Limit: log.LimitWritten, Follow: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if err != nil {
			return out
		}
		argv, err := effect.DecodeArgv(f.Payload, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		var words []string
		for _, a := range argv {
			words = append(words, string(a))
		}
		out = append(out, fmt.Sprintf("%s %v|%v %s", f.Cause, f.GroupFirst, f.GroupLast, strings.Join(words, " ")))
	}
}

func (s *store) wantFrames(shard int, want ...string) {
	s.t.Helper()
	if got := s.frames(shard); strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("frames of shard %d:\n%s\nwant\n%s", shard, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// onShard0 returns a key on shard 0.
func (s *store) onShard0(name string) string {
	for i := 0; ; i++ {
		k := fmt.Sprint(name, i)
		if s.ctx.ShardOf([]byte(k)) == 0 {
			return k
		}
	}
}

func TestScriptIsOneGroup(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	k := s.onShard0("k")
	if got := s.do("EVAL", `redis.call("set",KEYS[1],1) redis.call("incr",KEYS[1]) redis.call("get",KEYS[1]) return redis.call("incr",KEYS[1])`, "1", k); got != ":3" {
		t.Errorf("reply %q", got)
	}
	s.do("EVAL", `redis.call("set",KEYS[1],9) error("after a write")`, "1", k)
	s.do("EVAL", `return redis.call("get",KEYS[1])`, "1", k)
	s.do("EVAL", `return redis.pcall("incr",KEYS[1],"x")`, "1", k)
	s.wantFrames(0,
		"script true|false SET "+k+" 1", "script false|false SET "+k+" 2", "script false|true SET "+k+" 3",
		"script true|true SET "+k+" 9")
}

func TestStoppedScriptIsUndone(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	k := s.onShard0("k")
	s.do("SET", k, "old")
	go func() {
		for s.rt.Running() == 0 {
			time.Sleep(time.Millisecond)
		}
		s.rt.Stop()
	}()
	if got := s.do("EVAL", `redis.call("set",KEYS[1],"new") while true do end`, "1", k); !strings.HasPrefix(got, "-ERR") || !strings.Contains(got, "shutting down") {
		t.Errorf("reply %q", got)
	}
	if got := s.do("GET", k); got != "$3 old" {
		t.Errorf("after a script that was stopped: %q", got)
	}
	s.wantFrames(0, "client true|true SET "+k+" old")
}

func TestKill(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	for _, code := range []string{
		`while true do end`,
		`while true do pcall(function() while true do end end) end`,
		`coroutine.wrap(function() while true do end end)()`,
		`local co = coroutine.create(function() while true do end end) while true do coroutine.resume(co) end`,
		`while true do redis.pcall("ping") end`,
		`repeat local ok = pcall(error, "x") until false`,
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for s.rt.Busy(time.Millisecond) == "" {
				time.Sleep(time.Millisecond)
			}
			w := s.w
			w.Buf = nil
			s.rt.Kill(&w, false)
			if got := string(w.Buf); !strings.HasPrefix(got, "-BUSY") {
				t.Errorf("FUNCTION KILL of a script: %q", got)
			}
			w.Buf = nil
			s.rt.Kill(&w, true)
			if got := string(w.Buf); got != "+OK\r\n" {
				t.Errorf("SCRIPT KILL: %q", got)
			}
		}()
		if got := s.eval(code); !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL... script: ") {
			t.Errorf("%s: %q", code, got)
		}
		<-done
	}
	if got := s.eval(`return 1`); got != ":1" {
		t.Errorf("after the kills: %q", got)
	}
}

func TestHeavyScripts(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	s.want([][2]string{
		{`local function f(n) return n == 0 and 0 or 1 + f(n-1) end return f(10000)`, ":10000"},
		{`local function f() return 1 + f() end return f()`, "-*"},
		{`local function f() return pcall(f) end return f()`, "*"},
		{`local t = {} for i = 1, 100 do t = {t} end return #cjson.encode(t)`, ":202"},
		{`return string.rep("x", 2^40)`, "-ERR user_script:1: resulting string too large*"},
		{`local t = {} for i = 1, 7999 do t[i] = i end return select("#", unpack(t))`, ":7999"},
		{`return unpack({}, 1, 1e9)`, "-ERR user_script:1: too many results to unpack*"},
		{`return unpack({}, -2^31, 2^31)`, "-ERR user_script:1: too many results to unpack*"},
		{`return cmsgpack.unpack(string.rep("\145", 100000))`, "-ERR user_script:1: Bad data format in input.*"},
		{`return cjson.decode(string.rep("[", 100000))`, "-ERR user_script:1: Found too many nested data structures*"},
		{`return struct.pack(">I2147483648", 1)`, "-ERR user_script:1: integral size overflow*"},
		{`return string.format("%99999d", 1)`, "-ERR user_script:1: invalid format (width or precision too long)*"},
		{`return #string.format("%99d", 1)`, ":99"},
		{`return 1`, ":1"},
	})
}

func TestSandboxIsShared(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	s.want([][2]string{
		{`getmetatable("").__index = nil`, "-ERR user_script:1: Attempt to modify a readonly table*"},
		{`getmetatable("").__index.upper = nil`, "-ERR user_script:1: Attempt to modify a readonly table*"},
		{`setfenv(0, {}) return 1`, "*"},
		{`setfenv(1, {}) x = 1 return x`, ":1"},
		{`getfenv().x = 1`, "-ERR user_script:1: Attempt to modify a readonly table*"},
		{`getfenv(0).x = 1`, "-*"},
		{`getfenv(print) return 1`, "-*"},
		{`getfenv(tostring).x = 1`, "-*"},
		{`return ("x"):upper() .. tostring(1)`, "$2 X1"},
		{`local n = 0 for k in pairs(string) do n = n + 1 end return n > 10`, ":1"},
		{`return type(next(_G))`, "$6 string"},
	})
	if got := s.eval(`return {KEYS[1], ARGV[1], redis.call("ping")}`, "a"); got != "*1 $-1" && got != "*0" {
		t.Errorf("KEYS: %q", got)
	}
	s.eval(`KEYS[1] = "left" ARGV = nil`)
	if got := s.eval(`return #KEYS`); got != ":0" {
		t.Errorf("KEYS of the next script: %q", got)
	}
}

const counterLibrary = "#!lua name=%s\nlocal n = 0\nredis.register_function('%s', function(keys, args) n = n + 1 redis.call('incrby', keys[1], args[1]) return n end)"

func TestLibrariesAreState(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	k := s.onShard0("k")
	load := func(name, fn string, opts ...string) string {
		args := append([]string{"FUNCTION", "LOAD"}, opts...)
		return s.do(append(args, fmt.Sprintf(counterLibrary, name, fn))...)
	}
	load("one", "f1")
	load("two", "f2")
	s.do("FCALL", "f1", "1", k, "5")
	if got := s.do("FCALL", "f1", "1", k, "5"); got != ":2" {
		t.Errorf("f1: %q", got)
	}
	load("three", "f3")
	if got := s.do("FCALL", "f1", "1", k, "5"); got != ":3" {
		t.Errorf("f1 has lost its state when another library was loaded: %q", got)
	}
	load("two", "f2b", "REPLACE")
	s.do("FUNCTION", "DELETE", "three")
	s.do("FUNCTION", "DELETE", "three")
	if got := load("four", "F1"); got != "-ERR Function F1 already exists" {
		t.Errorf("a name that is taken: %q", got)
	}
	list := s.do("FUNCTION", "LIST", "WITHCODE")
	check := func(how string) {
		t.Helper()
		if got := s.do("FUNCTION", "LIST", "WITHCODE"); got != list {
			t.Errorf("%s: %q\nwant %q", how, got, list)
		}
		if got := s.do("FCALL", "f2b", "1", k, "1"); !strings.HasPrefix(got, ":") {
			t.Errorf("%s: FCALL: %q", how, got)
		}
	}
	check("live")
	s.close()
	s = open(t, fs)
	check("restarted")
	if err := s.e.Save(); err != nil {
		t.Fatal(err)
	}
	check("saved")
	s.close()
	s = open(t, fs)
	check("from the snapshot")
	s.do("FLUSHALL")
	check("flushed")
	if err := s.e.Reload(true); err != nil {
		t.Fatal(err)
	}
	check("reloaded")
	s.do("FUNCTION", "FLUSH")
	s.close()
	s = open(t, fs)
	if got := s.do("FUNCTION", "LIST"); got != "*0" {
		t.Errorf("flushed and restarted: %q", got)
	}
	s.close()
}

func TestLibraryFrames(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	code := fmt.Sprintf(counterLibrary, "lib", "f")
	s.do("FUNCTION", "LOAD", code)
	s.do("FUNCTION", "LOAD", code) // refused
	s.do("FUNCTION", "FLUSH")
	s.do("FUNCTION", "FLUSH") // nothing to do
	s.wantFrames(0, "client true|true FUNCTION LOAD REPLACE "+code, "client true|true FUNCTION FLUSH")
	s.wantFrames(1)
}

func TestDumpRestore(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.close()
	long := fmt.Sprintf(counterLibrary, "long", "g") + "\n-- " + strings.Repeat("x", 20000)
	s.do("FUNCTION", "LOAD", fmt.Sprintf(counterLibrary, "lib", "f"))
	s.do("FUNCTION", "LOAD", long)
	list := s.do("FUNCTION", "LIST", "WITHCODE")
	s.do("FUNCTION", "DUMP")
	s.w.Buf = s.w.Buf[:0]
	s.run("FUNCTION", "DUMP")
	_, body, _ := strings.Cut(string(s.w.Buf), "\r\n")
	payload := strings.TrimSuffix(body, "\r\n")
	for _, c := range [][2]string{
		{"APPEND", "-ERR Library lib already exists"}, {"REPLACE", "+OK"}, {"FLUSH", "+OK"},
	} {
		if got := s.do("FUNCTION", "RESTORE", payload, c[0]); got != c[1] {
			t.Errorf("%s: %q", c[0], got)
		}
	}
	if got := s.do("FUNCTION", "LIST", "WITHCODE"); got != list {
		t.Errorf("restored %q", got)
	}
	for i := range len(payload) - 10 {
		bad := payload[:i] + string(payload[i]^0x55) + payload[i+1:]
		if i%97 == 0 {
			if got := s.do("FUNCTION", "RESTORE", bad, "FLUSH"); got != "-ERR "+msgBadPayload {
				t.Fatalf("byte %d changed: %q", i, got)
			}
		}
	}
}

func TestPackedString(t *testing.T) {
	// "aaaaaaaaaa", as LZF writes it: one literal, then a copy of nine.
	r := &dumpReader{b: []byte{0xc3, 5, 10, 0, 'a', 0xe0, 0, 0}}
	if got := r.string(); got != "aaaaaaaaaa" || r.err != nil {
		t.Errorf("%q, %v", got, r.err)
	}
	for _, b := range [][]byte{{0xc3, 5, 10, 0, 'a', 0xe0, 0, 9}, {0xc3, 50, 10, 0}, {0xc3, 2, 200, 5, 'a'}, {0x80}, {0x41}} {
		r := &dumpReader{b: b}
		if got := r.string(); r.err == nil {
			t.Errorf("%v: %q", b, got)
		}
	}
}
