#!/usr/bin/env bash
# Field case 4: the small cases under compute-sanitizer and Nsight Compute, which serialise and slow
# kernels. Everything must end, stay correct and report nothing.
# (racecheck sees shared memory only: it proves nothing about semaphores.)
# usage: tools.sh GPU_TESTS [filter = FieldCase4.*:Diamond.Pdl]
set -uo pipefail
[ -x "${1-}" ] || { echo "usage: ${0##*/} GPU_TESTS [filter]; GPU_TESTS must be executable" >&2; exit 2; }
program=$1
filter=${2:-FieldCase4.*:Diamond.Pdl}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

try() { # name, command...
  local name=$1
  shift
  if ! command -v "$1" >/dev/null; then
    echo "SKIP $name: no $1 here"
    skipped=$((skipped + 1))
  elif timeout -s KILL 240 "$@" "$program" --gtest_filter="$filter" >"$log" 2>&1 </dev/null &&
    grep -q '^\[  PASSED  \]' "$log"; then
    echo "ok   $name"
    passed=$((passed + 1))
  else
    echo "FAIL $name"
    tail -n 30 "$log" | sed 's/^/     | /'
    failed=$((failed + 1))
  fi
}

for tool in memcheck synccheck racecheck; do
  try "compute-sanitizer $tool" compute-sanitizer --tool "$tool" --error-exitcode 9
done
try "ncu, kernel replay" ncu --clock-control none --replay-mode kernel
try "ncu, application replay" ncu --clock-control none --replay-mode application
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
