package manifest

import (
	"errors"
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

// ReadPaths reads files, folders (their .yaml, .yml and .json files, at any depth, but for what is
// hidden by a leading dot) and, for "-", stdin. change, when not nil, edits each manifest's text first. On any fault the error is Faults, of
// all files; names must be unique across them.
func ReadPaths(paths []string, stdin io.Reader, change func(string) string) ([]Item, error) {
	var items []Item
	var faults Faults
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			faults = append(faults, unreadable(path, err))
		}
		for _, file := range files {
			data, err := load(file, stdin)
			if err != nil {
				faults = append(faults, unreadable(file, err))
				continue
			}
			if change != nil {
				data = []byte(change(string(data)))
			}
			found, wrong := read(named(file), data)
			items, faults = append(items, found...), append(faults, wrong...)
		}
	}
	if faults = append(faults, duplicates(items)...); len(faults) > 0 {
		return nil, faults
	}
	return items, nil
}

// named is how faults call a file.
func named(file string) string {
	if file == "-" {
		return "stdin"
	}
	return file
}

func unreadable(file string, err error) Fault {
	var at *fs.PathError
	if errors.As(err, &at) { // its path is said already
		err = at.Err
	}
	return Fault{Source: named(file), Fault: fleet.Fault{Message: "cannot be read: " + err.Error()}}
}

// expand returns the files that a path stands for.
func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	root := filepath.Clean(path) + string(filepath.Separator) // so that a link to a folder is followed
	var files []string
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != root && strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case !d.IsDir() && !strings.HasPrefix(d.Name(), ".") && slices.Contains(extensions, strings.ToLower(filepath.Ext(p))):
			files = append(files, filepath.Clean(p))
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no %s file in it", strings.Join(extensions, ", "))
	}
	return files, err
}

func load(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxBytes+1))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}
