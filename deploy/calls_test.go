package deploy

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "crawl.example.com/proxyfleet"

// clients are the packages through which the code reaches Google Cloud, by the name that
// permissions.txt gives them.
var clients = map[string]string{
	"cloud.google.com/go/compute/apiv1":       "compute",
	"cloud.google.com/go/firestore":           "firestore",
	"cloud.google.com/go/pubsub/v2":           "pubsub",
	"cloud.google.com/go/secretmanager/apiv1": "secretmanager",
}

// listed is one package as the go command describes it.
type listed struct{ path, dir, export string }

// closure lists a package and all that it imports, compiled as this test is.
func closure(t *testing.T, pkg string) []listed {
	t.Helper()
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}}|{{.Dir}}|{{.Export}}"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args = append(args, "-race") // what is compiled already
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []listed
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Split(line, "|")
		all = append(all, listed{f[0], f[1], f[2]})
	}
	return all
}

// calls returns every method of a client that a function's code may call, as
// compute.InstancesClient.Insert.
func calls(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	all := closure(t, pkg)
	exports := map[string]string{}
	for _, p := range all {
		exports[p.path] = p.export
	}
	var mu sync.Mutex
	open := func(path string) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		return os.Open(exports[path])
	}
	found := map[string]bool{}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", open)
	for _, p := range all {
		if strings.HasPrefix(p.path, module+"/") {
			callsOf(t, fset, imports, p, found)
		}
	}
	return found
}

// callsOf adds the calls of one package of ours.
func callsOf(t *testing.T, fset *token.FileSet, imports types.Importer, p listed, found map[string]bool) {
	t.Helper()
	var files []*ast.File
	names, err := filepath.Glob(filepath.Join(p.dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	_, err = (&types.Config{Importer: imports}).Check(p.path, fset, files, info)
	require.NoError(t, err)
	for _, s := range info.Selections {
		method, ok := s.Obj().(*types.Func)
		if !ok || method.Pkg() == nil || clients[method.Pkg().Path()] == "" {
			continue
		}
		recv := s.Recv()
		if pointer, ok := recv.(*types.Pointer); ok {
			recv = pointer.Elem()
		}
		if named, ok := recv.(*types.Named); ok && named.Obj().Pkg() == method.Pkg() {
			found[clients[method.Pkg().Path()]+"."+named.Obj().Name()+"."+method.Name()] = true
		}
	}
}
