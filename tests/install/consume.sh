#!/usr/bin/env bash
# usage: consume.sh find_package|fetch_content SOURCE_DIR BUILD_DIR [cmake options]
set -euo pipefail

how=$1 source_dir=$2 build_dir=$3
shift 3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $how in
  find_package)
    cmake --install "$build_dir" --prefix "$work/prefix" >/dev/null
    where=-DCMAKE_PREFIX_PATH=$work/prefix
    ;;
  fetch_content)
    where=-DCUSYNC_SOURCE_DIR=$source_dir
    ;;
esac

cmake -G Ninja -S "$source_dir/tests/install/consumer" -B "$work/build" "$where" "$@"
cmake --build "$work/build"
for program in "$work"/build/use_*; do
  [ -x "$program" ] && [ -f "$program" ] && echo "running ${program##*/}" && "$program"
done

# A part of another project brings neither its tests nor its programs along.
if [ -e "$work/build/cusync" ] || [ -n "$(find "$work/build" -name '*_tests')" ]; then
  echo "cuSync built its own programs inside of another project" >&2
  exit 1
fi
