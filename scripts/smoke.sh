#!/usr/bin/env bash
# smoke.sh FUNCTION URL: whether a deployed function started, answers those who may call it, and nobody
# else. It changes nothing. FUNCTION is reconcile, health or lease.
#
# The caller's token comes from gcloud; IDENTITY_TOKEN replaces it. SMOKE_PUBLIC=yes leaves out the look
# without a token, for a function on this machine.
set -euo pipefail
function=$1 url=${2%/}

# A function that could not read its configuration answers 503 to everything, with the reason.
case $function in
  lease) path=/v1/status want=200 ;; # not /healthz: Google keeps paths that end in z to itself
  reconcile | health) path=/ want=405 ;; # they take POST only, and a POST would be work
  *) echo "smoke.sh: no function $function" >&2; exit 2 ;;
esac

# token: a service account's token must name whom it is for; a person's cannot. A new revision's own
# address is not whom it is for: Cloud Run wants the service's.
token() {
  local audience=${url/\/\/*---///}
  gcloud auth print-identity-token --audiences="$audience" 2>/dev/null || gcloud auth print-identity-token
}

body=$(mktemp)
trap 'rm -f "$body"' EXIT
look() { curl -sS -m 60 -o "$body" -w '%{http_code}' "$@" "$url$path" || true; }

if [ "${SMOKE_PUBLIC:-}" != yes ]; then
  got=$(look)
  case $got in
    401 | 403) ;;
    *) echo "$function: $url$path answers $got without a token; it must answer 401 or 403" >&2; exit 1 ;;
  esac
fi
auth="Authorization: Bearer ${IDENTITY_TOKEN:-$(token)}"
for try in 1 2 3 4 5; do # an address is known everywhere after some seconds
  got=$(look -H "$auth")
  [ "$got" != "$want" ] || { echo "$function: $url$path answers $want"; exit; }
  # With API keys the lease function itself refuses our token, which shows that it has started.
  if [ "$function$got" = lease401 ] && grep -q '"domain":"proxyfleet"' "$body"; then
    echo "$function: $url$path knows callers by their keys"
    exit
  fi
  [ "$try" = 5 ] || sleep "${PAUSE:-5}"
done
echo "$function: $url$path answers $got, wanted $want: $(head -c 300 "$body")" >&2
exit 1
