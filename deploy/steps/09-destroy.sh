# shellcheck shell=bash
# What only the removal needs.

dry() { if [ "$MODE" = apply ]; then echo off; else echo on; fi; }

# owner is the label of the fleet's VMs; it is made by pkg/fleet, and a test holds this to it.
owner() {
  local name sum
  name=$(printf '%s--%s' "$PROJECT" "$(printf '%s' "$DATABASE" | sed -E 's/^[()]+//; s/[()]+$//')" | tr -c 'a-z0-9-' '-' | sed -E 's/^-+//; s/-+$//')
  sum=$(printf '%d:%s%d:%s' "${#PROJECT}" "$PROJECT" "${#DATABASE}" "$DATABASE" | openssl dgst -sha256 -binary | base32 | tr -d '\n' | tr '[:upper:]' '[:lower:]' | cut -c 1-12)
  printf '%s-%s' "$(printf '%s' "$name" | cut -c 1-50 | sed -E 's/-+$//')" "$sum"
}

# remove ANSWER NAME COMMAND...: runs the command if the name is there.
remove() {
  local answer=$1 name=$2; shift 2
  if known "$answer" "$name" || grep -qF -- "$name|" "$WORK/$answer"; then
    run "$@" --quiet --project="$PROJECT"
  fi
}

remove_monitoring() {
  local name
  while IFS=, read -r _ _ name; do
    run gcloud alpha monitoring policies delete "$name" --quiet --project="$PROJECT"
  done < "$WORK/policies"
  while IFS=, read -r _ name; do
    run gcloud monitoring dashboards delete "$name" --quiet --project="$PROJECT"
  done < "$WORK/dashboards"
}

remove_database() {
  known databases "$DATABASE" || return 0
  run gcloud firestore databases update --database="$DATABASE" --no-delete-protection --project="$PROJECT"
  run gcloud firestore databases delete --database="$DATABASE" --quiet --project="$PROJECT"
}

# revoke takes back the roles on the project; those on removed resources went with them.
revoke() {
  local account on role member
  gcloud projects get-iam-policy "$PROJECT" --flatten='bindings[].members' --format='csv[no-heading](bindings.role,bindings.members)' > "$WORK/policy"
  while read -r account on role _; do
    [ "$on" = project ] || continue
    [ "$role" != @vms ] || role=projects/$PROJECT/roles/$ROLE_ID
    member=$(members "$account")
    known policy "$role,$member" || continue
    run gcloud projects remove-iam-policy-binding "$PROJECT" --member="$member" --role="$role" --all
  done < <(wanted)
}

# left says what is still there, and costs.
left() {
  local vms
  vms=$(wc -l < "$WORK/instances" | tr -d ' ')
  ! known databases "$DATABASE" || say "Left: the Firestore database $DATABASE with its documents."
  ! known secrets "$NAME-providers" || say "Left: the secret $NAME-providers with the providers file."
  ! known secrets "$NAME-api-keys" || say "Left: the secret $NAME-api-keys with the API keys."
  if [ "$vms" != 0 ]; then
    say "Left: $vms VMs, which go on costing money:"
    sed -e 's/^/  /' -e 's/,/ in /' "$WORK/instances"
    say "--all deletes them with everything else."
  fi
}
