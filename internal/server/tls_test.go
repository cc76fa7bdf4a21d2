package server

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kevydb/kevy/internal/config"
	"github.com/kevydb/kevy/internal/testkit/proc"
)

// startTLS starts a server with a TLS port. ping tells whether it serves a client with these certificates.
func startTLS(t *testing.T, cert, key, auth string) (s *testServer, ping func(...tls.Certificate) bool) {
	t.Helper()
	roots := x509.NewCertPool()
	data, err := os.ReadFile(cert)
	if err != nil || !roots.AppendCertsFromPEM(data) {
		t.Fatal("no certificate", err)
	}
	s = start(t, testOptions{set: map[string]string{
		"tls-cert-file": cert, "tls-key-file": key, "tls-ca-cert-file": cert, "tls-auth-clients": auth,
	}})
	port := freePort(t)
	s.client().want("CONFIG SET tls-port "+port, "+OK")
	return s, func(certs ...tls.Certificate) bool {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: roots, Certificates: certs})
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = conn.Write([]byte("PING\r\n"))
		buf := make([]byte, 7)
		n, _ := conn.Read(buf)
		return string(buf[:n]) == "+PONG\r\n"
	}
}

// TestTLSPort: clients with and without a certificate, as tls-auth-clients says, at the start and by CONFIG SET.
func TestTLSPort(t *testing.T) {
	cert, key := proc.Certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		auth          string
		with, without bool
	}{{"yes", true, false}, {"optional", true, true}, {"no", true, true}} {
		s, ping := startTLS(t, cert, key, c.auth)
		if got := ping(pair); got != c.with {
			t.Errorf("%s, with a certificate: %v", c.auth, got)
		}
		if got := ping(); got != c.without {
			t.Errorf("%s, without a certificate: %v", c.auth, got)
		}
		control := s.client()
		control.want("CONFIG SET tls-auth-clients yes tls-protocols SSLv3", "-ERR CONFIG SET failed (possibly related to argument 'tls-*")
		control.want("CONFIG SET tls-ca-cert-file /nope", "-ERR CONFIG SET failed*")
		if got := ping(); got != c.without {
			t.Errorf("%s, without a certificate, after a change that failed: %v", c.auth, got)
		}
		control.want("CONFIG SET tls-auth-clients yes", "+OK")
		if ping() || !ping(pair) {
			t.Errorf("%s: a change to yes has no effect", c.auth)
		}
		control.want("CONFIG SET tls-auth-clients no", "+OK")
		if !ping() {
			t.Errorf("%s: a change to no has no effect", c.auth)
		}
	}
}

func TestTLSConfig(t *testing.T) {
	cert, key := proc.Certificate(t)
	for want, change := range map[string]func(*config.Config){
		"tls-port needs":                    func(c *config.Config) { c.TLSKey = "" },
		"tls-cert-file /nope":               func(c *config.Config) { c.TLSCert = "/nope" },
		"tls-auth-clients needs":            func(c *config.Config) { c.TLSCACert = "" },
		"tls-ca-cert-file: open /nope":      func(c *config.Config) { c.TLSCACert = "/nope" },
		"tls-ca-cert-file " + key:           func(c *config.Config) { c.TLSCACert = key },
		`tls-protocols: "sslv3" is not one`: func(c *config.Config) { c.TLSProtocols = "TLSv1.2 SSLv3" },
	} {
		cfg := config.Default()
		cfg.TLSCert, cfg.TLSKey, cfg.TLSCACert = cert, key, cert
		change(cfg)
		if _, err := tlsConfig(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	cfg := config.Default()
	cfg.TLSCert, cfg.TLSKey, cfg.TLSAuthClients, cfg.TLSProtocols = cert, key, "no", "TLSv1.3 TLSv1.2"
	if c, err := tlsConfig(cfg); err != nil || c.MinVersion != tls.VersionTLS12 || c.MaxVersion != tls.VersionTLS13 {
		t.Errorf("%+v, %v", c, err)
	}
}
