package resp

import (
	"crypto/tls"
	"net"
)

// wrapTLS speaks TLS on nc if there is a configuration. The handshake is made by the first read.
func wrapTLS(nc net.Conn, cfg *tls.Config) net.Conn {
	if cfg == nil {
		return nc
	}
	return tls.Server(nc, cfg)
}
