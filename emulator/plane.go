package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"crawl.example.com/proxyfleet/emulator/gcloud"
)

// The stores that a local plane runs on.
const (
	storeFirestore = "firestore"
	storeMemory    = "memory"
)

// localProject is the project of the local plane; no such project exists in any cloud.
const localProject = "proxyfleet-local"

// plane is everything that runs.
type plane struct {
	opts  options
	out   io.Writer
	dir   string // files of this run; removed at the end
	fleet samples
	state state

	closers []func()   // in the order of starting
	failed  chan error // gets the first failure of a part that should have gone on
}

// run brings a plane up, says so, and keeps it up until ctx ends or a part of it dies. Whatever
// happens, all that it started is gone when it returns.
func run(ctx context.Context, opts options, out io.Writer) error {
	p := &plane{opts: opts, out: out, failed: make(chan error, 1)}
	defer p.close()
	if err := p.up(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop before it was up
		}
		return err
	}
	p.announce()
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.failed:
		return err
	}
}

func (p *plane) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}

func (p *plane) onClose(c func()) { p.closers = append(p.closers, c) }

// fail reports that a part died; the first report ends the run.
func (p *plane) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

func (p *plane) up(ctx context.Context) error {
	if err := p.choosePort(); err != nil {
		return err
	}
	install, mode, err := chooseStore(p.opts.Store, p.out)
	if err != nil {
		return err
	}
	p.dir, err = os.MkdirTemp("", "proxyfleet-")
	if err != nil {
		return fmt.Errorf("make a folder for this run: %w", err)
	}
	p.onClose(func() { _ = os.RemoveAll(p.dir) })
	p.state = state{
		Store: mode, ProjectID: projectID(), Pids: []int{os.Getpid()}, LogDir: p.dir,
		LeaseURL: localURL(p.opts.Port), MetricsURLs: map[string]string{},
	}
	p.state.ConsoleURL = p.state.LeaseURL + "/"
	if err := p.startSurroundings(ctx); err != nil {
		return err
	}
	if mode == storeMemory {
		err = p.upInProcess(ctx)
	} else {
		err = p.upOnEmulators(ctx, install)
	}
	if err != nil {
		return err
	}
	go playScheduler(p.background(), p.state.ReconcileURL, p.opts.Tick)
	if p.opts.State != "" {
		return p.state.write(p.opts.State)
	}
	return nil
}

// startSurroundings starts what the plane manages and crawls, and reads the fleet that it is given.
func (p *plane) startSurroundings(ctx context.Context) error {
	o, err := startOrigin(filepath.Join(p.dir, "origin-ca.pem"))
	if err != nil {
		return err
	}
	p.onClose(o.Close)
	p.state.OriginURL, p.state.OriginCAFile = o.URL, o.CAFile
	p.fleet, err = p.prepareFleet(ctx)
	return err
}

// background is a context that ends when the plane closes.
func (p *plane) background() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	p.onClose(cancel)
	return ctx
}

// choosePort finds out early whether the one fixed port is to be had.
func (p *plane) choosePort() error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.opts.Port)))
	if err != nil {
		return fmt.Errorf("--port %d is taken by another program; choose another one: %w", p.opts.Port, err)
	}
	p.opts.Port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

// chooseStore looks for the emulators where the mode leaves a choice.
func chooseStore(mode string, out io.Writer) (gcloud.Install, string, error) {
	if mode == storeMemory {
		return gcloud.Install{}, storeMemory, nil
	}
	install, err := gcloud.Find()
	if err == nil || (os.Getenv("FIRESTORE_EMULATOR_HOST") != "" && os.Getenv("PUBSUB_EMULATOR_HOST") != "") {
		return install, storeFirestore, nil
	}
	if mode == storeFirestore {
		return install, "", fmt.Errorf("--store=firestore: %w", err)
	}
	fmt.Fprintf(out, "running on the memory store, in one process: %v\n", oneLine(err))
	return gcloud.Install{}, storeMemory, nil
}

func projectID() string {
	if p := os.Getenv("PROJECT_ID"); p != "" {
		return p
	}
	return localProject
}

func localURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
