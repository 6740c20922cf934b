// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/kernels/gemm_arguments.hpp>    // gemm_arguments, activation, gemm_a, gemm_b
#include <cusync/kernels/gemm_config.hpp>       // gemm_config, load_order
#include <cusync/kernels/mma.cuh>               // copy_chunk, load_matrices, multiply_add
#include <cusync/order/row_major.hpp>           // RowMajor
#include <cusync/stage_ref.hpp>                 // no_step

#include <type_traits> // bool_constant

namespace cusync {

/// Stands in for a stage where there is none: one tile a block, nothing to wait for. What `gemm`
/// costs with it is what it costs without any stage code. Launch a one-dimensional grid.
template <tile_order Order = RowMajor> struct plain_stage {
  tile_extent grid;
  Order order{};

  CUSYNC_DEVICE void start() {}
  template <class Body> CUSYNC_DEVICE void for_each_tile(const Body& body) {
    if (blockIdx.x < grid.count()) body(order.tile_at(blockIdx.x, grid));
  }
  CUSYNC_DEVICE void post(tile_coord) {}
  template <int Operand> static constexpr bool declares(operand<Operand>) { return false; }
};

namespace detail {

/// The waits of a tile on one operand, each made once.
template <class Stage, int Operand> class operand_waits {
public:
  static constexpr bool declared = Stage::declares(operand<Operand>{});

  CUSYNC_DEVICE void pass(Stage& stage, tile_coord tile, u32 step) {
    if constexpr (declared)
      if (step == next_) next_ = stage.wait_ahead(operand<Operand>{}, tile, step);
  }
  /// The step that asks next.
  CUSYNC_DEVICE u32 next() const { return declared ? next_ : no_step; }

private:
  u32 next_ = 0;
};

/// A thread's part of a tile's loads. Each call copies the next k-tile; 64-bit addresses throughout.
template <class Config> class gemm_loads {
public:
  CUSYNC_DEVICE gemm_loads(const gemm_arguments& args, tile_coord tile, u32 shared)
      : k_(args.k), a_pitch_(u64{args.k} * 2), b_pitch_(u64{args.n} * 2) {
    const auto a = Config::a_load(threadIdx.x);
    const auto b = Config::b_load(threadIdx.x);
    const u32 row = tile.row * Config::tile.m;
    const u32 col = tile.col * Config::tile.n;
    a_ = __cvta_generic_to_global(args.a) + (u64{row} + a.row) * a_pitch_ + a.chunk * 16;
    b_ = __cvta_generic_to_global(args.b) + b.row * b_pitch_ + (u64{col} + b.chunk * 8) * 2;
    a_to_ = shared + Config::a_matrix::offset(a.row, a.chunk);
    b_to_ = shared + Config::a_matrix::bytes + Config::b_matrix::offset(b.row, b.chunk);
    a_rows_ = static_cast<int>(min(args.m - row, Config::tile.m)) - static_cast<int>(a.row);
    b_inside_ = b.chunk * 8 < args.n - col;
  }

  /// Rows past M and columns past K become zeros.
  CUSYNC_DEVICE void load_a(u32 step, u32 slot) {
    const bool inside = Config::a_load(threadIdx.x).chunk * 8 < k_ - step * Config::tile.k;
    u64 from = a_;
#pragma unroll
    for (u32 i = 0; i < Config::a_loads; ++i) {
      const u32 row = i * Config::a_row_step;
      copy_chunk(a_to_ + slot * Config::stage_bytes + row * Config::a_matrix::chunks * 16, from,
                 inside && static_cast<int>(row) < a_rows_);
      from += Config::a_row_step * a_pitch_;
    }
    a_ += Config::tile.k * 2;
  }

  /// Rows past K and columns past N become zeros.
  CUSYNC_DEVICE void load_b(u32 step, u32 slot) {
    const u32 rows = b_inside_ ? k_ - step * Config::tile.k : 0;
#pragma unroll
    for (u32 i = 0; i < Config::b_loads; ++i) {
      const u32 row = i * Config::b_row_step;
      copy_chunk(b_to_ + slot * Config::stage_bytes + row * Config::b_matrix::chunks * 16, b_,
                 Config::b_load(threadIdx.x).row + row < rows);
      b_ += Config::b_row_step * b_pitch_; // the last one leads to the next k-tile
    }
  }

private:
  u32 k_;
  u64 a_pitch_, b_pitch_; ///< Bytes a row.
  u64 a_, b_;             ///< Where the next copies come from.
  u32 a_to_, b_to_;       ///< Where they go in slot 0 of the pipeline.
  int a_rows_;            ///< Rows of A from this thread's first one to the tile's end.
  bool b_inside_;
};

/// The neighbours of a slot in the ring of the pipeline.
template <class Config> CUSYNC_DEVICE u32 next(u32 slot) {
  return slot + 1 == Config::stages ? 0 : slot + 1;
}
template <class Config> CUSYNC_DEVICE u32 previous(u32 slot) {
  return slot == 0 ? Config::stages - 1 : slot - 1;
}

template <class Config> struct gemm_fragments {
  u32 a[Config::mmas_m][4];
  u32 b[Config::mmas_n / 2][4];

  CUSYNC_DEVICE void load(u32 shared, u32 mma_k) {
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 i = 0; i < Config::mmas_m; ++i)
      load_matrices(a[i], shared + Config::a_fragment(warp, lane, i, mma_k));
#pragma unroll
    for (u32 i = 0; i < Config::mmas_n / 2; ++i)
      load_matrices_transposed(b[i], shared + Config::a_matrix::bytes +
                                         Config::b_fragment(warp, lane, i, mma_k));
  }
};

template <class Config> struct gemm_sums {
  float c[Config::mmas_m][Config::mmas_n][4] = {};

  CUSYNC_DEVICE void add(const gemm_fragments<Config>& part) {
#pragma unroll
    for (u32 i = 0; i < Config::mmas_m; ++i)
#pragma unroll
      for (u32 j = 0; j < Config::mmas_n; ++j)
        multiply_add(c[i][j], part.a[i], part.b[j / 2][j % 2 * 2], part.b[j / 2][j % 2 * 2 + 1]);
  }

  CUSYNC_DEVICE void apply_gelu() {
#pragma unroll
    for (u32 i = 0; i < Config::mmas_m; ++i)
#pragma unroll
      for (u32 j = 0; j < Config::mmas_n; ++j)
#pragma unroll
        for (float& x : c[i][j]) x = fast_gelu(x);
  }

  CUSYNC_DEVICE void store(const gemm_arguments& args, tile_coord tile) const {
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 first_row = tile.row * Config::tile.m;
    const u32 first_col = tile.col * Config::tile.n;
#pragma unroll
    for (u32 i = 0; i < Config::mmas_m; ++i)
#pragma unroll
      for (u32 lower = 0; lower < 2; ++lower)
#pragma unroll
        for (u32 group = 0; group < Config::groups_n; ++group) {
          u32 part[4];
#pragma unroll
          for (u32 j = 0; j < 4; ++j) {
            const float* pair = c[i][group * 4 + j] + lower * 2;
            part[j] = to_halves(pair[0], pair[1]);
          }
          transpose_in_quad(part, lane);
          const u32 row = Config::store_row(warp, lane, i, lower);
          const u32 col = Config::store_col(warp, lane, group);
          if (row < args.m - first_row && col < args.n - first_col)
            *reinterpret_cast<uint4*>(args.c + (u64{first_row} + row) * args.n + first_col + col) =
                make_uint4(part[0], part[1], part[2], part[3]);
        }
  }
};

} // namespace detail

/// C = activation(A B) by the blocks of one stage; `Config` is a `gemm_config`. Launch
/// `Config::threads` threads with `Config::shared_bytes` of dynamic shared memory.
///
/// Waits for the k-tiles of A and B right before they are loaded (`gemm_reads` declares those of A).
/// Loads run `Config::stages` - 1 k-tiles ahead of the products, within one tile.
template <class Config, class Stage>
__global__ void __launch_bounds__(Config::threads, Config::blocks_per_sm)
    gemm(gemm_arguments args, Stage stage) {
  constexpr u32 ahead = Config::stages - 1;
  constexpr bool weights_first = Config::loads == load_order::weights_first;
  constexpr u32 a_turn = Config::mmas_k > 2 ? 1 : 0;
  // Aligned as `swizzled_matrix` assumes; static shared memory, such as a stage's, lies before it.
  extern __shared__ __align__(128) uint4 gemm_shared[];
  const u32 shared = static_cast<u32>(__cvta_generic_to_shared(gemm_shared));
  const u32 steps = ceil_div(args.k, Config::tile.k);

  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    detail::gemm_loads<Config> loads(args, tile, shared);
    detail::operand_waits<Stage, 0> a_waits;
    detail::operand_waits<Stage, 1> b_waits;

    // One group of copies a step, empty past the last: `await_copies` counts groups. Weights that go
    // ahead belong to the first group.
#pragma unroll 1
    for (u32 step = 0; weights_first && step < detail::min(ahead, steps); ++step) {
      b_waits.pass(stage, tile, step);
      loads.load_b(step, step);
    }
#pragma unroll 1 // one copy of the wait's code
    for (u32 step = 0; step < ahead; ++step) {
      if (step < steps) {
        a_waits.pass(stage, tile, step);
        loads.load_a(step, step);
        if (!weights_first) {
          b_waits.pass(stage, tile, step);
          loads.load_b(step, step);
        }
      }
      detail::commit_copies();
    }

    detail::gemm_sums<Config> sums;
    detail::gemm_fragments<Config> fragments[2];
    u32 slot = 0;
    detail::await_copies<ahead - 1>();
    __syncthreads();
    if (steps != 0) fragments[0].load(shared, 0);

    u32 step = 0;
    const auto multiply = [&]<bool Loading>(std::bool_constant<Loading>) {
#pragma unroll
      for (u32 k = 0; k < Config::mmas_k; ++k) {
        const bool last = k + 1 == Config::mmas_k;
        if (last) {
          // Behind this the next k-tile is there, and no warp reads this one any more: its slot may
          // be written, in the next iteration or for the next tile.
          detail::await_copies<ahead - 1>();
          __syncthreads();
          slot = detail::next<Config>(slot);
        }
        if (!last || Loading || step + 1 < steps)
          fragments[(k + 1) % 2].load(shared + slot * Config::stage_bytes,
                                      (k + 1) % Config::mmas_k);
        // Into the slot of the k-tile before this one; spread out, where there is room.
        if (k == 0 && Loading) loads.load_b(step + ahead, detail::previous<Config>(slot));
        if (k == a_turn && Loading) loads.load_a(step + ahead, detail::previous<Config>(slot));
        if (k == a_turn) detail::commit_copies();
        sums.add(fragments[k % 2]);
      }
    };
    do { // up to the next wait
      b_waits.pass(stage, tile, step + ahead);
      a_waits.pass(stage, tile, step + ahead);
      const u32 until = detail::min(steps, detail::min(a_waits.next(), b_waits.next()));
#pragma unroll 1 // the loop of a GEMM without stages: no branch, so that copies go out between products
      for (; step + ahead < until; ++step) multiply(std::true_type{});
    } while ((a_waits.declared || b_waits.declared) && step + ahead < steps);
#pragma unroll 1
    for (; step < steps; ++step) multiply(std::false_type{});
    if (args.then == activation::gelu) sums.apply_gelu();
    sums.store(args, tile);
    stage.post(tile);
  });
}

} // namespace cusync
