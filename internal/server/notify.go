package server

import (
	"github.com/kevydb/kevy/internal/command"
	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/engine"
)

// notifier passes on what committed groups did: keyspace notifications, and invalidations of keys that clients
// keep copies of. It implements engine.Listener.
type notifier struct{ srv *Server }

// Committed implements engine.Listener.
func (n notifier) Committed(c *engine.Changes) {
	if len(c.Events) > 0 {
		classes := command.EventClass(n.srv.events.Load())
		for i := range c.Events {
			n.srv.notify(classes, &c.Events[i])
		}
	}
	if c.Flushed || len(c.Keys) > 0 || c.Held != nil {
		n.srv.tracking.changed(c)
	}
}

// Touched implements engine.Listener.
func (n notifier) Touched(c *engine.Changes, at int) { n.srv.tracking.take(c, at) }

// notify publishes one keyspace notification.
func (srv *Server) notify(classes command.EventClass, ev *command.Event) {
	if classes&ev.Class == 0 {
		return
	}
	if classes&command.EventKeyspace != 0 {
		srv.hub.Publish([]byte("__keyspace@0__:"+ev.Key), []byte(ev.Name))
	}
	if classes&command.EventKeyevent != 0 {
		srv.hub.Publish([]byte("__keyevent@0__:"+ev.Name), []byte(ev.Key))
	}
}

// applyEvents puts notify-keyspace-events into force.
func (srv *Server) applyEvents(cfg *config.Config) {
	text, _ := cfg.Get("notify-keyspace-events")
	srv.events.Store(uint32(command.ParseEventClasses(text)))
	srv.applyWanted()
}

// applyWanted tells the engine what is listened to.
func (srv *Server) applyWanted() {
	srv.wantedMu.Lock()
	defer srv.wantedMu.Unlock()
	const ways = command.EventKeyspace | command.EventKeyevent
	want := uint32(0)
	if events := command.EventClass(srv.events.Load()); events&ways != 0 {
		want = uint32(events &^ ways)
	}
	if srv.tracking.clients.Load() > 0 {
		want |= engine.WantKeys
	}
	srv.eng.SetWanted(want)
}
