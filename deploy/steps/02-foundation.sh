# shellcheck shell=bash
# What everything else stands on: APIs, accounts, the custom role, where images go.

apis() {
  local missing=
  step "APIs"
  ask apis gcloud services list --enabled --format='value(config.name)' --project="$PROJECT"
  while read -r api _; do
    known apis "$api" || missing="$missing $api"
  done < <(rows "$DEPLOY/apis.txt")
  # shellcheck disable=SC2086 # one argument each
  [ -z "$missing" ] || run gcloud services enable $missing --project="$PROJECT"
}

accounts() {
  local account purpose
  step "Service accounts"
  while read -r account purpose; do
    known accounts "$(email "$account")" || run gcloud iam service-accounts create "$NAME-$account" --display-name="$purpose" --project="$PROJECT"
  done < <(rows "$DEPLOY/accounts.txt")
}

# vms_role makes the custom role, brings it back if it was deleted within the last week, or mends it.
vms_role() {
  local line want
  step "Role of the reconcile function over VMs"
  line=$(head -n 1 "$WORK/vms-role")
  want=$(sed -n 's/^- //p' "$DEPLOY/vms.role.yaml" | sort | xargs)
  if [ -z "$line" ]; then
    run gcloud iam roles create "$ROLE_ID" --file="$DEPLOY/vms.role.yaml" --project="$PROJECT"
    return
  fi
  case $line in *,True,*) run gcloud iam roles undelete "$ROLE_ID" --project="$PROJECT" ;; esac
  [ "$(printf '%s' "${line##*,}" | tr -d '"' | xargs -n 1 | sort | xargs)" = "$want" ] ||
    run gcloud iam roles update "$ROLE_ID" --file="$DEPLOY/vms.role.yaml" --project="$PROJECT"
}

registry() {
  step "Where sources and images go"
  known repositories "$NAME" || run gcloud artifacts repositories create "$NAME" --repository-format=docker --location="$REGION" --description="images of proxyfleet" --project="$PROJECT"
  known buckets "${BUCKET#gs://}" || run gcloud storage buckets create "$BUCKET" --location="$REGION" --uniform-bucket-level-access --public-access-prevention --project="$PROJECT"
}
