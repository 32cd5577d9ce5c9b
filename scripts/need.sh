#!/usr/bin/env bash
# need.sh PROGRAM...: says how to get each program that is missing, and fails if one is.
set -euo pipefail

missing=0
for program in "$@"; do
  command -v "$program" >/dev/null && continue
  missing=1
  case $program in
    go) echo "Go 1.26 or newer is missing: see https://go.dev/doc/install" >&2 ;;
    java) echo "Java is missing: apt-get install default-jre-headless, or brew install openjdk" >&2 ;;
    gcloud) echo "the Google Cloud CLI is missing: see https://cloud.google.com/sdk/docs/install" >&2 ;;
    *) echo "$program is missing" >&2 ;;
  esac
done
exit "$missing"
