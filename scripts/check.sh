#!/usr/bin/env bash
# check.sh [--static]: everything that must hold before a change lands. CI runs the same.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need.sh go

step() { printf '\n== %s\n' "$*"; }

step format
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  exit 1
fi

step vet
go vet ./...

step static checks
# staticcheck reads the configuration that is its own; golangci-lint users have .golangci.yml.
go run honnef.co/go/tools/cmd/staticcheck@"$(cat scripts/staticcheck.version)" ./...

if [ "${1:-}" = --static ]; then
  step layers
  go test -run 'Imports|Root' .
  exit 0
fi

step tests
go run ./emulator/exec -- go test -race -timeout 30m ./...
