package manifest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// extensions are the files that count in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// ReadPaths reads files, folders (their .yaml, .yml and .json files, at any depth) and, for "-",
// stdin. change, when not nil, edits each manifest's text first. On any fault the error is Faults, of
// all files; names must be unique across them.
func ReadPaths(paths []string, stdin io.Reader, change func(string) string) ([]Item, error) {
	var items []Item
	var faults Faults
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			faults = append(faults, Fault{Source: path, Fault: fleet.Fault{Message: err.Error()}})
			continue
		}
		for _, file := range files {
			data, err := load(file, stdin)
			if err != nil {
				faults = append(faults, Fault{Source: file, Fault: fleet.Fault{Message: err.Error()}})
				continue
			}
			if change != nil {
				data = []byte(change(string(data)))
			}
			found, wrong := read(file, data)
			items, faults = append(items, found...), append(faults, wrong...)
		}
	}
	if faults = append(faults, duplicates(items)...); len(faults) > 0 {
		return nil, faults
	}
	return items, nil
}

func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(p))) {
			files = append(files, p)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		return nil, fmt.Errorf("has no %s file", strings.Join(extensions, ", "))
	}
	return files, err
}

func load(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxBytes+1))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}
