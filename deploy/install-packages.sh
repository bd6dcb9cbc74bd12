#!/usr/bin/env bash
# Installs what Baton needs to build and run on Debian 12; does nothing when
# everything is there.
set -euo pipefail

packages=(
  ca-certificates ccache clang-19 cmake g++ git iproute2 libabsl-dev
  libbenchmark-dev libcivetweb-dev libclang-rt-19-dev libcli11-dev libfmt-dev
  libgmock-dev libgrpc++-dev libgrpc-dev libgtest-dev libpcre2-dev
  libprotobuf-dev libspdlog-dev libssl-dev libucx-dev mold nftables
  ninja-build nlohmann-json3-dev pkg-config prometheus-cpp-dev
  protobuf-compiler protobuf-compiler-grpc python3 python3-pip python3-venv
  unzip
)

installed() {
  [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "install-packages: needs Debian's apt-get; missing: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-packages: run as root, or install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
