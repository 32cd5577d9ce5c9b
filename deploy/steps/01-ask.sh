# shellcheck shell=bash disable=SC2034 # the other steps use what is set here
# What is there already. Each list is read once; the other steps compare with it.

# place works out what the other steps need to know of the project.
place() {
  step "Project $PROJECT, region $REGION"
  NUMBER=000000000000
  if [ "$MODE" != dry ]; then
    NUMBER=$(gcloud projects describe "$PROJECT" --format='value(projectNumber)') || die "project $PROJECT: no such project, or you may not see it"
    [ -n "$NUMBER" ] || die "project $PROJECT has no number"
  fi
  : "${LOCATION:=$REGION}"
  REPOSITORY=$REGION-docker.pkg.dev/$PROJECT/$NAME
  ROLE_ID=$(printf '%s' "$NAME" | tr -c 'a-zA-Z0-9' _)Vms
  BUCKET=gs://$PROJECT-$NAME-build
  DATABASE_NAME=projects/$PROJECT/databases/$DATABASE
  # Cloud Run's addresses follow from the names, so nothing has to be asked for them.
  RECONCILE_URL=https://$NAME-reconcile-$NUMBER.$REGION.run.app
  HEALTH_URL=https://$NAME-health-$NUMBER.$REGION.run.app
  LEASE_URL=https://$NAME-lease-$NUMBER.$REGION.run.app
}

email() { printf '%s-%s@%s.iam.gserviceaccount.com' "$NAME" "$1" "$PROJECT"; }

# look reads what the chosen steps need, all lists at once.
look() {
  step "What is there"
  for_steps foundation data && {
    lane ask accounts     gcloud iam service-accounts list --format='value(email)' --project="$PROJECT"
    lane ask buckets      gcloud storage buckets list "--filter=name=${BUCKET#gs://}" --format='value(name)' --project="$PROJECT"
    lane ask databases    gcloud firestore databases list --format='value(name.basename())' --project="$PROJECT"
  }
  for_steps foundation &&
    lane look_role
  for_steps foundation data edges && {
    lane ask topics       gcloud pubsub topics list --format='value(name.basename())' --project="$PROJECT"
    lane ask subscriptions gcloud pubsub subscriptions list --project="$PROJECT" \
      --format='csv[no-heading](name.basename(),ackDeadlineSeconds,pushConfig.pushEndpoint,pushConfig.oidcToken.serviceAccountEmail,pushConfig.oidcToken.audience,deadLetterPolicy.maxDeliveryAttempts)'
  }
  for_steps foundation data images services && {
    lane ask repositories gcloud artifacts repositories list --location="$REGION" --format='value(name.basename())' --project="$PROJECT"
    lane ask secrets      gcloud secrets list --format='csv[no-heading](name.basename(),labels.content)' --project="$PROJECT"
  }
  for_steps services edges &&
    lane ask services     gcloud run services list --region="$REGION" --project="$PROJECT" \
      --format='csv[no-heading](metadata.name,metadata.labels.proxyfleet-config,status.latestReadyRevisionName,status.traffic[0].revisionName,spec.traffic[0].latestRevision)'
  for_steps edges && {
    lane ask jobs         gcloud scheduler jobs list --location="$REGION" --project="$PROJECT" \
      --format='csv[no-heading,separator="|"](name.basename(),schedule,httpTarget.uri,httpTarget.oidcToken.serviceAccountEmail,httpTarget.oidcToken.audience,attemptDeadline)'
    lane ask firewalls    gcloud compute firewall-rules list --filter="name=$NAME-proxies" --project="$PROJECT" \
      --format='csv[no-heading,separator="|"](name,sourceRanges.list(),allowed[].ports.flatten(),targetTags.list())'
  }
  join
}

look_role() {
  ask vms-role gcloud iam roles list --show-deleted --filter="name ~ /${ROLE_ID}$" --format='csv[no-heading](name,deleted,includedPermissions.join(" "))' --project="$PROJECT"
}

# look_inside reads what can only be asked for where its parent is there.
look_inside() {
  local file
  for file in indexes fields images; do : > "$WORK/$file"; done
  if for_steps data && known databases "$DATABASE"; then
    lane ask indexes gcloud firestore indexes composite list --database="$DATABASE" --format='csv[no-heading,separator="|"](name.segment(5),fields.map().extract(fieldPath).map().join("").list())' --project="$PROJECT"
    lane ask fields  gcloud firestore indexes fields list --database="$DATABASE" --format='csv[no-heading](name.segment(5),name.segment(7),ttlConfig.state,indexConfig.usesAncestorConfig)' --project="$PROJECT"
  fi
  if for_steps images services && known repositories "$NAME"; then
    lane ask images gcloud artifacts docker images list "$REPOSITORY" --include-tags --format='csv[no-heading,separator="|"](package,version,tags)' --project="$PROJECT"
  fi
  join
}

# chosen STEP: whether the step is one of --only. for_steps STEP...: whether one of them is.
chosen() { case ,$ONLY, in *,$1,*) true ;; *) false ;; esac; }
for_steps() {
  local s
  for s in "$@"; do ! chosen "$s" || return 0; done
  return 1
}
