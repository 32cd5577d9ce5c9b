#!/usr/bin/env bash
# Fetch URLs through one leased proxy, and give it back:  lease.sh URL...
#
#   LEASE_URL            the lease function (http://127.0.0.1:8080)
#   PROXYFLEET_API_KEY   API key or ID token; not needed on one machine
#   LEASE_REQUEST        what lease is wanted, as JSON ({"waitSeconds":10})
#
# Needs curl and jq. A lease of five minutes is enough for what one command fetches; what takes longer
# renews it: POST $LEASE_URL/v1/leases/$id:renew
set -euo pipefail
[ $# -gt 0 ] || { echo "lease.sh: which URL?  lease.sh URL..." >&2; exit 2; }

base=${LEASE_URL:-http://127.0.0.1:8080}
request=${LEASE_REQUEST:-'{"waitSeconds":10}'}

# call posts a body and prints the answer, with curl's exit code: 22 is a refusal. A call whose answer
# was lost is repeated; it has no second effect. Neither the token nor the proxy's password is put on a
# command line, where others could read them.
call() { # PATH BODY
  local answer code
  for _ in 1 2 3; do
    code=0
    answer=$(curl --silent --show-error --fail-with-body --noproxy '*' --max-time 60 \
      --header 'Content-Type: application/json' \
      --config <(if [ -n "${PROXYFLEET_API_KEY:-}" ]; then printf 'header = "Authorization: Bearer %s"\n' "$PROXYFLEET_API_KEY"; fi) \
      --data "$2" "$base$1") || code=$?
    if [ "$code" = 0 ] || [ "$code" = 22 ]; then break; fi
    sleep 1
  done
  printf '%s' "$answer"
  return "$code"
}

# With a requestId a repeated call leads to the same lease.
request=$(jq --compact-output --arg id "$(date +%s)-$$-$RANDOM" '{requestId: $id} + .' <<<"$request")
if ! lease=$(call /v1/leases "$request"); then
  printf 'lease.sh: no lease: %s\n' "$(jq -r '.error | "\(.details[0].reason): \(.message)"' <<<"$lease" 2>/dev/null || true)" >&2
  exit 1
fi
id=$(jq -r .id <<<"$lease")

outcome=ok
give_back() { call "/v1/leases/$id:release" "{\"outcome\":\"$outcome\"}" >/dev/null; }
trap give_back EXIT

for url in "$@"; do
  curl --silent --show-error --location --max-time 60 \
    --config <(jq -r '"proxy = \(.endpoint.url | @json)"' <<<"$lease") "$url" || outcome=error
done
[ "$outcome" = ok ]
