package console

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chromium returns the browser's path. Where nobody minds it is installed; elsewhere the test skips.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	ci := os.Getenv("CI") != ""
	if !ci && os.Geteuid() != 0 {
		t.Skip("SKIPPED: no browser; install the package chromium")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "S=; [ $(id -u) = 0 ] || S=sudo; $S apt-get update -qq && $S apt-get install -y -qq --no-install-recommends chromium").CombinedOutput()
	path, lookErr := exec.LookPath("chromium")
	switch {
	case err == nil && lookErr == nil:
		return path
	case ci:
		t.Fatalf("chromium cannot be installed: %s", out)
	}
	t.Skip("SKIPPED: no browser, and chromium cannot be installed here")
	return ""
}

// browser is a headless Chromium with one page, spoken to over pipes in its DevTools protocol.
type browser struct {
	t       *testing.T
	out     *os.File
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	logged  []string // what the browser complained about
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := chromium(t)
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	require.NoError(t, cmd.Start())
	_, _ = theirIn.Close(), theirOut.Close()
	b := &browser{t: t, out: in, waiting: map[int]chan message{}}
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		b.read(out)
	}()
	t.Cleanup(func() {
		_, _ = b.try("", "Browser.close", nil)
		time.AfterFunc(10*time.Second, cancel)
		_ = cmd.Wait()
		cancel()
		_ = in.Close()
		<-reading
		_ = os.RemoveAll(dir)
	})
	var target struct{ TargetID string }
	b.must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.do(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) read(out *os.File) {
	defer out.Close()
	r := bufio.NewReader(out)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; m.ID != 0 && c != nil {
			c <- m
			delete(b.waiting, m.ID)
		}
		if m.Method == "Log.entryAdded" || m.Method == "Runtime.exceptionThrown" {
			b.logged = append(b.logged, string(m.Params))
		}
		b.mu.Unlock()
	}
}

func (b *browser) try(session, method string, params any) (json.RawMessage, error) {
	c := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = c
	b.mu.Unlock()
	call := map[string]any{"id": id, "method": method}
	if params != nil {
		call["params"] = params
	}
	if session != "" {
		call["sessionId"] = session
	}
	data, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	if _, err := b.out.Write(append(data, 0)); err != nil {
		return nil, err
	}
	select {
	case m := <-c:
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(30 * time.Second):
		return nil, errors.New(method + ": no answer")
	}
}

func (b *browser) must(session, method string, params, result any) {
	b.t.Helper()
	data, err := b.try(session, method, params)
	require.NoError(b.t, err)
	if result != nil {
		require.NoError(b.t, json.Unmarshal(data, result))
	}
}

// do calls a method of the page.
func (b *browser) do(method string, params, result any) {
	b.t.Helper()
	b.must(b.session, method, params, result)
}

// eval runs an expression in the page and stores what it comes to.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	require.Empty(b.t, string(answer.ExceptionDetails))
	require.NoError(b.t, json.Unmarshal(answer.Result.Value, result), "%s", expression)
}

func (b *browser) truth(expression string) bool {
	b.t.Helper()
	var is bool
	b.eval("!!("+expression+")", &is)
	return is
}

// open shows a page and waits until it is there.
func (b *browser) open(url string) {
	b.t.Helper()
	b.do("Page.navigate", map[string]any{"url": url}, nil)
	require.Eventually(b.t, func() bool { return b.truth("document.readyState === 'complete' && location.href !== 'about:blank'") }, 30*time.Second, 20*time.Millisecond)
}

func (b *browser) size(width, height int) {
	b.t.Helper()
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}

func (b *browser) scheme(scheme string) {
	b.t.Helper()
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

func (b *browser) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.do("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": 9}, nil)
	}
}

// screenshot is for people: it is written where CONSOLE_SCREENSHOTS says.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("CONSOLE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600))
}

func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.logged...)
}
