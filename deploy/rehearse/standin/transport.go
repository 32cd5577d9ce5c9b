package standin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		s.connect(w, r)
		return
	}
	s.serve(w, r, r.Host)
}

// connect ends the TLS of a tunnel here, so that gcloud uses the real host names while nothing leaves
// the machine, whatever it asks for.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "no tunnel", http.StatusInternalServerError)
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = conn.Close()
		return
	}
	target := r.Host
	secure := tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		host := h.ServerName
		if host == "" {
			host, _, _ = strings.Cut(target, ":")
		}
		return s.leaf(host)
	}})
	one := &single{conn: secure, done: make(chan struct{})}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, target) }),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				_ = one.Close()
			}
		},
	}
	_ = server.Serve(one)
}

// single is a listener with one connection.
type single struct {
	conn  net.Conn
	given sync.Once
	ended sync.Once
	done  chan struct{}
}

func (l *single) Accept() (conn net.Conn, err error) {
	l.given.Do(func() { conn = l.conn })
	if conn != nil {
		return conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *single) Close() error {
	l.ended.Do(func() { close(l.done) })
	return nil
}

func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }

// CA returns the certificate, as PEM, of the authority that the tunnels' certificates come from. It is
// new for each Server.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.authority.Raw})
}

func (s *Server) makeAuthority() error {
	var err error
	if s.authorityKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return fmt.Errorf("make the authority's key: %w", err)
	}
	if s.leafKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return fmt.Errorf("make the hosts' key: %w", err)
	}
	template := certificate("proxyfleet rehearsal")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &s.authorityKey.PublicKey, s.authorityKey)
	if err != nil {
		return fmt.Errorf("make the authority: %w", err)
	}
	s.authority, err = x509.ParseCertificate(der)
	return err
}

// leaf returns the certificate of one host.
func (s *Server) leaf(host string) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.leaves[host]; c != nil {
		return c, nil
	}
	template := certificate(host)
	template.DNSNames = []string{host}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, s.authority, &s.leafKey.PublicKey, s.authorityKey)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", host, err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, s.authority.Raw}, PrivateKey: s.leafKey}
	s.leaves[host] = c
	return c, nil
}

func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if len(name) > 64 { // the limit of a common name
		name = name[:64]
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}
