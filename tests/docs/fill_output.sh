#!/usr/bin/env bash
# Rewrites what documents show behind "$ cusync ..." with what the program prints now: after a change
# of the virtual GPU's constants, say. The test Docs.ShowWhatTheProgramPrints compares them.
# usage: fill_output.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/../.."

for page in docs/*.md; do
  grep -q '^\$ cusync ' "$page" || continue
  awk -v program="$program" '
    /^\$ cusync / { print; fflush(); system(program substr($0, length("$ cusync") + 1)); skip = 1; next }
    /^```$/ { skip = 0 }
    !skip
  ' "$page" >"$page.new"
  mv "$page.new" "$page"
done
