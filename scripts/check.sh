#!/usr/bin/env bash
# check.sh [--static]: everything that must hold before a change lands. CI runs the same.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need.sh go

step() { printf '\n== %s\n' "$*"; }

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

step format
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  exit 1
fi

# All steps share what is compiled for the race detector: the Compute client alone takes minutes.
step vet
go vet -race ./...

step static checks
GOBIN=$tools go install "honnef.co/go/tools/cmd/staticcheck@$(cat scripts/staticcheck.version)"
GOFLAGS="${GOFLAGS:-} -race" "$tools/staticcheck" ./...

if [ "${1:-}" = --static ]; then
  step layers
  go test -race -run 'Imports|Link|Needs|Root' .
  exit 0
fi

# The rehearsal of the deploy takes as long as all the rest: at a desk it is `make rehearse`.
packages=$(go list ./...)
[ "${CI:-}" = true ] || packages=$(grep -v '/deploy/rehearse$' <<<"$packages")

# Many tests wait for processes and clocks more than they compute: four packages at a time.
step tests
# shellcheck disable=SC2086 # one word per package
go run ./emulator/exec -- go test -race -vet=off -p 4 -timeout 30m $packages
