package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	peer "github.com/kevydb/kevy/internal/client"
	"github.com/kevydb/kevy/internal/config"
)

// handshakeLimit bounds the handshake with the server that is followed.
const handshakeLimit = 10 * time.Second

// tlsVersions are the words of tls-protocols.
var tlsVersions = map[string]uint16{
	"tlsv1": tls.VersionTLS10, "tlsv1.1": tls.VersionTLS11, "tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13,
}

// secured returns the configuration of a TLS port: each client gets what CONFIG SET has made of it by then.
func (srv *Server) secured(cfg *config.Config) (*tls.Config, error) {
	now, err := tlsConfig(cfg)
	if err != nil {
		return nil, err
	}
	srv.secure.Store(now)
	return &tls.Config{
		MinVersion:         tls.VersionTLS12, // of the answer that a client gets if it can't be served; now has its own
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return srv.secure.Load(), nil },
	}, nil
}

// applyTLS puts changed keys of TLS into force for clients to come. Without a TLS port there is nothing to change.
func (srv *Server) applyTLS(cfg *config.Config, name string) error {
	if srv.secure.Load() == nil {
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
	out, err := tlsCommon(cfg)
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
	out.ClientCAs, err = authorities(cfg)
	return out, err
}

// tlsCommon returns what both sides of a connection need: the certificate, if there is one, and the versions.
func tlsCommon(cfg *config.Config) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLSCert != "" && cfg.TLSKey != "" {
		pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("tls-cert-file %s, tls-key-file %s: %w", cfg.TLSCert, cfg.TLSKey, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, setProtocols(out, cfg.TLSProtocols)
}

// authorities reads tls-ca-cert-file.
func authorities(cfg *config.Config) (*x509.CertPool, error) {
	pem, err := os.ReadFile(cfg.TLSCACert)
	if err != nil {
		return nil, fmt.Errorf("tls-ca-cert-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls-ca-cert-file %s: no certificate in it", cfg.TLSCACert)
	}
	return pool, nil
}

// tlsToSource returns what is spoken to the server that is followed. As in Redis the other side needs a certificate that the authorities have signed,
// whatever name is in it; this side shows the one of its TLS port.
func tlsToSource(cfg *config.Config) (*tls.Config, error) {
	if cfg.TLSCACert == "" {
		return nil, errors.New("tls-replication needs tls-ca-cert-file, the authority that signs the source's certificate")
	}
	out, err := tlsCommon(cfg)
	if err != nil {
		return nil, err
	}
	roots, err := authorities(cfg)
	if err != nil {
		return nil, err
	}
	out.InsecureSkipVerify = true // of the name: the chain is checked here
	out.VerifyConnection = func(cs tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range cs.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := cs.PeerCertificates[0].Verify(o)
		return err
	}
	return out, nil
}

// dialSource connects to the server that is followed.
func (srv *Server) dialSource(ctx context.Context, addr string) (net.Conn, error) {
	cfg := srv.config()
	if !cfg.TLSReplication {
		return peer.DialTCP(ctx, addr)
	}
	secure, err := tlsToSource(cfg)
	if err != nil {
		return nil, err
	}
	nc, err := peer.DialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	out := tls.Client(nc, secure)
	shake, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	if err := out.HandshakeContext(shake); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return out, nil
}

// setProtocols takes the lowest and the highest version of tls-protocols; what lies between is spoken too.
func setProtocols(out *tls.Config, text string) error {
	for i, w := range strings.Fields(strings.ToLower(text)) {
		v, ok := tlsVersions[w]
		if !ok {
			return fmt.Errorf("tls-protocols: %q is not one of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3", w)
		}
		if i == 0 {
			out.MinVersion, out.MaxVersion = v, v
		}
		out.MinVersion, out.MaxVersion = min(out.MinVersion, v), max(out.MaxVersion, v)
	}
	return nil
}
