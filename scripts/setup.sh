#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing; does nothing, quickly, when none is.
# usage: setup.sh [build] [clang] [sanitize] [lint]
set -euo pipefail

# command:package where the command will do, package alone for libraries.
build="g++:g++ cmake:cmake ninja:ninja-build libboost-context-dev libcli11-dev libfmt-dev
  nlohmann-json3-dev rapidjson-dev libsqlite3-dev zlib1g-dev libgtest-dev libgmock-dev"
clang="clang++:clang"
sanitize="$clang llvm-symbolizer:llvm libclang-rt-dev"
# clang-format is pinned, since each version formats a little differently.
lint="clang-format-14:clang-format-14 clang-tidy:clang-tidy"

wanted=
for set in "$@"; do
  case $set in
    build | clang | sanitize | lint) wanted+=" ${!set}" ;;
    *) echo "usage: ${0##*/} [build] [clang] [sanitize] [lint]" >&2 && exit 2 ;;
  esac
done

packages=()
for item in $wanted; do
  command -v "${item%%:*}" >/dev/null 2>&1 || packages+=("${item##*:}")
done
[ ${#packages[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here; make sure of the equivalents of: ${packages[*]}" >&2
  exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^ii *//p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: neither root nor sudo here; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
  [ -t 0 ] || as_root=(sudo -n)
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    echo "setup: apt-get $1 failed" >&2
    exit 1
  }
}
apt update
apt install -y --no-install-recommends "${missing[@]}"
