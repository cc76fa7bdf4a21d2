package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	peer "github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/config"
)

// tlsFiles are the settings that both sides of a connection need.
func tlsFiles(cfg *config.Config) *peer.TLS {
	return &peer.TLS{CACert: cfg.TLSCACert, Cert: cfg.TLSCert, Key: cfg.TLSKey, Protocols: cfg.TLSProtocols}
}

// secured is the configuration of the TLS port: each client gets what CONFIG SET has made of it by then.
func (srv *Server) secured() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12, // of the answer that a client gets if it can't be served; what is in force has its own
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return srv.secure.Load(), nil },
	}
}

// applyTLS puts keys of TLS into force for clients to come. Without a TLS port nothing is looked at.
func (srv *Server) applyTLS(cfg *config.Config, name string) error {
	if cfg.TLSPort == 0 {
		return nil
	}
	next, err := tlsConfig(cfg)
	if err != nil {
		srv.log.Warn("TLS configuration not changed", "error", err)
		return config.SetFailed(name, errors.New("Unable to update TLS configuration. Check server logs.")) //nolint:revive,staticcheck // Redis's words
	}
	srv.secure.Store(next)
	return nil
}

// tlsConfig returns what the TLS port speaks. Errors name the key to correct.
func tlsConfig(cfg *config.Config) (*tls.Config, error) {
	if cfg.TLSCert == "" || cfg.TLSKey == "" {
		return nil, errors.New("tls-port needs tls-cert-file and tls-key-file: PEM files of a certificate and its key")
	}
	files := tlsFiles(cfg)
	out, err := files.Common()
	if err != nil {
		return nil, err
	}
	switch cfg.TLSAuthClients {
	case "yes":
		out.ClientAuth = tls.RequireAndVerifyClientCert
	case "optional":
		out.ClientAuth = tls.VerifyClientCertIfGiven
	}
	if cfg.TLSCACert == "" {
		if cfg.TLSAuthClients == "no" {
			return out, nil
		}
		return nil, errors.New("tls-auth-clients needs tls-ca-cert-file, the authority that signs the clients' certificates " +
			"(tls-auth-clients no: clients need none)")
	}
	out.ClientCAs, err = files.Authorities()
	return out, err
}

// dialSource connects to the server that is followed.
func (srv *Server) dialSource(ctx context.Context, addr string) (net.Conn, error) {
	cfg := srv.config()
	from, _ := cfg.Get("bind-source-addr")
	if !cfg.TLSReplication {
		return peer.DialFrom(ctx, from, addr)
	}
	files := tlsFiles(cfg)
	files.From = from
	return files.DialSource(ctx, addr)
}
