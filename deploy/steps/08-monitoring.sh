# shellcheck shell=bash
# Dashboard and alert policies. The policies are made from deploy/monitoring/rules.yaml; see there.

# hashed FILE: the file with the digest of itself as a user label, in the form that gcloud takes.
hashed() { sed "s/\"plane\": \"proxyfleet\"/\"plane\": \"$NAME\", \"content\": \"$(digest < "$1")\"/" "$1"; }

look_monitoring() {
  ask dashboards gcloud monitoring dashboards list --filter="displayName=$NAME" --format='csv[no-heading](displayName,name)' --project="$PROJECT"
  ask policies gcloud alpha monitoring policies list --filter="userLabels.plane=$NAME" --format='csv[no-heading](displayName,userLabels.content,name)' --project="$PROJECT"
}

monitoring() {
  local file name id line
  step "Dashboard and alerts"
  look_monitoring
  dashboard
  for file in "$DEPLOY"/monitoring/policies/*.json; do
    name=$(basename "$file" .json)
    case " $ALERTS " in " all " | *" $name "*) ;; *) continue ;; esac
    known policies "$name,$(digest < "$file")" && continue
    hashed "$file" > "$WORK/$name.json"
    line=$(grep "^$name," "$WORK/policies" || true)
    id=${line##*,}
    if [ -n "$id" ]; then
      lane run gcloud alpha monitoring policies update "$id" --policy-from-file="$WORK/$name.json" --project="$PROJECT"
    else
      lane run gcloud alpha monitoring policies create --policy-from-file="$WORK/$name.json" ${ALERT_CHANNEL:+"--notification-channels=$ALERT_CHANNEL"} --project="$PROJECT"
    fi
  done
  join
}

# dashboard makes the dashboard once; whoever edits it in the console keeps their edits.
dashboard() {
  known dashboards "$NAME" && return
  sed "s/\"displayName\": \"proxyfleet\"/\"displayName\": \"$NAME\"/" "$DEPLOY/monitoring/dashboard.json" > "$WORK/dashboard.json"
  run gcloud monitoring dashboards create --config-from-file="$WORK/dashboard.json" --project="$PROJECT"
}
