#!/usr/bin/env bash
# Field case 36: two processes share the GPU while a third is killed again and again in the middle of
# its runs. The survivors stay correct and no wait gives up.
# usage: shared_gpu.sh GPU_TESTS
set -uo pipefail
[ -x "${1-}" ] || { echo "usage: ${0##*/} GPU_TESTS; it must be executable" >&2; exit 2; }
program=$1
filter=FieldCase36.LongRunBesideAnotherProcess
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for survivor in 1 2; do
  timeout -s KILL 120 "$program" --gtest_filter=$filter >"$folder/$survivor" 2>&1 </dev/null &
  eval "pid$survivor=$!"
done
for _ in 1 2 3 4; do
  timeout -s KILL 2 "$program" --gtest_filter=$filter >/dev/null 2>&1 </dev/null
done
failed=0
for survivor in 1 2; do
  pid=pid$survivor
  wait "${!pid}" || { failed=$((failed + 1)); tail -n 20 "$folder/$survivor"; }
done
echo "$((2 - failed)) passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
