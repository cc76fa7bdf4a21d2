package server

import (
	"net/netip"
	"strings"

	"github.com/kevydb/kevy/resp"
)

// msgDenied is what a client of another machine gets in protected mode.
const msgDenied = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set " +
	"for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect " +
	"from external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode sending " +
	"the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the " +
	"server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE " +
	"to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the Redis " +
	"configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If you started " +
	"the server manually just for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication " +
	"password for the default user. NOTE: You only need to do one of the above things in order for the server to start " +
	"accepting connections from the outside."

// denied reports whether protected mode keeps a new connection out: one from another machine while the default user
// needs no password.
func (srv *Server) denied(c *resp.Conn) bool {
	return srv.config().ProtectedMode && srv.access.users.Default().User().NoPassword && !isLocal(c)
}

// isLocal reports whether the client runs on this machine, as far as its address tells.
func isLocal(c *resp.Conn) bool { return localAddress(c.LocalAddr(), c.RemoteAddr()) }

func localAddress(local, remote string) bool {
	if strings.HasSuffix(local, ":0") {
		return true // a unix socket
	}
	ap, err := netip.ParseAddrPort(remote)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
