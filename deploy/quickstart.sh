#!/usr/bin/env bash
# From a fresh clone to an answer: installs packages, builds, gets a small
# model, starts a router, a prefill worker and a decode worker, and asks a
# question. Then the cluster stays until Ctrl-C; with --once it stops.
set -euo pipefail

once=false
case ${1-} in
  "") ;;
  --once) once=true ;;
  *)
    echo "usage: quickstart.sh [--once]" >&2
    exit 2
    ;;
esac
question="What is the capital of France, and what is it known for?"

step() { printf '\n== %s\n' "$*"; }

cd "$(dirname "${BASH_SOURCE[0]}")/.."
step "1/4 packages"
deploy/install-packages.sh
step "2/4 build (a few minutes the first time)"
cmake --preset release
cmake --build --preset release --parallel "$(nproc)" --target \
  baton baton-bench-model baton-inspect baton-router baton-prefill-worker \
  baton-decode-worker
step "3/4 model"
model=$(deploy/fetch-model.sh build/release/models)
echo "$model"

step "4/4 a router, a prefill worker and a decode worker"
baton=build/release/bin/baton
work=$(mktemp -d)
up=
finish() {
  if [[ -n $up ]] && kill -TERM "$up" 2>/dev/null; then
    wait "$up" || true
  fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' TERM

listen=()
if $once; then
  listen=(--listen 127.0.0.1:0)
fi
# Hand-over of every prompt, so that the question travels through all three.
"$baton" up --model "$model" --disaggregation always "${listen[@]}" \
  --ready-file "$work/ready.json" &
up=$!
# From here on Ctrl-C is for the cluster, which drains; this script waits.
trap : INT
while [[ ! -f $work/ready.json ]]; do
  if ! kill -0 "$up" 2>/dev/null; then
    wait "$up"
    exit 1
  fi
  sleep 0.1
done
router=$(sed -n 's/.*"address": "\([^"]*\)".*/\1/p' "$work/ready.json")

step "$question"
"$baton" generate --router "$router" --temperature 0 --max-tokens 80 \
  --timings "$question"

if $once; then
  kill -TERM "$up"
  status=0
  wait "$up" || status=$?
  up=
  exit "$status"
fi
step "the cluster stays until Ctrl-C; try in another terminal:"
echo "$PWD/$baton chat --router $router"
while kill -0 "$up" 2>/dev/null; do
  wait "$up" || true
done
up=
