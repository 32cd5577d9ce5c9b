package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"
)

// origin plays the sites that are crawled and probed: HTTPS with an authority of its own, so that
// the local plane needs no internet.
type origin struct {
	URL    string
	CAFile string

	server *http.Server
}

func startOrigin(caFile string) (*origin, error) {
	ca, leaf, err := certificates()
	if err != nil {
		return nil, fmt.Errorf("make the origin's certificate: %w", err)
	}
	if err := os.WriteFile(caFile, ca, 0o644); err != nil {
		return nil, fmt.Errorf("write the origin's authority: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the origin: %w", err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // Node's crawlers fail with HTTP/2 at an address that is no name
	o := &origin{URL: "https://" + l.Addr().String(), CAFile: caFile, server: &http.Server{
		Handler:           originHandler(),
		Protocols:         &protocols,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{leaf}},
		ReadHeaderTimeout: 10 * time.Second,
	}}
	go func() { _ = o.server.ServeTLS(l, "", "") }()
	return o, nil
}

func (o *origin) Close() { _ = o.server.Close() }

func originHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /generate_204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, "hello from the origin; you asked for %s from %s\n", r.URL.Path, host)
	})
	return mux
}

// certificates makes an authority for one day and a certificate for 127.0.0.1, ::1 and localhost.
func certificates() (caPEM []byte, leaf tls.Certificate, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "proxyfleet local origin"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, leaf, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, leaf, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		tls.Certificate{Certificate: [][]byte{der, caDER}, PrivateKey: key}, nil
}
