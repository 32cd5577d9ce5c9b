#!/usr/bin/env bash
# rollout.sh candidate|smoke|traffic: brings images to services that deploy.sh has made, for CI/CD.
#
#   candidate   a new revision of each service from deploy/images/out/*.image, without traffic, at an address of its own
#   smoke       tests the three candidates there
#   traffic     gives them the traffic
#
# PROJECT, REGION, NUMBER (of the project), VERSION and NAME come from the environment. Configuration is
# deploy.sh's part: this changes images only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${PROJECT:?}" "${REGION:?}" "${NAME:=proxyfleet}"

each() {
  local f pid pids='' failed=0
  for f in reconcile health lease; do
    "$1" "$f" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || failed=1; done
  return "$failed"
}

# The label tells the next deploy.sh that the service is not as it left it. What stands behind --container
# is about that container.
candidate() {
  gcloud run deploy "$NAME-$1" --no-traffic --tag=candidate --update-labels="proxyfleet-config=rollout" --region="$REGION" --project="$PROJECT" --quiet \
    --container="$1" --image="$(cat "deploy/images/out/$1.image")" --update-env-vars="VERSION=${VERSION:?}"
}

smoke() { scripts/smoke.sh "$1" "https://candidate---$NAME-$1-${NUMBER:?}.$REGION.run.app"; }

traffic() {
  gcloud run services update-traffic "$NAME-$1" --to-latest --clear-tags --region="$REGION" --project="$PROJECT" --quiet
}

case ${1:-} in
  candidate | smoke | traffic) each "$1" ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
