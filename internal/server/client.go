package server

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/resp"
)

const msgBadName = "ERR Client names cannot contain spaces, newlines or special characters."

// listOnLoop is the number of clients up to which a loop may list them itself.
const listOnLoop = 256

var clientHelp = []string{
	"CACHING (YES|NO)", "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
	"GETREDIR", "    Return the client ID we are redirecting to when tracking is enabled.",
	"GETNAME", "    Return the name of the current connection.",
	"ID", "    Return the ID of the current connection.",
	"INFO", "    Return information about the current client connection.",
	"KILL <ip:port>", "    Kill connection made from <ip:port>.",
	"KILL <option> <value> [<option> <value> [...]]", "    Kill connections. Options are:",
	"    * ADDR (<ip:port>|<unixsocket>:0)", "      Kill connections made from the specified address",
	"    * LADDR (<ip:port>|<unixsocket>:0)", "      Kill connections made to specified local address",
	"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)", "      Kill connections by type.",
	"    * USER <username>", "      Kill connections authenticated by <username>.",
	"    * SKIPME (YES|NO)", "      Skip killing current connection (default: yes).",
	"LIST [options ...]", "    Return information about client connections. Options:",
	"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)", "      Return clients of specified type.",
	"UNPAUSE", "    Stop the current client pause, resuming traffic.",
	"PAUSE <timeout> [WRITE|ALL]", "    Suspend all, or just write, clients for <timeout> milliseconds.",
	"REPLY (ON|OFF|SKIP)", "    Control the replies sent to the current connection.",
	"SETNAME <name>", "    Assign the name <name> to the current connection.",
	"SETINFO <option> <value>", "    Set client meta attr. Options are:",
	"    * LIB-NAME: the client lib name.", "    * LIB-VER: the client lib version.",
	"UNBLOCK <clientid> [TIMEOUT|ERROR]", "    Unblock the specified blocked client.",
	"TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
	"         [OPTIN] [OPTOUT] [NOLOOP]",
	"    Control server assisted client side caching.",
	"TRACKINGINFO", "    Report tracking status for the current connection.",
	"NO-EVICT (ON|OFF)", "    Protect current client connection from eviction.",
	"NO-TOUCH (ON|OFF)", "    Will not touch LRU/LFU stats when this mode is on.",
}

func clientHelpCommand(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], clientHelp) }

func clientID(s *session, _ [][]byte) { s.w.Uint(s.id) }

func clientGetName(s *session, _ [][]byte) {
	if name := s.info().name; name != "" {
		s.w.BulkString(name)
		return
	}
	s.w.Null()
}

// validAttr reports whether a name or library attribute has only printable characters without
// spaces.
func validAttr(b []byte) bool {
	for _, c := range b {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}

func clientSetName(s *session, args [][]byte) {
	if !validAttr(args[2]) {
		s.w.Error(msgBadName)
		return
	}
	s.setInfo(func(i *clientInfo) { i.name = string(args[2]) })
	s.w.OK()
}

func clientSetInfo(s *session, args [][]byte) {
	var set func(*clientInfo)
	value := string(args[3])
	switch {
	case isName(args[2], "lib-name"):
		set = func(i *clientInfo) { i.libName = value }
	case isName(args[2], "lib-ver"):
		set = func(i *clientInfo) { i.libVer = value }
	default:
		s.w.Error("ERR Unrecognized option '" + string(args[2]) + "'")
		return
	}
	if !validAttr(args[3]) {
		s.w.Error("ERR " + string(args[2]) + " cannot contain spaces, newlines or special characters.")
		return
	}
	s.setInfo(set)
	s.w.OK()
}

func clientInfoCommand(s *session, _ [][]byte) {
	i := s.own()
	s.w.Verbatim("txt", i.line(time.Now())+"\n")
}

// clientList is CLIENT LIST [TYPE type] [ID id ...].
func clientList(s *session, args [][]byte) {
	var list []*session
	switch {
	case len(args) == 2:
		list = s.srv.clients.all()
	case len(args) == 4 && isName(args[2], "type"):
		kind, ok := clientType(args[3])
		if !ok {
			s.w.Error("ERR Unknown client type '" + string(args[3]) + "'")
			return
		}
		list = slices.DeleteFunc(s.srv.clients.all(), func(c *session) bool {
			i := c.info()
			return i.kind() != kind
		})
	case len(args) > 3 && isName(args[2], "id"):
		for _, a := range args[3:] {
			id, ok := parseInt(a)
			if !ok {
				s.w.Error("ERR Invalid client ID")
				return
			}
			if c := s.srv.clients.find(uint64(id)); c != nil {
				list = append(list, c)
			}
		}
	default:
		s.w.Error(msgSyntax)
		return
	}
	own := s.own()
	if !s.multi.running {
		for _, c := range list {
			if c.loop == s.loop && c != s {
				c.publish()
			}
		}
		s.srv.evictor.check(s.srv)
		list = slices.DeleteFunc(list, func(c *session) bool { return s.srv.clients.find(c.id) == nil })
	}
	if len(list) <= listOnLoop {
		s.w.Verbatim("txt", lines(list, s, own))
		return
	}
	s.parkRun(func(w *resp.Writer) { w.Verbatim("txt", lines(list, s, own)) })
}

func lines(list []*session, self *session, own clientInfo) string {
	var b strings.Builder
	now := time.Now()
	for _, c := range list {
		i := own
		if c != self {
			i = c.info()
		}
		b.WriteString(i.line(now))
		b.WriteByte('\n')
	}
	return b.String()
}

// Types of clients.
const (
	typeNormal = iota
	typeReplica
	typePubSub
	typeMaster
)

func clientType(b []byte) (int, bool) {
	switch strings.ToLower(string(b)) {
	case "normal":
		return typeNormal, true
	case "slave", "replica":
		return typeReplica, true
	case "pubsub":
		return typePubSub, true
	case "master":
		return typeMaster, true
	}
	return 0, false
}

func clientReply(s *session, args [][]byte) {
	switch {
	case isName(args[2], "on"):
		s.setReplyMode(replyOn)
		s.w.OK()
	case isName(args[2], "off"):
		s.setReplyMode(replyOff)
	case isName(args[2], "skip"):
		if s.reply != replyOff {
			s.setReplyMode(replySkipNext)
		}
	default:
		s.w.Error(msgSyntax)
	}
}

func clientNoEvict(s *session, args [][]byte) { s.onOff(args[2], &s.noEvict) }

func clientNoTouch(s *session, args [][]byte) { s.onOff(args[2], &s.noTouch) }

func (s *session) onOff(arg []byte, field *bool) {
	switch {
	case isName(arg, "on"):
		*field = true
	case isName(arg, "off"):
		*field = false
	default:
		s.w.Error(msgSyntax)
		return
	}
	s.w.OK()
}

// clientPause is CLIENT PAUSE timeout [WRITE|ALL].
func clientPause(s *session, args [][]byte) {
	all := true
	if len(args) > 4 {
		s.w.Error(command.SubcommandArgsError(args))
		return
	}
	if len(args) == 4 {
		switch {
		case isName(args[3], "write"):
			all = false
		case !isName(args[3], "all"):
			s.w.Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
			return
		}
	}
	ms, ok := parseInt(args[2])
	now := time.Now()
	switch {
	case !ok:
		s.w.Error("ERR timeout is not an integer or out of range")
		return
	case ms < 0:
		s.w.Error("ERR timeout is negative")
		return
	case ms > math.MaxInt64-now.UnixMilli():
		s.w.Error("ERR timeout is out of range")
		return
	}
	ms = min(ms, math.MaxInt64/int64(time.Millisecond)/2)
	s.srv.pause.begin(now.Add(time.Duration(ms)*time.Millisecond), all)
	s.w.OK()
}

func clientUnpause(s *session, _ [][]byte) {
	s.srv.pause.end()
	s.w.OK()
}

// clientUnblock is CLIENT UNBLOCK id [TIMEOUT|ERROR].
func clientUnblock(s *session, args [][]byte) {
	cause := errUnblockTimeout
	if len(args) > 4 {
		s.w.Error(command.SubcommandArgsError(args))
		return
	}
	if len(args) == 4 {
		switch {
		case isName(args[3], "error"):
			cause = errUnblockError
		case !isName(args[3], "timeout"):
			s.w.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	id, err := strconv.ParseUint(string(args[2]), 10, 64)
	if err != nil {
		if _, ok := parseInt(args[2]); !ok {
			s.w.Error(msgNotInteger)
			return
		}
	}
	target := s.srv.clients.find(id)
	if target != nil && target.work.unblock(cause) {
		s.w.Int(1)
		return
	}
	s.w.Int(0)
}
