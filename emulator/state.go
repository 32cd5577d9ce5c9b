package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// state is what the local plane started, for programs that drive it.
type state struct {
	LeaseURL      string            `json:"leaseURL"`
	ReconcileURL  string            `json:"reconcileURL"`
	HealthURL     string            `json:"healthURL"`
	ConsoleURL    string            `json:"consoleURL"`
	MetricsURLs   map[string]string `json:"metricsURLs"`
	FirestoreHost string            `json:"firestoreHost"` // empty in memory mode
	PubSubHost    string            `json:"pubsubHost"`    // empty in memory mode
	ProjectID     string            `json:"projectId"`
	OriginURL     string            `json:"originURL"`
	OriginCAFile  string            `json:"originCAFile"`
	Store         string            `json:"store"` // firestore or memory
	Pids          []int             `json:"pids"`  // of the processes that were started, this one first
	LogDir        string            `json:"logDir"`
}

// write replaces the file at path whole, so that a reader never sees half of it.
func (s state) write(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write --state: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write --state: %w", err)
	}
	return nil
}
