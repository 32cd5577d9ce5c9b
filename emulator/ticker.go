package main

import (
	"context"
	"io"
	"net/http"
	"time"
)

// The first ticks come quickly, so that a fresh fleet is up in seconds.
const (
	warmUp     = 12 * time.Second
	warmUpTick = time.Second
)

// playScheduler calls the reconcile function as Cloud Scheduler would: one call at a time, whatever
// it answers.
func playScheduler(ctx context.Context, url string, tick time.Duration) {
	started := time.Now()
	for {
		at := time.Now()
		postTick(ctx, url, at)
		wait := tick
		if time.Since(started) < warmUp {
			wait = min(tick, warmUpTick)
		}
		timer := time.NewTimer(time.Until(at.Add(wait)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// tickTimeout is the attempt deadline of the deployed job.
const tickTimeout = 180 * time.Second

func postTick(ctx context.Context, url string, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, tickTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return
	}
	req.Header.Set("X-CloudScheduler-JobName", "reconcile")
	req.Header.Set("X-CloudScheduler-ScheduleTime", at.UTC().Format(time.RFC3339))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // a dead function is noticed by whoever watches its process
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
