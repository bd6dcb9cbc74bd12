#!/usr/bin/env bash
# Builds everything and runs every test, from a clean clone or not.
#
# usage: tests/run.sh [--preset NAME] [--no-fuzz] [CTEST OPTIONS]
#   tests/run.sh -R bench_load       only tests whose names match
#   tests/run.sh --preset dev        under AddressSanitizer and UBSan
#   tests/run.sh --preset tsan       what has threads, under TSan
#   tests/run.sh --preset fuzz       only the fuzzers
#   tests/run.sh -L unit             only tests with this label
# The default preset, release, also builds and runs the fuzzers of the preset
# fuzz for 15 seconds each, unless --no-fuzz is given.
# The last lines and the exit status are ctest's.
set -euo pipefail

preset=release
fuzz=true
options=()
while (($# > 0)); do
  case $1 in
    --preset)
      preset=${2:?--preset needs a name}
      shift 2
      ;;
    --no-fuzz)
      fuzz=false
      shift
      ;;
    -h | --help)
      sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      options+=("$1")
      shift
      ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
deploy/install-packages.sh

python=build/python
requirements=tests/integration/python_client/requirements.txt
if ! cmp -s "$requirements" "$python/requirements.txt"; then
  rm -rf "$python"
  python3 -m venv "$python"
  "$python/bin/pip" install --quiet --disable-pip-version-check \
    --requirement "$requirements"
  cp "$requirements" "$python/requirements.txt"
fi

export BATON_MODEL_DIR=${BATON_MODEL_DIR:-$PWD/build/$preset/models}
deploy/fetch-model.sh "$BATON_MODEL_DIR"

configuration=()
if [[ $preset == release ]]; then
  fuzz_dir=
  if $fuzz; then
    fuzz_dir=$PWD/build/fuzz
    cmake --preset fuzz
    cmake --build --preset fuzz --parallel "$(nproc)"
  fi
  configuration=("-DBATON_FUZZ_DIR=$fuzz_dir")
fi
if [[ $preset == tsan ]]; then
  options+=(-L tsan)  # nothing else is built
fi
cmake --preset "$preset" "${configuration[@]}"
cmake --build --preset "$preset" --parallel "$(nproc)"
exec ctest --test-dir "build/$preset" --output-on-failure --parallel 2 \
  "${options[@]}"
