// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u32, u64

namespace cusync::detail {

/// 16 bytes from global to shared memory, or as many zeros where `inside` is false: the source is then
/// not touched, and its address may lie outside any allocation.
///
/// Goes by L2 alone (`.cg`), where all SMs' writes meet, and in the generic proxy: behind an acquire
/// and a barrier it reads like an ordinary load, without the proxy fence that TMA needs.
CUSYNC_DEVICE void copy_chunk(u32 to, u64 from, bool inside) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
/// Closes a group of this thread's copies.
CUSYNC_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Returns once all but the newest `Pending` groups of this thread have arrived. Others see them
/// after a barrier.
template <u32 Pending> CUSYNC_DEVICE void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// Four 8 x 8 matrices; lanes 8 i to 8 i + 7 name the rows of matrix i. A lane gets two neighbours of
/// row lane / 4 of each.
CUSYNC_DEVICE void load_matrices(u32 (&out)[4], u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
}
/// The same, each matrix transposed.
CUSYNC_DEVICE void load_matrices_transposed(u32 (&out)[4], u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
}

/// C += A B for 16 x 8 x 16 by one warp.
CUSYNC_DEVICE void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b_upper, u32 b_lower) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));
}

/// Two floats, rounded to nearest even; the first in the lower half.
CUSYNC_DEVICE u32 to_halves(float first, float second) {
  u32 both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}

/// `gelu` with the hardware's exponential and reciprocal: relative error 2^-20, far below half's 2^-11.
CUSYNC_DEVICE float fast_gelu(float x) {
  constexpr float linear = -2.302208198f; // those of `gelu`, times log2(e)
  constexpr float cubic = -0.1029432396f;
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * (linear + cubic * x * x)));
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + power));
  return x * inverse;
}

/// Four lanes hold a row of a 4 x 4 matrix each; afterwards a column each. By all lanes of a warp.
CUSYNC_DEVICE void transpose_in_quad(u32 (&row)[4], u32 lane) {
  const auto exchange = [&](u32& lower, u32& upper, u32 distance) {
    const bool keeps_upper = (lane & distance) != 0;
    const u32 received = __shfl_xor_sync(0xffffffffu, keeps_upper ? lower : upper, distance);
    (keeps_upper ? lower : upper) = received;
  };
  exchange(row[0], row[1], 1);
  exchange(row[2], row[3], 1);
  exchange(row[0], row[2], 2);
  exchange(row[1], row[3], 2);
}

} // namespace cusync::detail
