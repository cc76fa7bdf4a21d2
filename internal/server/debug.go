package server

import (
	"crypto/sha1" //nolint:gosec // compared with itself only
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
	"github.com/kevydb/kevy/resp"
)

const msgDebugDenied = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", " +
	"you can run it from a local connection, otherwise you need to set this option in the configuration file, " +
	"and then restart the server."

var debugHelp = []string{
	"CHANGE-REPL-ID", "    Change the replication IDs of the instance.",
	"DIGEST", "    Output a hex signature representing the current DB content.",
	"DIGEST-VALUE <key> [<key> ...]", "    Output a hex signature of the values of all the specified keys.",
	"ERROR <string>", "    Return a Redis protocol error with <string> as message.",
	"LOG <message>", "    Write <message> to the server log.",
	"LOADAOF", "    Fold the keyspace again from the log on disk.",
	"OBJECT <key>", "    Show low level info about `key` and associated value.",
	"PROTOCOL <type>", "    Reply with a test value of the specified type. <type> can be: string,",
	"    integer, double, bignum, null, array, set, map, attrib, push, verbatim,", "    true, false.",
	"RELOAD [NOSAVE]", "    Save a snapshot, then fold the keyspace again from disk.",
	"SET-ACTIVE-EXPIRE <0|1>", "    Setting it to 0 disables expiring keys in background when they are not",
	"    accessed. Setting it to 1 reenables back the default.",
	"SLEEP <seconds>", "    Keep this client waiting for <seconds>. Decimals allowed. Others are served.",
}

// debugFunc runs one DEBUG subcommand.
type debugFunc struct {
	arity int // of the whole request; negative: at least
	run   func(s *session, args [][]byte)
	locks bool // needs the shard locks: not inside a transaction
}

var debugCommands = map[string]debugFunc{
	"help":                         {2, debugHelpCommand, false},
	"sleep":                        {3, debugSleep, false},
	"reload":                       {-2, debugReload, true},
	"loadaof":                      {2, debugLoadAOF, true},
	"object":                       {3, debugObject, true},
	"digest":                       {2, debugDigest, true},
	"digest-value":                 {-2, debugDigestValue, true},
	"set-active-expire":            {3, debugActiveExpire, false},
	"change-repl-id":               {2, debugChangeReplID, false},
	"log":                          {3, debugLog, false},
	"error":                        {3, debugError, false},
	"protocol":                     {3, debugProtocol, false},
	"quicklist-packed-threshold":   {3, debugPackedThreshold, false},
	"replybuffer":                  {4, debugIgnored, false},
	"pause-cron":                   {3, debugIgnored, false},
	"set-skip-checksum-validation": {3, debugIgnored, false},
	"set-disable-deny-scripts":     {3, debugDenyScripts, false},
	"jmap":                         {-2, debugJmap, false},
}

func debugCommand(s *session, args [][]byte) {
	if !s.debugAllowed() {
		s.w.Error(msgDebugDenied)
		return
	}
	d, ok := debugCommands[strings.ToLower(string(args[1]))]
	switch {
	case !ok || (d.arity > 0 && len(args) != d.arity) || len(args) < -d.arity:
		s.w.Error("ERR unknown subcommand or wrong number of arguments for '" + string(args[1]) +
			"'. Try DEBUG HELP.")
	case d.locks && s.multi.running:
		s.w.Error("ERR DEBUG " + strings.ToUpper(string(args[1])) + " is not allowed inside a transaction")
	default:
		d.run(s, args)
	}
}

func (s *session) debugAllowed() bool {
	switch s.srv.config().DebugCommand {
	case "yes":
		return true
	case "no":
		return false
	}
	return isLocal(s.conn)
}

func debugHelpCommand(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], debugHelp) }

// debugSleep keeps the client waiting; the server goes on. Inside a transaction, which holds the
// shard locks, the others wait too.
func debugSleep(s *session, args [][]byte) {
	f, err := strconv.ParseFloat(string(args[2]), 64)
	if err != nil || math.IsNaN(f) || f < 0 {
		f = 0
	}
	d := time.Duration(min(f, 1e6) * float64(time.Second))
	s.parkRun(func(w *resp.Writer) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.srv.ctx.Done():
		}
		w.OK()
	})
}

// debugReload is DEBUG RELOAD [NOSAVE]: snapshot, forget everything, fold it again from disk.
func debugReload(s *session, args [][]byte) {
	save, merge, noFlush := true, false, false
	for _, a := range args[2:] {
		switch {
		case isName(a, "nosave"):
			save = false
		case isName(a, "merge"):
			merge = true
		case isName(a, "noflush"):
			noFlush = true
		default:
			s.w.Error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
			return
		}
	}
	// Redis loads what it has saved on top of what is there, and fails when a key or a library is there already. Here loading always
	// starts from nothing; what would fail there is refused.
	if _, libraries, _, _ := s.srv.scripts.rt.Memory(); noFlush && !merge && libraries > 0 {
		s.w.Error("ERR Error trying to load the RDB dump, check server logs.")
		return
	}
	s.reload(save)
}

// debugDenyScripts is DEBUG SET-DISABLE-DENY-SCRIPTS 0|1: with 1 scripts may run commands that are not for scripts.
func debugDenyScripts(s *session, args [][]byte) {
	s.srv.scripts.rt.AllowAll(string(args[2]) != "0")
	s.w.OK()
}

func debugLoadAOF(s *session, _ [][]byte) { s.reload(false) }

func (s *session) reload(save bool) {
	s.parkRun(func(w *resp.Writer) {
		if err := s.srv.eng.Reload(save); err != nil {
			w.Error("ERR " + strings.TrimPrefix(err.Error(), "ERR "))
			return
		}
		w.OK()
	})
}

// ask runs a data command and returns its reply.
func (srv *Server) ask(args ...[]byte) []byte {
	c := srv.takeCtx()
	defer srv.giveCtx(c)
	return srv.askWith(c, args...)
}

// inspect is ask for keys as they are stored: those past their deadline too.
func (srv *Server) inspect(args ...[]byte) []byte {
	c := srv.takeCtx()
	defer srv.giveCtx(c)
	c.KeepExpired = true
	defer func() { c.KeepExpired = false }()
	return srv.askWith(c, args...)
}

func (srv *Server) askWith(c *command.Ctx, args ...[]byte) []byte {
	w := resp.Writer{}
	row, bad := command.Resolve(args)
	if row == nil {
		return []byte("-" + bad + "\r\n")
	}
	c.Cmd, c.Args, c.W, c.NoTouch = row, args, &w, true
	srv.eng.Run(c, new(engine.Ticket))
	return w.Buf
}

// bulkText is the text of a bulk or simple reply.
func bulkText(reply []byte) string {
	lines := strings.Split(string(reply), "\r\n")
	if len(reply) > 0 && reply[0] == '$' && len(lines) > 1 {
		return lines[1]
	}
	return strings.TrimLeft(lines[0], "+:-")
}

// debugObject is DEBUG OBJECT key, in Redis's format as far as it means something here. A key that is past its
// deadline but not deleted yet is shown.
func debugObject(s *session, args [][]byte) {
	key := cloneArgs(args[2:])[0]
	s.parkRun(func(w *resp.Writer) {
		encoding := s.srv.inspect([]byte("object"), []byte("encoding"), key)
		if encoding[0] == '-' || string(encoding) == "$-1\r\n" {
			w.Error("ERR no such key")
			return
		}
		idle, _ := strconv.ParseInt(bulkText(s.srv.inspect([]byte("object"), []byte("idletime"), key)), 10, 64) // 0 with an LFU policy
		size := bulkText(s.srv.inspect([]byte("memory"), []byte("usage"), key))
		const clockMask = 1<<24 - 1 // bits of Redis's access clock
		w.Simple(fmt.Sprintf("Value at:0x0 refcount:1 encoding:%s serializedlength:%s lru:%d lru_seconds_idle:%d",
			bulkText(encoding), size, (time.Now().Unix()-idle)&clockMask, idle))
	})
}

// debugDigest is DEBUG DIGEST: 40 hex digits that depend on keys, values and deadlines only.
func debugDigest(s *session, _ [][]byte) {
	s.parkRun(func(w *resp.Writer) {
		w.Simple(digestOf(s.srv.ask([]byte("prefix.digest"), nil)))
	})
}

// digestOf widens PREFIX.DIGEST's reply to the 40 digits of Redis's DEBUG DIGEST.
func digestOf(reply []byte) string {
	digest := ""
	eachReply(reply, func(i int, one []byte) {
		if i == 1 {
			digest = bulkText(one)
		}
	})
	const none = "0000000000000000000000000000000000000000"
	return (digest + none)[:len(none)]
}

// debugDigestValue is DEBUG DIGEST-VALUE key ...: the digest of each key's value.
func debugDigestValue(s *session, args [][]byte) {
	keys := cloneArgs(args[2:])
	s.parkRun(func(w *resp.Writer) {
		w.Array(len(keys))
		for _, key := range keys {
			w.Simple(s.srv.valueDigest(key))
		}
	})
}

// valueDigest hashes a key's type, value and whether it expires; all zeros if there is no such key.
func (srv *Server) valueDigest(key []byte) string {
	c := srv.takeCtx()
	defer srv.giveCtx(c)
	digest := strings.Repeat("0", 40)
	row := command.Command{Name: "debug|digest-value", FirstKey: 1, LastKey: 1, Step: 1}
	row.Plan = func(c *command.Ctx) {
		e, ok := c.Peek(key)
		if !ok {
			return
		}
		_, expires := e.Deadline()
		h := sha1.New() //nolint:gosec // compared with itself only
		fmt.Fprintf(h, "%d %v ", e.Type(), expires)
		fmt.Fprintf(h, "%016x", e.Digest())
		digest = hex.EncodeToString(h.Sum(nil))
	}
	c.Cmd, c.Args, c.W, c.NoTouch = &row, [][]byte{nil, key}, &resp.Writer{}, true
	srv.eng.Run(c, new(engine.Ticket))
	return digest
}

func debugActiveExpire(s *session, args [][]byte) {
	s.srv.eng.SetActiveExpire(string(args[2]) != "0")
	s.w.OK()
}

func debugChangeReplID(s *session, _ [][]byte) {
	s.srv.ids.changeReplID()
	s.w.OK()
}

func debugLog(s *session, args [][]byte) {
	s.srv.log.Warn("DEBUG LOG", "message", string(args[2]))
	s.w.OK()
}

func debugError(s *session, args [][]byte) { s.w.Error(string(args[2])) }

func debugIgnored(s *session, _ [][]byte) { s.w.OK() }

func debugPackedThreshold(s *session, args [][]byte) {
	n, err := config.ParseSize(string(args[2]))
	if err != nil || n > 1<<32 {
		s.w.Error("ERR argument must be a memory value bigger than 1 and smaller than 4gb")
		return
	}
	s.w.OK()
}

func debugJmap(s *session, _ [][]byte) {
	s.w.Error("ERR DEBUG JMAP is refused: kevy has no heap map to show; see GODEBUG and pprof")
}

// debugProtocol is DEBUG PROTOCOL type: a test value of each reply type.
func debugProtocol(s *session, args [][]byte) {
	w := s.w
	switch kind := strings.ToLower(string(args[2])); kind {
	case "string":
		w.BulkString("Hello World")
	case "integer":
		w.Int(12345)
	case "double":
		w.Double(3.141)
	case "bignum":
		protocolBig(w)
	case "null":
		w.Null()
	case "array", "set":
		if kind == "set" {
			w.Set(3)
		} else {
			w.Array(3)
		}
		for i := range 3 {
			w.Int(int64(i))
		}
	case "map":
		w.Map(3)
		for i := range 3 {
			w.Int(int64(i))
			w.Bool(i == 1)
		}
	case "attrib":
		protocolAttribute(w)
	case "push":
		protocolPush(w)
	case "true", "false":
		w.Bool(kind == "true")
	case "verbatim":
		w.Verbatim("txt", "This is a verbatim\nstring")
	default:
		w.Error("ERR Wrong protocol type name. Please use one of the following: string|integer|double|" +
			"bignum|null|array|set|map|attrib|push|verbatim|true|false")
	}
}

func protocolBig(w *resp.Writer) {
	const big = "1234567999999999999999999999999999999"
	if w.RESP3() {
		w.Raw([]byte("(" + big + "\r\n"))
		return
	}
	w.BulkString(big)
}

func protocolAttribute(w *resp.Writer) {
	if w.RESP3() {
		w.Raw([]byte("|1\r\n"))
		w.BulkString("key-popularity")
		w.Array(2)
		w.BulkString("key:123")
		w.Int(90)
	}
	w.BulkString("Some real reply following the attribute")
}

func protocolPush(w *resp.Writer) {
	if !w.RESP3() {
		w.Error("ERR RESP2 is not supported by this command")
		return
	}
	w.Push(2)
	w.BulkString("server-cpu-usage")
	w.Int(42)
	w.BulkString("Some real reply following the push reply")
}
