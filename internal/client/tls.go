package client

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
)

// handshakeLimit bounds the handshake of TLS.
const handshakeLimit = 10 * time.Second

// tlsVersions are the words of tls-protocols.
var tlsVersions = map[string]uint16{
	"tlsv1": tls.VersionTLS10, "tlsv1.1": tls.VersionTLS11, "tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13,
}

// TLS are the settings of TLS that both sides of a connection need. Errors name them as the server's configuration does.
type TLS struct {
	CACert    string // tls-ca-cert-file
	Cert, Key string // tls-cert-file and tls-key-file; none of both is possible
	Protocols string // tls-protocols; empty: TLS 1.2 and later
	From      string // bind-source-addr; empty: any
}

// Common returns the certificate, if there is one, and the versions. The files are read now.
func (t *TLS) Common() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.Cert != "" && t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls-cert-file %s, tls-key-file %s: %w", t.Cert, t.Key, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, setProtocols(out, t.Protocols)
}

// Authorities reads tls-ca-cert-file.
func (t *TLS) Authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(t.CACert)
	if err != nil {
		return nil, fmt.Errorf("tls-ca-cert-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls-ca-cert-file %s: no certificate in it", t.CACert)
	}
	return pool, nil
}

// ToSource returns what is spoken to a server that is followed. As in Redis the other side needs a certificate that the authorities have signed,
// whatever name is in it; this side shows its own, if it has one.
func (t *TLS) ToSource() (*tls.Config, error) {
	if t.CACert == "" {
		return nil, errors.New("tls-replication needs tls-ca-cert-file, the authority that signs the source's certificate")
	}
	out, err := t.Common()
	if err != nil {
		return nil, err
	}
	roots, err := t.Authorities()
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

// DialSource connects to a server that is followed, over TLS.
func (t *TLS) DialSource(ctx context.Context, addr string) (net.Conn, error) {
	secure, err := t.ToSource()
	if err != nil {
		return nil, err
	}
	nc, err := DialFrom(ctx, t.From, addr)
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
