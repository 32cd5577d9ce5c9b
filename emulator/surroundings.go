package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"crawl.example.com/proxyfleet/emulator/gce"
	"crawl.example.com/proxyfleet/emulator/gce/guest"
	"crawl.example.com/proxyfleet/emulator/proc"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
)

// startExternalProxy starts the proxy of the samples that somebody else runs, and returns its address.
func (p *plane) startExternalProxy() (string, error) {
	port, err := proc.FreePort()
	if err != nil {
		return "", err
	}
	// The mock cloud has real proxies; this one instance is nobody's.
	cloud, err := mock.Open(mock.Settings{})
	if err != nil {
		return "", err
	}
	p.onClose(func() { _ = cloud.Close() })
	ctx := context.Background() // nothing here waits
	made, err := cloud.Create(ctx, provider.CreateRequest{
		Name: "external", Owner: "somebody-else", UID: "external", Incarnation: 1, SpecHash: "none", ProxyName: "external", Port: int32(port),
	})
	if err == nil {
		_, err = cloud.Get(ctx, made.Ref()) // an instance listens when it is first seen running
	}
	if err != nil {
		return "", fmt.Errorf("start the External proxy: %w", err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// startComputeEngine plays Compute Engine for a providers file of type gcp that asks for it, and
// returns its endpoint. Its VMs lead to real proxies on this machine that want the samples' password.
func (p *plane) startComputeEngine() (string, error) {
	guests, err := guest.New(sampleCredentials)
	if err != nil {
		return "", err
	}
	p.onClose(func() { _ = guests.Close() })
	s := gce.New(gce.Options{OnRunning: guests.Running, OnGone: guests.Gone})
	if err := s.Start("127.0.0.1:0"); err != nil {
		return "", fmt.Errorf("start the Compute Engine emulator: %w", err)
	}
	p.onClose(func() { _ = s.Close() })
	return s.URL(), nil
}
