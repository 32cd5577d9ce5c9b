#!/usr/bin/env bash
# compile.sh: the three binaries, static and without the paths of this machine, into deploy/images/out.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p deploy/images/out
CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -ldflags='-s -w' -o deploy/images/out/ \
  ./deploy/images/reconcile ./deploy/images/health ./deploy/images/lease
