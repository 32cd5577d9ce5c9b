package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Directory reads secrets from the files of a folder, each named like its secret. It reads anew each
// time, so a file that is replaced counts at once.
type Directory struct{ dir string }

// NewDirectory returns the resolver of a folder, which need not exist yet.
func NewDirectory(dir string) Directory { return Directory{dir} }

// Resolve reads the file of that name.
func (d Directory) Resolve(ctx context.Context, name, key string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	payload, err := os.ReadFile(filepath.Join(d.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("secret %s: %w: no such file in %s", name, ErrNotFound, d.dir)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("secret %s: %w: %w", name, ErrForbidden, err)
	case err != nil:
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	return pick(name, key, payload)
}
