package server

import (
	"maps"
	"slices"
	"strings"
)

const (
	msgOneRedirect = "ERR A client can only redirect to a single other client"
	msgNoRedirect  = "ERR The client ID you want redirect to does not exist"
	msgPrefix      = "ERR PREFIX option requires BCAST mode to be enabled"
	msgBcastSwitch = "ERR You can't switch BCAST mode on/off before disabling tracking for this client, " +
		"and then re-enabling it with a different mode."
	msgBcastOpt  = "ERR OPTIN and OPTOUT are not compatible with BCAST"
	msgOptBoth   = "ERR You can't specify both OPTIN mode and OPTOUT mode"
	msgOptSwitch = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, " +
		"and then re-enabling it with a different mode."
	msgCaching = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or " +
		"OPTOUT mode enabled"
	msgCachingYes = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
	msgCachingNo  = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
	msgOverlap    = "Prefixes for a single client must not overlap."
)

// trackingOptions are what CLIENT TRACKING asks for.
type trackingOptions struct {
	redirect                     uint64
	bcast, optin, optout, noloop bool
	prefixes                     []string
}

func registerTracking(r registry) {
	r["client|tracking"] = clientTracking
	r["client|caching"] = clientCaching
	r["client|getredir"] = clientGetRedir
	r["client|trackinginfo"] = clientTrackingInfo
}

func (s *session) parseTracking(args [][]byte) (o trackingOptions, bad string) {
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case isName(args[i], "redirect") && more:
			i++
			if o.redirect != 0 {
				return o, msgOneRedirect
			}
			id, ok := parseInt(args[i])
			if !ok {
				return o, msgNotInteger
			}
			o.redirect = uint64(id) //nolint:gosec // negative ones are not found
			if s.srv.clients.find(o.redirect) == nil {
				return o, msgNoRedirect
			}
		case isName(args[i], "bcast"):
			o.bcast = true
		case isName(args[i], "optin"):
			o.optin = true
		case isName(args[i], "optout"):
			o.optout = true
		case isName(args[i], "noloop"):
			o.noloop = true
		case isName(args[i], "prefix") && more:
			i++
			o.prefixes = append(o.prefixes, string(args[i]))
		default:
			return o, msgSyntax
		}
	}
	return o, ""
}

// check returns why the options do not go together, or with what is in force.
func (o *trackingOptions) check(k *tracked) (bad string) {
	switch {
	case !o.bcast && len(o.prefixes) > 0:
		return msgPrefix
	case k.on && k.bcast != o.bcast:
		return msgBcastSwitch
	case o.bcast && (o.optin || o.optout):
		return msgBcastOpt
	case o.optin && o.optout:
		return msgOptBoth
	case o.optin && k.optout || o.optout && k.optin:
		return msgOptSwitch
	case o.bcast:
		return o.collision(k)
	}
	return ""
}

func (o *trackingOptions) collision(k *tracked) string {
	for i, p := range o.prefixes {
		for _, old := range slices.Sorted(maps.Keys(k.prefixes)) {
			if overlap(p, old) {
				return "ERR Prefix '" + p + "' overlaps with an existing prefix '" + old + "'. " + msgOverlap
			}
		}
		for _, other := range o.prefixes[i+1:] {
			if overlap(p, other) {
				return "ERR Prefix '" + p + "' overlaps with another provided prefix '" + other + "'. " + msgOverlap
			}
		}
	}
	return ""
}

func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// clientTracking is CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX p ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP].
func clientTracking(s *session, args [][]byte) {
	o, bad := s.parseTracking(args[3:])
	if bad != "" {
		s.w.Error(bad)
		return
	}
	switch {
	case isName(args[2], "on"):
		k := s.srv.tracking.state(s)
		if bad := o.check(&k); bad != "" {
			s.w.Error(bad)
			return
		}
		s.srv.tracking.enable(s, &o)
		s.gate |= gateTracking
	case isName(args[2], "off"):
		s.srv.tracking.disable(s)
		s.gate &^= gateTracking
	default:
		s.w.Error(msgSyntax)
		return
	}
	s.srv.applyWanted()
	s.w.OK()
}

func clientCaching(s *session, args [][]byte) {
	k := s.srv.tracking.state(s)
	switch {
	case !k.on:
		s.w.Error(msgCaching)
		return
	case isName(args[2], "yes"):
		if !k.optin {
			s.w.Error(msgCachingYes)
			return
		}
	case isName(args[2], "no"):
		if !k.optout {
			s.w.Error(msgCachingNo)
			return
		}
	default:
		s.w.Error(msgSyntax)
		return
	}
	s.track.caching = true
	s.w.OK()
}

// redirects is where invalidations go as Redis shows it: 0 to the client itself, -1 tracking is off.
func (k *tracked) redirects() int64 {
	if !k.on {
		return -1
	}
	return int64(k.redirect) //nolint:gosec // ids are small
}

func clientGetRedir(s *session, _ [][]byte) {
	k := s.srv.tracking.state(s)
	s.w.Int(k.redirects())
}

func clientTrackingInfo(s *session, _ [][]byte) {
	k := s.srv.tracking.state(s)
	flags := []string{"off"}
	if k.on {
		flags[0] = "on"
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{k.bcast, "bcast"},
		{k.optin, "optin"},
		{k.optin && k.caching, "caching-yes"},
		{k.optout, "optout"},
		{k.optout && k.caching, "caching-no"},
		{k.noloop, "noloop"},
		{k.broken, "broken_redirect"},
	} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	w := s.w
	w.Map(3)
	w.BulkString("flags")
	w.Set(len(flags))
	for _, f := range flags {
		w.BulkString(f)
	}
	w.BulkString("redirect")
	w.Int(k.redirects())
	w.BulkString("prefixes")
	w.Array(len(k.prefixes))
	for _, p := range slices.Sorted(maps.Keys(k.prefixes)) {
		w.BulkString(p)
	}
}
