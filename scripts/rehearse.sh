#!/usr/bin/env bash
# rehearse.sh: the whole deploy with the real gcloud, against a stand-in for Google Cloud. Takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh go gcloud
exec go test ./deploy/... -count=1 -timeout 40m -v -run 'WholeDeploy|Flags|Rules|Roles|Indexes|Queries'
