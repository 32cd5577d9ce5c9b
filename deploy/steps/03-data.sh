# shellcheck shell=bash
# What is kept: database with its indexes, topics, secrets.

# index_lines prints deploy/firestore.indexes.json one line each: index|COLLECTION|FIELDS, ttl|COLLECTION|FIELD
# and exempt|COLLECTION|FIELD. The file is in the form of the Firebase tools; a test keeps its layout to
# one entry a line, so that this needs no JSON parser.
index_lines() {
  local file=$DEPLOY/firestore.indexes.json
  sed -nE 's/.*"collectionGroup": "([^"]*)", "queryScope": "COLLECTION", "fields": (.*)/index|\1|\2/p' "$file" |
    sed -E -e 's/\{"fieldPath": "([^"]*)", "order": "ASCENDING"\}/\1/g' -e 's/[][{} ]//g' -e 's/,$//'
  sed -nE 's/.*"collectionGroup": "([^"]*)", "fieldPath": "([^"]*)", "ttl": true.*/ttl|\1|\2/p' "$file"
  sed -nE 's/.*"collectionGroup": "([^"]*)", "fieldPath": "([^"]*)".*"indexes": \[\].*/exempt|\1|\2/p' "$file"
}

database() {
  local kind collection field fields
  step "Firestore: database, indexes, TTL policies, exemptions"
  known databases "$DATABASE" ||
    run gcloud firestore databases create --database="$DATABASE" --location="$LOCATION" --type=firestore-native --delete-protection --project="$PROJECT"
  while IFS='|' read -r kind collection field; do
    case $kind in
      index)
        known indexes "$collection|$field,__name__" && continue
        fields=$(printf '%s' "$field" | sed -E 's/([^,]+),?/--field-config=field-path=\1,order=ascending /g')
        # shellcheck disable=SC2086 # one argument each
        run gcloud firestore indexes composite create --database="$DATABASE" --collection-group="$collection" $fields --async --project="$PROJECT" ;;
      ttl)
        known fields "$collection,$field,ACTIVE" || known fields "$collection,$field,CREATING" ||
          run gcloud firestore fields ttls update "$field" --database="$DATABASE" --collection-group="$collection" --enable-ttl --async --project="$PROJECT" ;;
      exempt)
        known fields "$collection,$field,," || known fields "$collection,$field,ACTIVE," || known fields "$collection,$field,CREATING," ||
          run gcloud firestore indexes fields update "$field" --database="$DATABASE" --collection-group="$collection" --disable-indexes --async --project="$PROJECT" ;;
    esac
  done < <(index_lines)
}

topics() {
  local topic
  step "Pub/Sub: probes, and a dead-letter topic with a subscription that keeps what arrives there"
  for topic in probes dead; do
    known topics "$(topic_name $topic)" || run gcloud pubsub topics create "$(topic_name $topic)" --project="$PROJECT"
  done
  known subscriptions "$(topic_name dead)" ||
    run gcloud pubsub subscriptions create "$(topic_name dead)" --topic="$(topic_name dead)" --message-retention-duration=7d --expiration-period=never --ack-deadline=60 --project="$PROJECT"
}

topic_name() { case $1 in dead) printf '%s-probes-dead' "$NAME" ;; *) printf '%s-%s' "$NAME" "$1" ;; esac; }

# content SECRET FILE: makes the secret hold the file. A label has the digest of what it holds, so that
# nothing has to be read back.
content() {
  local sum
  sum=$(digest < "$2")
  if ! known secrets "$1"; then
    run gcloud secrets create "$1" --data-file="$2" --replication-policy=automatic --labels="content=$sum" --project="$PROJECT"
  elif ! known secrets "$1,$sum"; then
    run gcloud secrets versions add "$1" --data-file="$2" --project="$PROJECT"
    run gcloud secrets update "$1" --update-labels="content=$sum" --project="$PROJECT"
  fi
}

secrets() {
  step "Secrets: providers file, side-car, API keys"
  # Without --providers the file of an earlier deploy stays, which may be somebody's own.
  if [ -n "$PROVIDERS" ]; then
    cp "$PROVIDERS" "$WORK/providers.yaml" || die "cannot read $PROVIDERS"
    content "$NAME-providers" "$WORK/providers.yaml"
  elif ! known secrets "$NAME-providers"; then
    render "$DEPLOY/providers.yaml" > "$WORK/providers.yaml"
    content "$NAME-providers" "$WORK/providers.yaml"
  fi
  if on "$MONITORING"; then
    render "$DEPLOY/monitoring/collector.yaml" > "$WORK/collector.yaml"
    content "$NAME-collector" "$WORK/collector.yaml"
  fi
  if [ "$AUTH" = apikeys ] && ! known secrets "$NAME-api-keys"; then
    say "# one line a key, name: SHA-256 of the key; see README" > "$WORK/api-keys"
    content "$NAME-api-keys" "$WORK/api-keys"
  fi
}

# providers_hash is the digest of what the providers secret holds after this deploy.
providers_hash() {
  if [ -f "$WORK/providers.yaml" ]; then digest < "$WORK/providers.yaml"; else sed -n "s/^$NAME-providers,//p" "$WORK/secrets"; fi
}
