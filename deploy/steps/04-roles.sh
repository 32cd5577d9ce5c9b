# shellcheck shell=bash
# Grants deploy/roles.txt. Each resource's policy is read once, and its grants are made one after the
# other: a policy is read, changed and written as a whole, and concurrent writers lose.

# on_resource RESOURCE ACTION ARGS...: gcloud's words for the policy of a resource of roles.txt.
on_resource() {
  local kind=${1%%:*} name=${1#*:} action=$2; shift 2
  case $kind in
    project)      "$DO" gcloud projects "$action" "$PROJECT" "$@" ;;
    topic)        "$DO" gcloud pubsub topics "$action" "$(topic_name "$name")" "$@" --project="$PROJECT" ;;
    subscription) "$DO" gcloud pubsub subscriptions "$action" "$NAME-$name" "$@" --project="$PROJECT" ;;
    secret)       "$DO" gcloud secrets "$action" "$NAME-$name" "$@" --project="$PROJECT" ;;
    account)      "$DO" gcloud iam service-accounts "$action" "$(email "$name")" "$@" --project="$PROJECT" ;;
    service)      "$DO" gcloud run services "$action" "$NAME-$name" "$@" --region="$REGION" --project="$PROJECT" ;;
    repository)   "$DO" gcloud artifacts repositories "$action" "$NAME" "$@" --location="$REGION" --project="$PROJECT" ;;
    bucket)       "$DO" gcloud storage buckets "$action" "$BUCKET" "$@" ;;
  esac
}

# wanted: the lines of roles.txt that the settings ask for.
wanted() {
  local account on role only when
  while read -r account on role only when _; do
    case $when in
      monitoring) on "$MONITORING" || continue ;;
      apikeys) [ "$AUTH" = apikeys ] || continue ;;
      source) on "$FROM_SOURCE" || continue ;;
    esac
    printf '%s %s %s %s\n' "$account" "$on" "$role" "$only"
  done < <(rows "$DEPLOY/roles.txt")
}

members() {
  case $1 in
    crawlers) printf '%s\n' "$CRAWLERS" | tr ' ' '\n' ;;
    pubsub-agent) printf 'serviceAccount:service-%s@gcp-sa-pubsub.iam.gserviceaccount.com\n' "$NUMBER" ;;
    *) printf 'serviceAccount:%s\n' "$(email "$1")" ;;
  esac
}

# only CONDITION: the expression for what a role on the project is narrowed to.
only() {
  case $1 in
    database)    printf 'resource.name=="%s"' "$DATABASE_NAME" ;;
    credentials) printf 'resource.name.startsWith("projects/%s/secrets/%s")' "$NUMBER" "$CREDENTIALS_PREFIX" ;;
    cloud-init)  printf 'resource.name.startsWith("projects/%s/secrets/%s")' "$NUMBER" "$CLOUD_INIT_PREFIX" ;;
  esac
}

# grants RESOURCE: makes what is missing on it.
grants() {
  local resource=$1 account on role condition member title file
  file=policy-${resource//:/-}
  : > "$WORK/$file"
  if exists "$resource"; then
    DO=quiet on_resource "$resource" get-iam-policy --flatten='bindings[].members' \
      --format='csv[no-heading](bindings.role,bindings.members,bindings.condition.title)' > "$WORK/$file"
  fi
  while read -r account on role condition; do
    [ "$on" = "$resource" ] || continue
    [ "$role" != @vms ] || role=projects/$PROJECT/roles/$ROLE_ID
    while read -r member; do
      [ -n "$member" ] || continue
      title=; set --
      if [ "$condition" != - ]; then
        title=$NAME-$condition
        set -- "--condition=title=$title,expression=$(only "$condition")"
      elif [ "$on" = project ]; then
        set -- --condition=None
      fi
      known "$file" "$role,$member,$title" || DO=run on_resource "$on" add-iam-policy-binding --member="$member" --role="$role" "$@"
    done < <(members "$account")
  done < <(wanted)
}

quiet() { if [ "$MODE" != dry ]; then "$@"; fi; }

# exists RESOURCE: whether it was there when this deploy began; what was not has no policy yet.
exists() {
  local name=${1#*:}
  case $1 in
    project) true ;;
    topic:*) known topics "$(topic_name "$name")" ;;
    subscription:*) known subscriptions "$NAME-$name" ;;
    secret:*) known secrets "$NAME-$name" ;;
    account:*) known accounts "$(email "$name")" ;;
    service:*) known services "$NAME-$name" ;;
    repository) known repositories "$NAME" ;;
    bucket) known buckets "${BUCKET#gs://}" ;;
  esac
}

# roles RESOURCE-PATTERN...: grants on all resources of roles.txt that fit.
roles() {
  local pattern resource
  for pattern in "$@"; do
    while read -r resource; do
      # shellcheck disable=SC2254 # a pattern
      case $resource in $pattern) lane grants "$resource" ;; esac
    done < <(wanted | cut -d ' ' -f 2 | sort -u)
  done
}
