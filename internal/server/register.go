package server

import "github.com/kevydb/kevy/internal/command"

// handlerFunc runs a command of the server itself: it appends the reply to s.w, or parks the
// connection with parkRun or parkWait. args are valid during the call only.
type handlerFunc = func(s *session, args [][]byte)

// registry collects handlers by command name while the table is built.
type registry map[string]handlerFunc

// handlers returns the handlers by command id.
func handlers() []handlerFunc {
	r := make(registry)
	registerConnection(r)
	registerClient(r)
	registerTransaction(r)
	registerServer(r)
	registerFeed(r)
	registerScripting(r)
	registerPubSub(r)
	registerTracking(r)
	registerSlowlog(r)
	registerLatency(r)
	registerMemory(r)
	registerCluster(r)
	registerModule(r)
	registerACL(r)
	registerReplication(r)
	r["monitor"] = monitorCommand
	r["migrate"] = migrateCommand
	out := make([]handlerFunc, len(command.All()))
	for _, row := range command.All() {
		fn, ok := r[row.Name]
		switch {
		case ok:
			out[row.ID] = fn
		case row.Plan == nil && len(row.Sub) == 0:
			out[row.ID] = introspect
		}
	}
	return out
}

func registerConnection(r registry) {
	r["ping"] = pingCommand
	r["echo"] = echoCommand
	r["hello"] = helloCommand
	r["auth"] = authCommand
	r["select"] = selectCommand
	r["quit"] = quitCommand
	r["reset"] = resetCommand
}

func registerClient(r registry) {
	r["client|getname"] = clientGetName
	r["client|help"] = clientHelpCommand
	r["client|id"] = clientID
	r["client|info"] = clientInfoCommand
	r["client|kill"] = clientKill
	r["client|list"] = clientList
	r["client|no-evict"] = clientNoEvict
	r["client|no-touch"] = clientNoTouch
	r["client|pause"] = clientPause
	r["client|reply"] = clientReply
	r["client|setinfo"] = clientSetInfo
	r["client|setname"] = clientSetName
	r["client|unblock"] = clientUnblock
	r["client|unpause"] = clientUnpause
}

func registerTransaction(r registry) {
	r["multi"] = multiCommand
	r["exec"] = execCommand
	r["discard"] = discardCommand
	r["watch"] = watchCommand
	r["unwatch"] = unwatchCommand
}

func registerServer(r registry) {
	r["bgrewriteaof"] = bgrewriteaofCommand
	r["bgsave"] = bgsaveCommand
	r["command"] = introspect
	r["config|get"] = configGet
	r["config|help"] = configHelpCommand
	r["config|resetstat"] = configResetStat
	r["config|rewrite"] = configRewrite
	r["config|set"] = configSet
	r["debug"] = debugCommand
	r["info"] = infoCommand
	r["lastsave"] = lastSaveCommand
	r["lolwut"] = lolwutCommand
	r["role"] = roleCommand
	r["save"] = saveCommand
	r["shutdown"] = shutdownCommand
	r["snapshot.prune"] = snapshotPrune
	r["swapdb"] = swapdbCommand
	r["time"] = timeCommand
	r["wait"] = waitCommand
	r["waitaof"] = waitaofCommand
}

// introspect serves what needs nothing but the command table: COMMAND and its subcommands.
func introspect(s *session, args [][]byte) {
	row, bad := command.Resolve(args)
	if row == nil {
		s.w.Error(bad)
		return
	}
	command.Introspect(s.w, row, args)
}
