// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/errors.hpp>                    // invalid_argument
#include <cusync/kernels/half.hpp>              // half
#include <cusync/tile.hpp>                      // operand, tile_extent, element_extent, grid_of

#include <cmath>   // exp
#include <cstdint> // uintptr_t
#include <string>  // string, to_string

namespace cusync {

/// The operands of a GEMM that a stage may wait for.
inline constexpr operand<0> gemm_a;
inline constexpr operand<1> gemm_b;

/// What is done to an element of the product before it is rounded to half.
enum class activation : u32 { none, gelu };

/// C = activation(A B), all row-major and without gaps: A is M x K, B is K x N, C is M x N. Pointers
/// are to the caller's memory: the device's for a kernel, the host's for the reference.
///
/// A and B may be written by an earlier stage: neither is `__restrict__`.
struct gemm_arguments {
  const half* a = nullptr;
  const half* b = nullptr;
  half* c = nullptr;
  u32 m = 0;
  u32 n = 0;
  u32 k = 0;
  activation then = activation::none;
};

/// What one block computes, and how far it goes in a step.
struct gemm_tile {
  u32 m = 128;
  u32 n = 128;
  u32 k = 32;
};

/// The grid of a GEMM's stage. It has no slices: a block sums over all of K.
constexpr tile_extent gemm_grid(u32 m, u32 n, gemm_tile tile) {
  return grid_of({m, n}, {tile.m, tile.n});
}

/// What a GEMM reads through A of the stage that writes it in tiles of `producer_tile` elements. Its
/// steps are the kernel's k-tiles: declare the dependence with this, so that they stay so.
constexpr row_dependence gemm_reads(u32 m, u32 n, u32 k, gemm_tile tile,
                                    element_extent producer_tile) {
  return {{m, k}, producer_tile, tile.m, tile.k, ceil_div(n, tile.n)};
}

/// Throws `invalid_argument` where the kernel cannot work with the shape or the pointers: it moves
/// eight elements, 16 aligned bytes, at a time. M, N and K may be 0; K = 0 gives activation(0).
inline void require_valid(const gemm_arguments& args, gemm_tile tile) {
  const auto refuse_extent = [](const char* name, u32 extent) {
    if (extent % 8 != 0)
      throw invalid_argument("gemm: " + std::string(name) + " is " + std::to_string(extent) +
                             "; it must be a multiple of 8 (16-byte accesses), pad with zeros to " +
                             std::to_string((u64{extent} + 7) / 8 * 8));
  };
  const auto refuse_pointer = [](const char* name, const half* pointer) {
    const auto misaligned = reinterpret_cast<std::uintptr_t>(pointer) % 16;
    if (misaligned != 0)
      throw invalid_argument("gemm: " + std::string(name) + " lies " + std::to_string(misaligned) +
                             " bytes behind a 16-byte boundary; move it there (cudaMalloc aligns)");
  };
  refuse_extent("N", args.n);
  refuse_extent("K", args.k);
  refuse_pointer("A", args.a);
  refuse_pointer("B", args.b);
  refuse_pointer("C", args.c);
  require_countable(gemm_grid(args.m, args.n, tile), "gemm: grid");
}

/// GPT's GeLU, the tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which equals
/// x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))). Up to 5e-4 from the erf form.
template <class Real> Real gelu(Real x) {
  constexpr Real linear = Real(-1.5957691216057308); // -2 sqrt(2/pi)
  constexpr Real cubic = Real(-0.07135481627260025); // linear * 0.044715
  return x / (Real(1) + std::exp(x * (linear + cubic * x * x)));
}

template <class Real> Real apply(activation then, Real x) {
  return then == activation::gelu ? gelu(x) : x;
}

} // namespace cusync
