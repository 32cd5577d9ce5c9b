#!/usr/bin/env bash
# record-session.sh [--write|--check] STATE: the terminal session of the README, from real commands.
#
# STATE is what `go run ./emulator --state STATE` wrote, on the Firestore emulator. Without a flag the
# session goes to standard output; --write puts it between the markers of README.md; --check compares
# its shape (times, addresses and random names aside) with what is there. It applies a proxy of its own
# and deletes it again.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=print
case ${1:-} in --write | --check) mode=${1#--}; shift ;; esac
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

scripts/need.sh go curl
field() { sed -n "s/^ *\"$1\": *\"\([^\"]*\)\".*/\1/p" "$state"; }
state=$1
FIRESTORE_EMULATOR_HOST=$(field firestoreHost) PROJECT_ID=$(field projectId) LEASE_URL=$(field leaseURL)
ORIGIN_URL=$(field originURL) ORIGIN_CA=$(field originCAFile)
export FIRESTORE_EMULATOR_HOST PROJECT_ID LEASE_URL ORIGIN_URL ORIGIN_CA
[ -n "$FIRESTORE_EMULATOR_HOST" ] || { echo "record-session.sh: the plane must run with --store=firestore" >&2; exit 1; }
unset no_proxy NO_PROXY FIRESTORE_DATABASE PROXYFLEET_API_KEY

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/proxyctl" ./scripts/proxyctl
PATH=$work:$PATH

manifest() { # NAME and what follows: one proxy of the mock cloud
  cat <<YAML
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata:
  name: $1
  labels: {pool: demo}
spec:
  mode: Managed
  provider: mock
  placement: {region: us-east1, zone: us-east1-b, machineType: $2}
  cloudInit: {inline: "#cloud-config"}
  endpoint:
    port: $3
    credentialsSecretRef: {name: proxy-auth, key: basic}
  healthCheck: {url: "$ORIGIN_URL/generate_204", expectedStatus: 204, timeoutSeconds: 5}
  maxLeases: $4$5
YAML
}
port=$(proxyctl get proxies us-east1-a -o yaml | sed -n 's/^ *port: *//p' | head -n 1)
manifest demo e2-micro "$port" 2 '' >"$work/demo.yaml"
manifest demo 'E2 micro' 70000 2000 $'\n  colour: red' >"$work/faulty.yaml"

# What a terminal shows of a progress line at the end is nothing, so it is left out.
run() {
  printf '$ %s\n' "$*"
  (cd "$work" && bash -c "$*") 2>&1 | grep -v ' of 1 done; ' || true
  [ "${PIPESTATUS[0]}" = 0 ] || true
}
session() {
  run 'proxyctl validate -f faulty.yaml'
  run 'proxyctl apply -f demo.yaml --wait'
  run 'proxyctl get proxies --label pool=demo -o wide'
  run 'proxyctl lease --label pool=demo -- curl -sS --proxytunnel --cacert $ORIGIN_CA $ORIGIN_URL/'
  run 'proxyctl lease --label pool=nowhere -- curl -sS $ORIGIN_URL/; echo "exit code $?"'
  run 'proxyctl rotate demo --wait'
  run 'proxyctl describe demo'
  run 'proxyctl doctor'
  run 'proxyctl delete demo --wait'
}

# shape forgets what differs from one recording to the next.
shape() {
  sed -E -e 's/proxy-[a-z0-9]{16}/proxy-NAME/g' -e 's/[0-9.]+:[0-9]{4,5}/ADDRESS/g' -e 's/[0-9]+ ?(ms|[smhd])\b/TIME/g' -e 's/  +/  /g' \
    -e 's/ok  [0-9]+/ok  MS/' -e 's/[0-9]+ (leases live|slots free|proxies|Ready|entries)/N \1/g' -e 's/, [0-9]+ of them/, N of them/'
}

begin='<!-- session -->' end='<!-- /session -->'
session >"$work/session"
case $mode in
  print) cat "$work/session" ;;
  check)
    sed -n "/^$begin\$/,/^${end/\//\\/}\$/p" README.md | sed '1d;$d' | sed '/^```/d' | shape >"$work/want"
    diff -u "$work/want" <(shape <"$work/session") || { echo "README.md shows another session: scripts/record-session.sh --write STATE" >&2; exit 1; }
    ;;
  write)
    grep -q "^$begin\$" README.md || { echo "record-session.sh: README.md needs the lines $begin and $end" >&2; exit 1; }
    { sed "/^$begin\$/q" README.md; echo '```console'; cat "$work/session"; echo '```'; sed -n "/^${end/\//\\/}\$/,\$p" README.md; } >"$work/readme"
    cat "$work/readme" >README.md
    ;;
esac
