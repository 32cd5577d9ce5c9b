#!/usr/bin/env bash
# bench.sh reconcile|health|lease: the benchmarks behind the performance claims, one line per figure.
# `make bench-...` starts the emulators that they need.
set -euo pipefail
cd "$(dirname "$0")/.."

bench() { go test "$1" -run '^$' -bench "$2" -benchtime=1x -timeout 30m | grep -E '^(reconcile_bench|health_sweep|lease_bench|cold_start|FAIL|panic|---|ok)'; }

case ${1:-} in
  reconcile) bench ./pkg/reconcile . ;;
  health) bench ./functions/health . ;;
  lease)
    bench ./pkg/lease 'Lease|ColdStart'
    go test ./pkg/lease -run 'TestLeaseRace' -count=1 -timeout 60m -v | grep -E '^(lease_race|---|FAIL|ok)'
    ;;
  *) echo "usage: bench.sh reconcile|health|lease" >&2; exit 2 ;;
esac
