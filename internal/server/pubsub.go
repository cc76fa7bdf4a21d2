package server

import (
	"strings"

	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/pubsub"
)

var pubsubHelp = []string{
	"CHANNELS [<pattern>]", "    Return the currently active channels matching a <pattern> (default: '*').",
	"NUMPAT", "    Return number of subscriptions to patterns.",
	"NUMSUB [<channel> ...]", "    Return the number of subscribers for the specified channels, excluding",
	"    pattern subscriptions(default: no channels).",
	"SHARDCHANNELS [<pattern>]",
	"    Return the currently active shard level channels matching a <pattern> (default: '*').",
	"SHARDNUMSUB [<shardchannel> ...]",
	"    Return the number of subscribers for the specified shard level channel(s)",
}

// words are how replies call the two directions of a kind of subscription.
var subscribeWords = [...][2]string{
	pubsub.Channel: {"subscribe", "unsubscribe"},
	pubsub.Pattern: {"psubscribe", "punsubscribe"},
	pubsub.Shard:   {"ssubscribe", "sunsubscribe"},
}

func registerPubSub(r registry) {
	for k, words := range subscribeWords {
		kind := pubsub.Kind(k) //nolint:gosec // three kinds
		r[words[0]] = func(s *session, args [][]byte) { s.subscribe(kind, args[1:]) }
		r[words[1]] = func(s *session, args [][]byte) { s.unsubscribe(kind, args[1:]) }
	}
	r["publish"] = func(s *session, args [][]byte) { s.w.Int(int64(s.srv.hub.Publish(args[1], args[2]))) }
	r["spublish"] = func(s *session, args [][]byte) { s.w.Int(int64(s.srv.hub.PublishShard(args[1], args[2]))) }
	r["pubsub|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], pubsubHelp) }
	r["pubsub|channels"] = pubsubNames(pubsub.Channel)
	r["pubsub|shardchannels"] = pubsubNames(pubsub.Shard)
	r["pubsub|numsub"] = pubsubCounts(pubsub.Channel)
	r["pubsub|shardnumsub"] = pubsubCounts(pubsub.Shard)
	r["pubsub|numpat"] = func(s *session, _ [][]byte) { s.w.Int(int64(s.srv.hub.Len(pubsub.Pattern))) }
}

func pubsubNames(kind pubsub.Kind) handlerFunc {
	return func(s *session, args [][]byte) {
		if len(args) > 3 {
			s.w.Error(command.SubcommandArgsError(args))
			return
		}
		var pattern []byte
		if len(args) == 3 {
			pattern = args[2]
		}
		names := s.srv.hub.Names(kind, pattern)
		s.w.Array(len(names))
		for _, name := range names {
			s.w.BulkString(name)
		}
	}
}

func pubsubCounts(kind pubsub.Kind) handlerFunc {
	return func(s *session, args [][]byte) {
		s.w.Array(2 * (len(args) - 2))
		for _, name := range args[2:] {
			s.w.Bulk(name)
			s.w.Int(int64(s.srv.hub.Audience(kind, name)))
		}
	}
}

// subscribed is the number that replies to a change of subscriptions of a kind end with.
func (s *session) subscribed(kind pubsub.Kind) int64 {
	if kind == pubsub.Shard {
		return int64(s.subs.Len(kind))
	}
	return int64(s.subs.Len(pubsub.Channel) + s.subs.Len(pubsub.Pattern))
}

func (s *session) subscribe(kind pubsub.Kind, names [][]byte) {
	if kind == pubsub.Shard && s.multi.running {
		s.w.Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
		return
	}
	if !s.multi.running {
		s.drainInbox() // what came while the client could not be told
	}
	for _, name := range names {
		s.subs.Add(kind, name)
		s.w.Push(3)
		s.w.BulkString(subscribeWords[kind][0])
		s.w.Bulk(name)
		s.w.Int(s.subscribed(kind))
	}
	s.subscriptionsChanged()
}

func (s *session) unsubscribe(kind pubsub.Kind, names [][]byte) {
	if len(names) == 0 {
		for _, name := range s.subs.Names(kind) {
			names = append(names, []byte(name))
		}
	}
	for _, name := range names {
		s.subs.Remove(kind, name)
		s.w.Push(3)
		s.w.BulkString(subscribeWords[kind][1])
		s.w.Bulk(name)
		s.w.Int(s.subscribed(kind))
	}
	if len(names) == 0 {
		s.w.Push(3)
		s.w.BulkString(subscribeWords[kind][1])
		s.w.Null()
		s.w.Int(s.subscribed(kind))
	}
	s.subscriptionsChanged()
}

// subscriptionsChanged makes the session a subscriber, or an ordinary one again.
func (s *session) subscriptionsChanged() {
	subscriber := s.subs.Any()
	if subscriber == (s.gate&gateSubscriber != 0) {
		return
	}
	s.gate &^= gateSubscriber
	if subscriber {
		s.gate |= gateSubscriber
	}
	s.onLoop(func() {
		s.conn.SetIdleExempt(subscriber)
		s.conn.SetOutputBounds(s.srv.bounds.of(subscriber))
	})
}

// repliesByPush reports whether a command's replies are messages, which CLIENT REPLY does not keep back.
func repliesByPush(cmd *command.Command) bool {
	return cmd != nil && cmd.Flags&command.PubSub != 0 && strings.HasSuffix(cmd.Name, "subscribe")
}

// subscriberMay reports whether a command may run in a RESP2 connection with subscriptions, where a reply and a
// message cannot be told apart.
func subscriberMay(cmd *command.Command) bool {
	switch cmd.Name {
	case "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "ping", "quit", "reset":
		return true
	}
	return false
}

func msgSubscriber(cmd *command.Command) string {
	return "ERR Can't execute '" + cmd.Name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
}
