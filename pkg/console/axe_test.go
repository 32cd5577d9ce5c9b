package console

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// axeCore returns the source of axe-core: the file that AXE_CORE names, or what npm fetches where CI is.
// Elsewhere it is empty, and the checks of this package have to do.
var axeCore = sync.OnceValues(func() (source, note string) {
	if path := os.Getenv("AXE_CORE"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", "AXE_CORE: " + err.Error()
		}
		return string(data), ""
	}
	if os.Getenv("CI") == "" {
		return "", "no axe-core: set AXE_CORE to its axe.min.js; own checks only"
	}
	dir, err := os.MkdirTemp("", "axe")
	if err != nil {
		return "", err.Error()
	}
	defer os.RemoveAll(dir)
	fetch := exec.Command("sh", "-c", "npm pack --silent axe-core@4.14.1 && tar -xzf axe-core-*.tgz")
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", "axe-core cannot be fetched, own checks only: " + string(out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	if err != nil {
		return "", err.Error()
	}
	return string(data), ""
})

// axe returns what axe-core finds wrong with the page.
func (b *browser) axe() []string {
	b.t.Helper()
	source, _ := axeCore()
	if source == "" {
		return nil
	}
	b.eval("(() => { "+source+"; return 0; })()", new(int))
	var wrong []string
	b.eval(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 80)).join(" | ")))`, &wrong)
	return wrong
}

func TestAxeCoreIsThereWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	source, note := axeCore()
	if source == "" {
		t.Skip("SKIPPED: " + note)
	}
	require.Contains(t, source, "axe v")
}
