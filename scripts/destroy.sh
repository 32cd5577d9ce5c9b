#!/usr/bin/env bash
# destroy.sh --project P --region R [FLAGS]: removes what deploy.sh made, and says what it leaves.
#
#   --all              also what cannot be made again: documents, VMs, the providers file, API keys
#   --dry-run          ask what is there, print only what would be done
#
# The settings NAME and DATABASE must be those of the deploy. A second run finds nothing to do.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DEPLOY=$ROOT/deploy
PROJECT='' REGION='' ALL=off
FROM_SOURCE=on # look for the roles of both ways to deploy
ONLY=foundation,data,images,services,edges,monitoring

# shellcheck source=deploy/lib.sh
. "$DEPLOY/lib.sh"
while [ $# -gt 0 ]; do
  case $1 in
    --project | --region)
      if [ $# -lt 2 ] || [ -z "$2" ]; then die "$1 needs a value; with make: PROJECT=my-project REGION=us-central1"; fi
      case $1 in --project) PROJECT=$2 ;; --region) REGION=$2 ;; esac
      shift ;;
    --all) ALL=on ;;
    --dry-run) MODE='diff' ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) die "unknown flag $1; see --help" ;;
  esac
  shift
done
[ -n "$PROJECT" ] || die "--project is missing"
[ -n "$REGION" ] || die "--region is missing"
need gcloud

# shellcheck source=deploy/settings.sh
. "$DEPLOY/settings.sh"
MONITORING=on AUTH=apikeys # so that the roles of every setting are looked for
for file in "$DEPLOY"/steps/*.sh; do
  # shellcheck disable=SC1090 # all of them
  . "$file"
done
trap 'rm -rf "$WORK"' EXIT
: > "$WORK/changes"

place
look
look_monitoring
ask instances gcloud compute instances list --filter="labels.proxyfleet-owner=$(owner)" --format='csv[no-heading](name,zone.basename())' --project="$PROJECT"

step "What calls, and what watches"
lane remove jobs "$NAME-tick" gcloud scheduler jobs delete "$NAME-tick" --location="$REGION"
lane remove subscriptions "$NAME-push" gcloud pubsub subscriptions delete "$NAME-push"
lane remove firewalls "$NAME-proxies" gcloud compute firewall-rules delete "$NAME-proxies"
lane remove_monitoring
join

step "Services and what they were made of"
for f in $FUNCTIONS; do
  lane remove services "$NAME-$f" gcloud run services delete "$NAME-$f" --region="$REGION"
done
lane remove subscriptions "$(topic_name dead)" gcloud pubsub subscriptions delete "$(topic_name dead)"
lane remove topics "$(topic_name probes)" gcloud pubsub topics delete "$(topic_name probes)"
lane remove topics "$(topic_name dead)" gcloud pubsub topics delete "$(topic_name dead)"
lane remove secrets "$NAME-collector" gcloud secrets delete "$NAME-collector"
lane remove repositories "$NAME" gcloud artifacts repositories delete "$NAME" --location="$REGION"
lane remove buckets "${BUCKET#gs://}" gcloud storage rm --recursive "$BUCKET"
join

if on "$ALL"; then
  step "Data and VMs"
  while IFS=, read -r vm zone; do
    lane run gcloud compute instances delete "$vm" --zone="$zone" --quiet --project="$PROJECT"
  done < "$WORK/instances"
  lane remove secrets "$NAME-providers" gcloud secrets delete "$NAME-providers"
  lane remove secrets "$NAME-api-keys" gcloud secrets delete "$NAME-api-keys"
  lane remove_database
  join
fi

step "Roles and accounts"
revoke
while read -r account _; do
  lane remove accounts "$(email "$account")" gcloud iam service-accounts delete "$(email "$account")"
done < <(rows "$DEPLOY/accounts.txt")
if grep -q . "$WORK/vms-role" && ! grep -q ',True,' "$WORK/vms-role"; then
  lane run gcloud iam roles delete "$ROLE_ID" --project="$PROJECT"
fi
join

step "Done"
say "$(wc -l < "$WORK/changes" | tr -d ' ') commands$(on "$(dry)" && echo ' would be') run."
say "Left: the APIs that were enabled, and secrets that deploy.sh did not make."
on "$ALL" || left
