#!/usr/bin/env bash
# push.sh FUNCTION REPOSITORY VERSION: builds and pushes one image, and writes its name by digest to
# deploy/images/out/FUNCTION.image. A tag can be moved; what was tested is what gets deployed.
set -euo pipefail
function=$1 tag=$2/$1:$3
cd "$(dirname "$0")"
docker build --tag="$tag" --build-arg="FUNCTION=$function" .
docker push "$tag"
docker inspect --format='{{index .RepoDigests 0}}' "$tag" > "out/$function.image"
