#!/usr/bin/env bash
# Checks memory order in the PTX that nvcc makes of waits, posts and finish, for sm_80 and sm_90a, and
# that these checks find faults: each kernel of controls.cu must fail the one it is named after.
# Needs nvcc, no GPU. usage: check_ptx.sh [NVCC]
set -uo pipefail
cd "$(dirname "$0")"

nvcc=${1:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
include=../../include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

passed=0
failed=0
expect() { # WHAT COMMAND...
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED $1"
  fi
}
not() { ! "$@"; }

# --- the checks, of one kernel: $ptx, $kernel, $barrier, $load, $store -----------------------------

leads() { # FROM TO [WITHOUT]: some path does; see paths.awk
  local answer
  answer=$(awk -f paths.awk -v kernel="$kernel" -v from="$1" -v to="$2" -v without="${3-}" "$ptx") ||
    { echo "paths.awk cannot read $kernel" >&2 && kill $$; }
  [ "$answer" = yes ]
}
look='^ld\.acquire\.gpu'
other_look='^ld\.(relaxed|volatile)'
release='^red\.release\.gpu\.global\.add\.u32'

no_read_only_loads() { not leads entry '^ld\.global[^ ]*\.nc'; }
first_look_acquires() { leads entry "$look" && not leads entry "$other_look" "$look"; }
# What was read without an acquire says whether to give up (0 or not) and whether others still post
# (a sum); it is never compared with what a wait wants.
only_acquired_looks_decide() {
  awk -v kernel="$kernel" '
    /\.entry / { inside = index($0, ".entry " kernel "(") > 0 }
    !inside { next }
    $1 ~ /^ld\.(relaxed|volatile)/ { sub(/,/, "", $2); loaded[$2] = 1; next }
    $1 == "add.s32" || $1 ~ /^setp\.(eq|ne)\.s32$/ && $NF == "0;" { next }
    { for (r in loaded) if (index($0, r ",") || index($0, r ";")) bad = 1 }
    END { exit bad }' "$ptx"
}
barrier_behind_wait() { leads "$look" "$load" && not leads "$look" "$load" "$barrier"; }
loads_behind_wait() { not leads "$load" "$look"; }
barrier_before_post() { leads "$store" "$release" && not leads "$store" "$release" "$barrier"; }
post_releases() { leads "$store" "$release" && not leads "$store" '^red\.relaxed[^ ]*u32'; }
stores_before_post() { not leads "$release" "$store"; }
finish_waits_for_stage_ahead() { leads "$store" '^griddepcontrol\.wait'; }
start_triggers() { leads entry '^griddepcontrol\.launch_dependents' "$look"; }
no_other_barrier() { # a block barrier in what one warp executes would never return
  [ "$barrier" = '^bar\.sync' ] || not leads entry '^bar(rier)?\.(sync|cta|red|arrive)'
}
no_grid_dependency_control() { not grep -q griddepcontrol "$ptx"; }

of_every_kernel="no_read_only_loads barrier_before_post post_releases no_other_barrier"
of_consumers="first_look_acquires only_acquired_looks_decide barrier_behind_wait"
of_one_tile="loads_behind_wait stores_before_post"
of_sm_90="finish_waits_for_stage_ahead start_triggers"

set_kernel() { # NAME
  kernel=$1
  load='^ld\.global[^ ]*\.u16'
  store='^st\.global[^ ]*\.u16'
  barrier='^bar\.sync'
  case $kernel in
    *by_warp*) barrier='^bar\.warp\.sync' ;;
    *gemm*) load='^cp\.async\.c[ag]' store='^st\.global\.v4' ;;
  esac
}

checks_of_kernel() {
  echo "$of_every_kernel"
  case $kernel in producer*) ;; *) echo "$of_consumers" ;; esac
  case $kernel in looping* | *gemm*) ;; *) echo "$of_one_tile" ;; esac
  [ "$arch" = 80 ] || echo "$of_sm_90"
}

compile() { # SOURCE FLAGS...
  "$nvcc" -std=c++20 -I$include -Werror all-warnings -arch=sm_$arch "${@:2}" "$1" ||
    { echo "$nvcc cannot compile $1" && exit 1; }
}
kernels_in() { sed -n 's/.*\.entry \([A-Za-z0-9_]*\).*/\1/p' "$1"; }

for arch in 80 90a; do
  ptx=$work/kernels.$arch.ptx
  compile kernels.cu -ptx -o "$ptx"
  expect "kernels.cu has 8 kernels" [ "$(kernels_in "$ptx" | wc -l)" = 8 ]
  for name in $(kernels_in "$ptx"); do
    set_kernel "$name"
    for check in $(checks_of_kernel); do expect "$check in $kernel, sm_$arch" "$check"; done
  done
  [ $arch = 90a ] || expect "no_grid_dependency_control, sm_$arch" no_grid_dependency_control

  ptx=$work/controls.$arch.ptx
  compile controls.cu -ptx -o "$ptx"
  for name in $(kernels_in "$ptx"); do
    set_kernel "$name"
    check=${name#fails_}
    check=${check%%__*}
    case " $of_sm_90 " in *" $check "*) [ $arch = 90a ] || continue ;; esac
    expect "that $check fails in $kernel, sm_$arch" not "$check"
  done
done

# --- the machine code: the assembler turns no load into a read-only one ----------------------------

read_only_loads() { "$cuobjdump" -sass "$1" 2>/dev/null | grep -cE 'LDG[^ ]*\.CONSTANT'; }
arch=90a
if cuobjdump=$(command -v "${nvcc%nvcc}cuobjdump" cuobjdump | head -1) && [ -n "$cuobjdump" ]; then
  for source in kernels controls; do compile $source.cu -cubin -o "$work/$source.cubin"; done
  expect "no LDG.CONSTANT in kernels.cu" [ "$(read_only_loads "$work/kernels.cubin")" = 0 ]
  expect "that LDG.CONSTANT is found in controls.cu" [ "$(read_only_loads "$work/controls.cubin")" = 2 ]
else
  echo "ptx: no cuobjdump here, machine code not looked at"
fi

# --- the sources: no asm that the compiler may move loads across ------------------------------------

asm_without_clobber() { # FILE...: every `asm volatile` statement without "memory"
  awk '/asm volatile/ { statement = ""; open = 1 }
       open { statement = statement $0 }
       open && /;[ \t\\]*$/ && !/\\n\\t"$/ { if (statement !~ /"memory"/) print FILENAME ": " statement; open = 0 }' "$@"
}
expect "a memory clobber in every asm volatile" [ -z "$(asm_without_clobber $include/cusync/device/*.cuh)" ]
printf 'asm volatile("bar.sync 0;");\n' >"$work/bare.cuh"
expect "that a missing memory clobber is found" [ -n "$(asm_without_clobber "$work/bare.cuh")" ]

echo "ptx: $passed passed, $failed failed"
[ $failed -eq 0 ]
