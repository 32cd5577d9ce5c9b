#!/usr/bin/env bash
# deploy.sh --project P --region R [FLAGS]: makes the plane in a project, or brings it up to date.
# A second run changes nothing; a run that was cut off is finished by the next.
#
#   --dry-run          print every command of a first deploy, ask and do nothing; the files that they name are kept
#   --diff             ask what is there, print only what would be done
#   --providers FILE   the providers file to use from now on
#   --from-source      have Google's buildpack build the functions, instead of our slim images
#   --no-monitoring    no side-car, dashboard and alerts
#   --only STEPS       some of: foundation data images services edges monitoring, comma-separated
#
# All else is in deploy/settings.sh and can be set in the environment, such as NAME=crawl2 DATABASE=crawl2.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DEPLOY=$ROOT/deploy
PROJECT='' REGION='' FROM_SOURCE=off ONLY=foundation,data,images,services,edges,monitoring

# shellcheck source=deploy/lib.sh
. "$DEPLOY/lib.sh"
while [ $# -gt 0 ]; do
  case $1 in
    --project | --region | --providers | --only)
      if [ $# -lt 2 ] || [ -z "$2" ]; then die "$1 needs a value; with make: PROJECT=my-project REGION=us-central1"; fi
      case $1 in --project) PROJECT=$2 ;; --region) REGION=$2 ;; --providers) PROVIDERS=$2 ;; --only) ONLY=$2 ;; esac
      shift ;;
    --dry-run) MODE=dry ;;
    --diff) MODE='diff' ;;
    --from-source) FROM_SOURCE=on ;;
    --no-monitoring) MONITORING=off ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) die "unknown flag $1; see --help" ;;
  esac
  shift
done
[ -n "$PROJECT" ] || die "--project is missing"
[ -n "$REGION" ] || die "--region is missing"
[ "$MODE" = dry ] || need gcloud curl

# shellcheck source=deploy/settings.sh
. "$DEPLOY/settings.sh"
# shellcheck source=deploy/render.sh
. "$DEPLOY/render.sh"
for file in "$DEPLOY"/steps/*.sh; do
  # shellcheck disable=SC1090 # all of them
  . "$file"
done
trap 'rm -rf "$WORK"' EXIT
: > "$WORK/changes"
for step in ${ONLY//,/ }; do
  case $step in foundation | data | images | services | edges | monitoring) ;; *) die "--only: there is no step $step" ;; esac
done
case " $CRAWLERS " in *" all"*) die "CRAWLERS: $CRAWLERS: the lease function hands out credentials; name who may call it" ;; esac
case $AUTH in iam | apikeys) ;; *) die "AUTH: $AUTH: must be iam or apikeys" ;; esac
on "$FROM_SOURCE" && MONITORING=off # the buildpack makes no side-car
switches
: "${VERSION:=$(version)}"

place
apis
look
look_inside
if chosen foundation; then
  accounts
  vms_role
  registry
fi
if chosen data; then
  lane database
  topics
  secrets
  join
fi
if for_steps foundation data; then
  step "Roles"
  ! chosen foundation || roles project 'account:*' repository bucket
  ! chosen data || roles 'topic:*' 'secret:*'
  join
fi
if on "$FROM_SOURCE"; then
  ! chosen services || services_from_source
elif chosen services; then
  images
  services
elif chosen images; then
  images
fi
if chosen edges; then
  lane subscription
  lane tick
  lane firewall
  join
  step "Roles of the callers"
  roles 'subscription:*' 'service:*'
  join
fi
if chosen monitoring && on "$MONITORING"; then
  monitoring
fi

step "Done"
case $MODE in
  dry) say "Nothing was asked or done: this is what a first deploy does. 000000000000 stands for the project's number."
       rm -f "$WORK/changes" "$WORK/images"
       find "$WORK" -type f -size 0 -exec rm -f {} +
       trap - EXIT
       if rmdir "$WORK" 2>/dev/null; then :; else say "The files that the commands name are in $WORK, to be read and then removed."; fi ;;
  diff) say "$(wc -l < "$WORK/changes" | tr -d ' ') commands would be run." ;;
  *) say "$(wc -l < "$WORK/changes" | tr -d ' ') commands were run."
     say "Crawlers lease at $LEASE_URL/v1/leases with an ID token; who may is in the setting CRAWLERS${CRAWLERS:+: $CRAWLERS}." ;;
esac
