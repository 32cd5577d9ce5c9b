# shellcheck shell=bash
# One image per function: lease and health do not carry the Compute client, which costs start-up time.

FUNCTIONS="reconcile health lease"

# version names what is deployed: the commit, or, where the sources differ from it, a digest of them.
version() {
  if git -C "$ROOT" diff --quiet HEAD -- go.mod go.sum pkg functions deploy/images 2>/dev/null &&
    [ -z "$(git -C "$ROOT" ls-files --others --exclude-standard -- pkg functions deploy/images 2>/dev/null)" ]; then
    git -C "$ROOT" rev-parse --short=12 HEAD
  else
    (cd "$ROOT" && find go.mod go.sum pkg functions deploy/images -type f ! -name '*_test.go' | LC_ALL=C sort | xargs cat | digest | cut -c 1-12 | sed 's/^/src-/')
  fi
}

# image_of FUNCTION: the image by digest, if it was built; the answer's lines are REPOSITORY/NAME|DIGEST|TAGS.
image_of() {
  awk -F'|' -v p="$REPOSITORY/$1" -v v="$VERSION" -v q='"' '
    $1 == p { n = split($3, tags, /[, ]+/); for (i = 1; i <= n; i++) { gsub(q, "", tags[i]); if (tags[i] == v) { print p "@" $2; exit } } }
  ' "$WORK/images"
}

images() {
  local f missing=
  step "Images of version $VERSION"
  for f in $FUNCTIONS; do [ -n "$(image_of "$f")" ] || missing=yes; done
  if [ -n "$missing" ]; then
    # The build runs as its own account, which must be able to read what this uploads.
    run gcloud builds submit "$ROOT" --config="$DEPLOY/images/build.yaml" --ignore-file=deploy/build.gcloudignore \
      --gcs-source-staging-dir="$BUCKET/source" --service-account="projects/$PROJECT/serviceAccounts/$(email build)" \
      --substitutions="_REPOSITORY=$REPOSITORY,_VERSION=$VERSION" --project="$PROJECT"
    ask images gcloud artifacts docker images list "$REPOSITORY" --include-tags --format='csv[no-heading,separator="|"](package,version,tags)' --project="$PROJECT"
  fi
  for f in $FUNCTIONS; do
    if [ -z "$(image_of "$f")" ]; then
      [ "$MODE" != apply ] || die "the build left no image $REPOSITORY/$f:$VERSION"
      printf '%s|sha256:%064d|%s\n' "$REPOSITORY/$f" 0 "$VERSION" >> "$WORK/images" # to be known after the build
    fi
  done
  RECONCILE_IMAGE=$(image_of reconcile) HEALTH_IMAGE=$(image_of health) LEASE_IMAGE=$(image_of lease)
}
