package server

import "github.com/kevydb/kevy/internal/command"

// msgModuleDenied is Redis's reply with enable-module-command no, which is what kevy reports.
const msgModuleDenied = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", " +
	"you can run it from a local connection, otherwise you need to set this option in the configuration file, " +
	"and then restart the server."

var moduleHelp = []string{
	"LIST", "    Return a list of loaded modules.",
	"LOAD <path> [<arg> ...]", "    Load a module library from <path>, passing to it any optional arguments.",
	"LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
	"    Load a module library from <path>, while passing it module configurations and optional arguments.",
	"UNLOAD <name>", "    Unload a module.",
}

func registerModule(r registry) {
	refuse := func(s *session, _ [][]byte) { s.w.Error(msgModuleDenied) }
	r["module|help"] = func(s *session, args [][]byte) { command.ReplyHelp(s.w, args[0], moduleHelp) }
	r["module|list"] = func(s *session, _ [][]byte) { s.w.Array(0) }
	r["module|load"], r["module|loadex"], r["module|unload"] = refuse, refuse, refuse
}
