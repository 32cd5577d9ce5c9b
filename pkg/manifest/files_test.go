package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestFilesFoldersAndStandardInputAreRead(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"one.yaml": good, "deep/two.yml": with("us-east1-a", "two"), "three.JSON": asJSON(""), "notes.txt": "not a manifest",
		".hidden.yaml": "nonsense", ".git/config.yaml": "nonsense",
	})
	items, err := ReadPaths([]string{dir, "-"}, strings.NewReader(with("us-east1-a", "four")), nil)
	require.NoError(t, err)
	var got []string
	for _, i := range items {
		got = append(got, strings.TrimPrefix(i.Source, dir+"/")+" "+i.Name)
	}
	assert.Equal(t, []string{"deep/two.yml two", "one.yaml us-east1-a", "three.JSON a", "stdin four"}, got)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	items, err = ReadPaths([]string{link}, nil, nil)
	require.NoError(t, err, "a link to a folder is that folder")
	assert.Len(t, items, 3)
	assert.Equal(t, filepath.Join(link, "deep", "two.yml"), items[0].Source)
	items, err = ReadPaths([]string{filepath.Join(dir, "notes.txt")}, nil, nil)
	require.Error(t, err, "a file that is named is read, whatever its ending")
	assert.Empty(t, items)
}

func TestFaultsOfAllFilesAreReported(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.yaml": good, "b.yaml": with("name: us-east1-a", "name: us-east1-a\n  x: y"), "c.yaml": with("us-east1-a", "c")})
	_, err := ReadPaths([]string{dir, filepath.Join(dir, "none.yaml"), t.TempDir(), "-"}, strings.NewReader(with("us-east1-a", "c")), nil)
	var faults Faults
	require.ErrorAs(t, err, &faults)
	text := strings.ReplaceAll(err.Error(), dir+"/", "")
	assert.Contains(t, text, "b.yaml:6: us-east1-a: metadata.x: unknown key")
	assert.Contains(t, text, "b.yaml:2: us-east1-a: metadata.name: must be unique: ")
	assert.Contains(t, text, "none.yaml: cannot be read: no such file or directory")
	assert.Contains(t, text, "cannot be read: there is no .yaml, .yml, .json file in it")
	assert.Contains(t, text, "stdin:2: c: metadata.name: must be unique: c.yaml:2 has it, too")
	assert.Len(t, faults, 5)
}

func TestAStandardInputThatBreaksIsAFault(t *testing.T) {
	t.Parallel()
	_, err := ReadPaths([]string{"-"}, iotest.ErrReader(errors.New("broken pipe")), nil)
	require.EqualError(t, err, "stdin: cannot be read: broken pipe")
}

func TestAManifestsTextCanBeChangedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	items, err := ReadPaths([]string{"-"}, strings.NewReader(with("us-east1-a", "${NAME}")), strings.NewReplacer("${NAME}", "five").Replace)
	require.NoError(t, err)
	assert.Equal(t, "five", items[0].Name)
}

func TestAManifestThatNeverEndsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := ReadPaths([]string{"-"}, endless{}, nil)
	require.EqualError(t, err, "stdin: is larger than 16 MiB")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}
