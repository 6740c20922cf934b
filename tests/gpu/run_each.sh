#!/usr/bin/env bash
# Runs each case of a GoogleTest program in a process of its own, killed after a hard limit: a hung
# kernel costs one case, not the run. Needs only the program and bash.
# usage: run_each.sh PROGRAM [seconds a case = 60] [GoogleTest filter = *]
set -uo pipefail

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
  echo "usage: ${0##*/} PROGRAM [seconds a case] [filter]; PROGRAM must be executable" >&2
  exit 2
fi
program=$1
seconds=${2:-60}
filter=${3:-*}
[[ $program == */* ]] || program=./$program

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# "Suite." lines are followed by "  Case" lines; what follows "#" is a parameter's value.
listing=$(timeout -s KILL 60 "$program" --gtest_list_tests --gtest_filter="$filter") || {
  echo "$program cannot list its cases" >&2
  exit 2
}
mapfile -t cases < <(awk '
  { sub(/[ \t]*#.*/, "") }
  /^[^ ].*\.$/ { suite = $1 }
  /^  / && suite !~ /^DISABLED_/ && suite !~ /\/DISABLED_/ && $1 !~ /^DISABLED_/ { print suite $1 }
' <<<"$listing")

passed=0
failed=0
skipped=0
for name in "${cases[@]}"; do
  begin=${EPOCHREALTIME/[.,]/}
  status=0
  { # the outer redirection silences bash's own "Killed"
    timeout -s KILL "$seconds" "$program" --gtest_filter="$name" --gtest_color=no \
      >"$log" 2>&1 </dev/null
  } 2>/dev/null || status=$?
  took=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
  if [ $status -eq 0 ] && grep -q '^\[  SKIPPED \]' "$log"; then
    verdict=SKIP skipped=$((skipped + 1))
  elif [ $status -eq 0 ] && grep -q '^\[  PASSED  \] 1 test' "$log"; then
    verdict=ok passed=$((passed + 1))
  else
    verdict=FAIL failed=$((failed + 1))
  fi
  printf '%-4s %7d ms  %s\n' "$verdict" "$took" "$name"
  if [ "$verdict" = FAIL ]; then
    if [ $status -eq 137 ]; then echo "     killed after $seconds s, or out of memory"; fi
    tail -n 40 "$log" | sed 's/^/     | /'
  elif [ "$verdict" = SKIP ]; then
    sed -n '/^\[ RUN /,/^\[  SKIPPED \]/{//!p}' "$log" | sed 's/^/     | /'
  fi
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "${#cases[@]}" -gt 0 ]
