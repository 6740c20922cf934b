#!/usr/bin/env bash
# Checks the sources with clang-format, and the host code with clang-tidy.
# usage: lint.sh BUILD_DIR (configured, for its compile_commands.json) | lint.sh --fix
set -euo pipefail
cd "$(dirname "$0")/.."

formatted() { # all own sources, in those folders that exist
  for folder in include tools examples tests bench; do
    if [ -d "$folder" ]; then
      find "$folder" -type f -regex '.*\.\(hpp\|cuh\|cpp\|cu\)' -print0
    fi
  done | sort -z
}

if [ "${1-}" = --fix ]; then
  formatted | xargs -0 clang-format-14 -i
  exit
fi
build_dir=$1
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

echo "clang-format: $(formatted | tr -cd '\0' | wc -c) files"
failed=0
formatted | xargs -0 clang-format-14 --dry-run -Werror || failed=1

# The compiler's own warnings are left to g++ and clang++ in `make test`.
tidy() { # tidy [options] FILE...
  clang-tidy -p "$build_dir" --quiet --extra-arg=-Wno-everything "$@" \
    2> >(grep -v '^[0-9]* warnings\? generated\.$' >&2)
}
export -f tidy
export build_dir

sources() {
  for folder in tools/cusync examples; do find "$folder" -name '*.cpp' -print0; done | sort -z
}
echo "clang-tidy: all headers and $(sources | tr -cd '\0' | wc -c) files"
tidy --checks='clang-analyzer-*' "$build_dir/tests/headers/link_twice_a.cpp" || failed=1
sources | xargs -0 -P "$jobs" -n 1 bash -c 'tidy "$1"' tidy || failed=1
exit $failed
