# shellcheck shell=bash
# The three services. A new revision gets an address of its own first, is tested there, and only then
# gets the traffic; what was serving goes on serving meanwhile.

LATEST="- {latestRevision: true, percent: 100}"

url_of() { case $1 in reconcile) printf %s "$RECONCILE_URL" ;; health) printf %s "$HEALTH_URL" ;; lease) printf %s "$LEASE_URL" ;; esac; }

# service FUNCTION: brings one service to what its file says.
service() {
  local line latest serving follows
  # Two renderings: the digest must not depend on itself, nor on where traffic goes meanwhile.
  CONFIG=- TRAFFIC=$LATEST
  CONFIG=$(render "$DEPLOY/services/$1.yaml" | digest)
  line=$(grep "^$NAME-$1," "$WORK/services" || true)
  IFS=, read -r _ _ latest serving follows <<< "$line"
  case $line in
    "") # the first revision of a new service
      apply_service "$1"
      smoke "$1" "$(url_of "$1")"
      return ;;
    "$NAME-$1,$CONFIG,"*) # as wanted; but an interrupted deploy may have left the new revision without traffic
      if [ "$follows" = True ] && [ "$latest" = "$serving" ]; then return; fi ;;
    *)
      TRAFFIC="- {revisionName: $serving, percent: 100}
  - {latestRevision: true, percent: 0, tag: candidate}"
      apply_service "$1" ;;
  esac
  smoke "$1" "$(url_of "$1" | sed 's,//,//candidate---,')"
  run gcloud run services update-traffic "$NAME-$1" --to-latest --clear-tags --region="$REGION" --project="$PROJECT"
}

apply_service() {
  render "$DEPLOY/services/$1.yaml" > "$WORK/$1.yaml"
  run gcloud run services replace "$WORK/$1.yaml" --region="$REGION" --project="$PROJECT"
}

smoke() { run "$ROOT/scripts/smoke.sh" "$1" "$2"; }

services() {
  local f
  step "Services"
  PROVIDERS_HASH=$(providers_hash)
  for f in $FUNCTIONS; do lane service "$f"; done
  join
}

# source_flags FUNCTION: the flags that say what the service's file says.
source_flags() {
  local env="PROJECT_ID=$PROJECT,FIRESTORE_DATABASE=$DATABASE,METRICS_PORT=off,VERSION=$VERSION"
  case $1 in
    reconcile)
      printf '%s\n' --function=Reconcile --concurrency=1 --timeout=180 --max-instances=2 --memory="$RECONCILE_MEMORY" \
        --set-secrets="/etc/proxyfleet/providers.yaml=$NAME-providers:latest" --update-labels="proxyfleet-providers=$(providers_hash)" \
        --set-env-vars="$env,PROVIDERS_CONFIG=/etc/proxyfleet/providers.yaml,PROBE_TOPIC=$NAME-probes,RUN_TIMEOUT=$RUN_TIMEOUT" ;;
    health)
      printf '%s\n' --function=Health --concurrency=100 --timeout="$ACK_DEADLINE" --max-instances="$HEALTH_INSTANCES" \
        --memory="$HEALTH_MEMORY" --set-env-vars="$env" ;;
    lease)
      [ "$AUTH" != apikeys ] || env="$env,API_KEYS_SECRET=$NAME-api-keys"
      printf '%s\n' --function=Lease --concurrency=200 --timeout=60 --min-instances="$LEASE_MIN_INSTANCES" \
        --max-instances="$LEASE_INSTANCES" --memory="$LEASE_MEMORY" --set-env-vars="$env,AUTH=$AUTH" ;;
  esac
}

# services_from_source has Google's buildpack build each function from the repository's root. One image
# holds all three functions then, and there is no side-car.
services_from_source() {
  local f flag
  step "Services, built from source by Google's buildpack"
  for f in $FUNCTIONS; do
    set --
    while read -r flag; do set -- "$@" "$flag"; done < <(source_flags "$f")
    run gcloud run deploy "$NAME-$f" --source="$ROOT" --base-image=go126 "$@" --cpu=1 --cpu-boost --ingress=all --no-allow-unauthenticated \
      --service-account="$(email "$f")" --build-service-account="projects/$PROJECT/serviceAccounts/$(email build)" --region="$REGION" --project="$PROJECT"
    smoke "$f" "$(url_of "$f")"
  done
}
