// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/kernels/gemm_arguments.hpp> // gemm_tile
#include <cusync/tile.hpp>                   // u32, detail::min

namespace cusync {

/// Whether a block's first weights are loaded ahead of its first wait: the paper's R.
enum class load_order : u32 { wait_first, weights_first };

/// A matrix of halves in shared memory, in chunks of 16 bytes. `ldmatrix` reads a column of eight
/// chunks at a time, `cp.async` writes eight neighbours of a row: swizzled, either touches each of the
/// eight 16-byte bank groups once, given a matrix that begins at a multiple of 128 bytes.
template <u32 Rows, u32 Cols> struct swizzled_matrix {
  static constexpr u32 chunks = Cols / 8; ///< A row.
  static constexpr u32 bytes = Rows * Cols * 2;
  static_assert(chunks == 4 || chunks % 8 == 0, "rows of 64 bytes, or of a multiple of 128");

  CUSYNC_HOST_DEVICE static constexpr u32 offset(u32 row, u32 chunk) {
    // Rows of 64 bytes: two share a line of 128, the pair counts as one row.
    const u32 swizzle = chunks == 4 ? row / 2 % 4 : row % 8;
    return (row * chunks + (chunk ^ swizzle)) * 16;
  }
};

/// How a block cuts a GEMM: tile, warps, pipeline, and which thread touches what. Pure index maths,
/// so that the host tests execute it with emulated warps.
///
/// Shared memory holds `Stages` pairs of an A tile and a B tile.
template <u32 TileM, u32 TileN, u32 TileK, u32 WarpsM, u32 WarpsN, u32 Stages, u32 BlocksPerSm,
          load_order Loads = load_order::weights_first>
struct gemm_config {
  static constexpr gemm_tile tile{TileM, TileN, TileK};
  static constexpr u32 stages = Stages;
  static constexpr u32 blocks_per_sm = BlocksPerSm; ///< What registers are limited for.
  static constexpr load_order loads = Loads;
  static constexpr u32 threads = WarpsM * WarpsN * 32;

  using a_matrix = swizzled_matrix<TileM, TileK>;
  using b_matrix = swizzled_matrix<TileK, TileN>;
  static constexpr u32 stage_bytes = a_matrix::bytes + b_matrix::bytes;
  static constexpr u32 shared_bytes = Stages * stage_bytes;

  // --- loads: a thread copies chunks of one column, some rows apart ------------------------------

  static constexpr u32 a_row_step = threads / a_matrix::chunks;
  static constexpr u32 b_row_step = threads / b_matrix::chunks;
  static constexpr u32 a_loads = TileM / a_row_step;
  static constexpr u32 b_loads = TileK / b_row_step;

  struct chunk_coord {
    u32 row;
    u32 chunk;
  };
  /// The first chunk that a thread copies; its others lie `a_row_step` rows further each.
  CUSYNC_HOST_DEVICE static constexpr chunk_coord a_load(u32 thread) {
    return {thread / a_matrix::chunks, thread % a_matrix::chunks};
  }
  CUSYNC_HOST_DEVICE static constexpr chunk_coord b_load(u32 thread) {
    return {thread / b_matrix::chunks, thread % b_matrix::chunks};
  }

  // --- fragments of mma.m16n8k16 -----------------------------------------------------------------

  static constexpr u32 warp_m = TileM / WarpsM; ///< Of the tile, one warp's part.
  static constexpr u32 warp_n = TileN / WarpsN;
  static constexpr u32 mmas_m = warp_m / 16;
  static constexpr u32 mmas_n = warp_n / 8;
  static constexpr u32 mmas_k = TileK / 16;

  CUSYNC_HOST_DEVICE static constexpr u32 first_row(u32 warp) { return warp / WarpsN * warp_m; }
  CUSYNC_HOST_DEVICE static constexpr u32 first_col(u32 warp) { return warp % WarpsN * warp_n; }

  /// The row of eight halves that a lane names to `ldmatrix.x4`, for 16 x 16 of A: matrices 0 and 1
  /// are the upper and lower rows of the left half, 2 and 3 those of the right, as `mma` wants them.
  CUSYNC_HOST_DEVICE static constexpr u32 a_fragment(u32 warp, u32 lane, u32 mma_m, u32 mma_k) {
    return a_matrix::offset(first_row(warp) + mma_m * 16 + lane % 16, mma_k * 2 + lane / 16);
  }
  /// The same for `ldmatrix.x4.trans` and 16 x 16 of B: matrices 0 and 1 are the two halves along K of
  /// the left eight columns, 2 and 3 those of the right: the fragments of two `mma`.
  CUSYNC_HOST_DEVICE static constexpr u32 b_fragment(u32 warp, u32 lane, u32 pair_n, u32 mma_k) {
    return b_matrix::offset(mma_k * 16 + lane % 16,
                            (first_col(warp) + pair_n * 16) / 8 + lane / 16);
  }

  // --- stores: a quad of lanes holds 32 columns of a row, and stores them eight a lane -----------

  static constexpr u32 groups_n = warp_n / 32;

  /// The first of the eight elements that a lane stores, inside the tile.
  CUSYNC_HOST_DEVICE static constexpr u32 store_row(u32 warp, u32 lane, u32 mma_m, u32 lower) {
    return first_row(warp) + mma_m * 16 + lower * 8 + lane / 4;
  }
  CUSYNC_HOST_DEVICE static constexpr u32 store_col(u32 warp, u32 lane, u32 group_n) {
    return first_col(warp) + group_n * 32 + lane % 4 * 8;
  }

  static_assert(TileM % WarpsM == 0 && warp_m % 16 == 0, "a warp's rows are a multiple of 16");
  static_assert(TileN % WarpsN == 0 && warp_n % 32 == 0, "a warp's columns are a multiple of 32");
  static_assert(TileK % 32 == 0, "two sets of fragments take turns");
  static_assert(Stages >= 2, "the loads of one stage run while another is multiplied");
  static_assert(a_row_step % 8 == 0 && TileM % a_row_step == 0,
                "one swizzle for all A of a thread");
  static_assert(b_row_step % 8 == 0 && TileK % b_row_step == 0,
                "one swizzle for all B of a thread");
};

/// The tiles that ship, tile M x N x K. A warp multiplies 64 x 64 where the tile allows it: the larger
/// its part, the fewer bytes of shared memory a product. 128 x 256 reads least of the L2, but fills an
/// SM alone; of the others two blocks share one, and one multiplies while the other begins, ends or
/// waits. The small ones spread small batches over more SMs.
template <load_order Loads = load_order::weights_first>
using gemm_128x256x32 = gemm_config<128, 256, 32, 2, 4, 4, 1, Loads>;
template <load_order Loads = load_order::weights_first>
using gemm_128x128x32 = gemm_config<128, 128, 32, 2, 2, 4, 2, Loads>;
template <load_order Loads = load_order::weights_first>
using gemm_64x128x64 = gemm_config<64, 128, 64, 2, 2, 4, 2, Loads>;
template <load_order Loads = load_order::weights_first>
using gemm_64x64x64 = gemm_config<64, 64, 64, 2, 2, 6, 2, Loads>;

} // namespace cusync
