# shellcheck shell=bash disable=SC2034 # read by the scripts that source this
# What the plane is called and how it is sized. Each line yields to a variable of the same name in the
# environment; the flags of scripts/deploy.sh set some of them.

: "${NAME:=proxyfleet}"              # prefix of everything that is made; a second fleet takes another
: "${DATABASE:=(default)}"           # Firestore database; each database is a fleet of its own
: "${LOCATION:=}"                    # of the database; empty: the region. It can never be changed
: "${VERSION:=}"                     # empty: the commit, or a digest of the sources when they differ from it

: "${AUTH:=iam}"                     # how the lease function knows its callers: iam or apikeys
: "${CRAWLERS:=}"                    # who may call it, space-separated: serviceAccount:a@b group:c@d
: "${PROVIDERS:=}"                   # providers file; empty: deploy/providers.yaml, once

: "${SCHEDULE:=* * * * *}"           # the tick; intervals in Proxy documents assume a minute
: "${RUN_TIMEOUT:=150s}"             # how long one reconcile run may take
: "${ATTEMPT_DEADLINE:=165s}"        # above RUN_TIMEOUT; below the expiry of the run lock, which is a minute above it
: "${ACK_DEADLINE:=120}"             # seconds; above what the health function allows itself for one message
: "${DELIVERY_ATTEMPTS:=5}"          # of one probe message, before it is dead-lettered

: "${RECONCILE_MEMORY:=512Mi}"
: "${HEALTH_MEMORY:=512Mi}"
: "${HEALTH_INSTANCES:=10}"          # at most; one judges a thousand proxies a minute
: "${LEASE_MEMORY:=512Mi}"
: "${LEASE_INSTANCES:=20}"           # at most
: "${LEASE_MIN_INSTANCES:=0}"        # 1 spares crawlers the cold start, and costs an idle instance

: "${NETWORK:=default}"              # of the proxy VMs
: "${PROXY_PORTS:=3128}"             # comma-separated
: "${SOURCE_RANGES:=0.0.0.0/0}"      # who may reach the proxies, comma-separated. The probes come from Cloud Run,
                                     # whose addresses change, unless it is given egress of its own: see README
: "${MONITORING:=on}"                # on: side-car, dashboard and alert policies; off: none of them
: "${ALERTS:=all}"                   # or names of alerts, space-separated: each policy has its price
: "${ALERT_CHANNEL:=}"               # notification channel, projects/P/notificationChannels/N; empty: alerts are only listed
: "${COLLECTOR:=us-docker.pkg.dev/cloud-ops-agents-artifacts/cloud-run-gmp-sidecar/cloud-run-gmp-sidecar:1.8.0}"

# Secrets whose names begin so may be read by the functions that need them, without a new deploy.
: "${CREDENTIALS_PREFIX:=proxy-auth}"
: "${CLOUD_INIT_PREFIX:=proxy-cloud-init}"
