package cloudinit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// example is one shipped cloud-init document, and how its proxy is run by hand.
type example struct {
	file     string
	pkg      string
	binary   string
	config   string // below the root
	password string // one that is hard to carry
	command  func(config string) *exec.Cmd
}

var examples = []example{
	{
		file: "tinyproxy.yaml", pkg: "tinyproxy", binary: "/usr/bin/tinyproxy", config: "etc/tinyproxy/tinyproxy.conf",
		password: "p-._W0rd",
		command:  func(config string) *exec.Cmd { return exec.Command("/usr/bin/tinyproxy", "-d", "-c", config) },
	},
	{
		file: "squid.yaml", pkg: "squid", binary: "/usr/sbin/squid", config: "etc/squid/squid.conf",
		password: "p:@/?#%é \"$`\\'",
		command:  func(config string) *exec.Cmd { return exec.Command("/usr/sbin/squid", "-N", "-f", config) },
	},
}

// document is the part of a cloud-init document that the examples use.
type document struct {
	PackageUpdate bool       `yaml:"package_update"`
	Packages      []string   `yaml:"packages"`
	WriteFiles    []file     `yaml:"write_files"`
	RunCmd        [][]string `yaml:"runcmd"`
}

type file struct {
	Path        string `yaml:"path"`
	Permissions string `yaml:"permissions"`
	Content     string `yaml:"content"`
}

func (e example) read(t *testing.T) document {
	t.Helper()
	text, err := os.ReadFile(e.file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "#cloud-config\n"), "cloud-init looks at the first line")
	var d document
	require.NoError(t, yaml.UnmarshalWithOptions(text, &d, yaml.Strict()))
	return d
}

// install writes the document's files below a new folder, with credentials in place of the example's.
func (e example) install(t *testing.T, credentials string) (root string) {
	t.Helper()
	root, err := os.MkdirTemp("", "cloudinit-") // not t.TempDir: the proxy's own user must get into it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	require.NoError(t, os.Chmod(root, 0o755))
	for _, f := range e.read(t).WriteFiles {
		path := filepath.Join(root, f.Path)
		content := f.Content
		if f.Path == "/etc/proxyfleet/credentials" && credentials != "" {
			content = credentials
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		mode := os.FileMode(0o644)
		if f.Permissions != "" {
			_, err := fmt.Sscanf(f.Permissions, "%o", &mode)
			require.NoError(t, err)
		}
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
	}
	return root
}

// configure runs the example's own script below root.
func configure(root string, env ...string) ([]byte, error) {
	cmd := exec.Command("sh", filepath.Join(root, "etc/proxyfleet/configure"))
	cmd.Env = append(os.Environ(), append([]string{"PROXYFLEET_ROOT=" + root, "PROXYFLEET_PORT=3128"}, env...)...)
	return cmd.CombinedOutput()
}

func TestAnExampleIsACompleteDocument(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		t.Run(e.pkg, func(t *testing.T) {
			t.Parallel()
			d := e.read(t)
			assert.Contains(t, d.Packages, e.pkg)
			assert.Contains(t, d.Packages, "nftables")
			assert.Equal(t, [][]string{{"/etc/proxyfleet/configure"}}, d.RunCmd)
			for _, f := range d.WriteFiles {
				if f.Path == "/etc/proxyfleet/credentials" {
					assert.Equal(t, "0600", f.Permissions)
				}
			}
			text, err := os.ReadFile(e.file)
			require.NoError(t, err)
			assert.Less(t, len(text), 256<<10)
		})
	}
}

func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		var all strings.Builder
		for _, f := range e.read(t).WriteFiles {
			all.WriteString(f.Content)
		}
		assert.Contains(t, all.String(), "SystemMaxUse=64M", e.file)
		assert.NotContains(t, all.String(), "LogLevel Info", e.file)
	}
	root := examples[1].install(t, "crawler:secret")
	out, err := configure(root)
	require.NoError(t, err, "%s", out)
	config, err := os.ReadFile(filepath.Join(root, examples[1].config))
	require.NoError(t, err)
	assert.Contains(t, string(config), "access_log none")
}

func TestWhatMakesNoSafeProxyMakesNone(t *testing.T) {
	t.Parallel()
	rows := map[string]string{
		"the example's password": "",
		"no password":            "crawler:",
		"no user":                ":secret",
		"no colon":               "crawler",
		"nothing":                "\n",
	}
	for _, e := range examples {
		for promise, credentials := range rows {
			t.Run(e.pkg+"/"+promise, func(t *testing.T) {
				t.Parallel()
				root := e.install(t, credentials)
				out, err := configure(root)
				assert.Error(t, err)
				assert.Contains(t, string(out), "proxyfleet: ")
				assert.NoFileExists(t, filepath.Join(root, e.config))
			})
		}
	}
	root := examples[0].install(t, "crawler:p@ss")
	out, err := configure(root)
	assert.Error(t, err)
	assert.Contains(t, string(out), "tinyproxy takes letters")
	assert.NotContains(t, string(out), "p@ss")
}

func TestThePasswordIsInNoFileThatAnybodyMayRead(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		root := e.install(t, "crawler:hunter2")
		out, err := configure(root)
		require.NoError(t, err, "%s", out)
		assert.Empty(t, out)
		require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			if strings.Contains(string(content), "hunter2") {
				assert.Zero(t, info.Mode().Perm()&0o007, path)
			}
			return nil
		}))
	}
}
