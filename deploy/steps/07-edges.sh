# shellcheck shell=bash
# What calls the functions, and what may reach the proxies.

# subscription pushes probes to the health function as the account that may call it. What fails is
# delivered again after 10 s to 60 s, and in the end to the dead-letter topic.
subscription() {
  local name=$NAME-push verb=create topic
  step "Push subscription"
  topic="--topic=$(topic_name probes)"
  known subscriptions "$name,$ACK_DEADLINE,$HEALTH_URL/,$(email push),$HEALTH_URL,$DELIVERY_ATTEMPTS" && return
  if known subscriptions "$name"; then verb=update topic=; fi
  run gcloud pubsub subscriptions $verb "$name" ${topic:+"$topic"} --push-endpoint="$HEALTH_URL/" \
    --push-auth-service-account="$(email push)" --push-auth-token-audience="$HEALTH_URL" --ack-deadline="$ACK_DEADLINE" \
    --min-retry-delay=10s --max-retry-delay=60s --dead-letter-topic="$(topic_name dead)" --max-delivery-attempts="$DELIVERY_ATTEMPTS" \
    --message-retention-duration=10m --expiration-period=never --project="$PROJECT"
}

# tick calls the reconcile function; a call that was lost is made up for by the next minute's.
tick() {
  local verb=create
  step "Scheduler job"
  known jobs "$NAME-tick|$SCHEDULE|$RECONCILE_URL/|$(email tick)|$RECONCILE_URL|$ATTEMPT_DEADLINE" && return
  if grep -q "^$NAME-tick|" "$WORK/jobs"; then verb=update; fi
  run gcloud scheduler jobs $verb http "$NAME-tick" --location="$REGION" --schedule="$SCHEDULE" --time-zone=Etc/UTC --uri="$RECONCILE_URL/" \
    --http-method=POST --oidc-service-account-email="$(email tick)" --oidc-token-audience="$RECONCILE_URL" \
    --attempt-deadline="$ATTEMPT_DEADLINE" --max-retry-attempts=0 --project="$PROJECT"
}

firewall() {
  local name=$NAME-proxies rules
  step "Firewall of the proxy VMs: $SOURCE_RANGES may reach the ports $PROXY_PORTS"
  rules=tcp:${PROXY_PORTS//,/,tcp:}
  known firewalls "$name|$SOURCE_RANGES|$PROXY_PORTS|$NAME-proxy" && return
  if grep -q "^$name|" "$WORK/firewalls"; then
    run gcloud compute firewall-rules update "$name" --rules="$rules" --source-ranges="$SOURCE_RANGES" --target-tags="$NAME-proxy" --project="$PROJECT"
  else
    run gcloud compute firewall-rules create "$name" --network="$NETWORK" --direction=INGRESS --action=allow --rules="$rules" \
      --source-ranges="$SOURCE_RANGES" --target-tags="$NAME-proxy" --project="$PROJECT"
  fi
}
