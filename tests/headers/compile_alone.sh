#!/usr/bin/env bash
# Compiles every *.hpp under INCLUDE_DIR alone, twice included, warnings being errors.
# usage: compile_alone.sh COMPILER INCLUDE_DIR
set -euo pipefail

compiler=$1
include_dir=$2

if ! command -v "$compiler" >/dev/null; then
  echo "$compiler is missing; scripts/setup.sh build clang installs it" >&2
  exit 1
fi

count=0
failed=0
while IFS= read -r header; do
  count=$((count + 1))
  printf '#include <%s>\n#include <%s>\n' "$header" "$header" |
    "$compiler" -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror -I "$include_dir" \
      -x c++ -fsyntax-only - || { echo "FAILED $header" && failed=$((failed + 1)); }
done < <(cd "$include_dir" && find . -name '*.hpp' -printf '%P\n' | sort)

echo "$compiler: $count headers, $failed failed"
[ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
