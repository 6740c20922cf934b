// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/kernels/gemm_arguments.hpp> // gemm_arguments, gemm_tile, gelu, apply
#include <cusync/stage_ref.hpp>              // claimed_tile

#include <cstddef> // size_t
#include <vector>  // vector

namespace cusync {

struct host_gemm_arguments {
  gemm_arguments gemm; ///< Pointers to host memory.
  gemm_tile tile;      ///< That of the kernel whose twin this is.
};

/// How `gemm_host` gets at the matrices of a tile: by element, unchecked. `sim_gemm_views` checks.
struct plain_gemm_views {
  template <class Stage> auto a(const Stage&, tile_coord, const gemm_arguments& args) const {
    return [a = args.a, k = std::size_t{args.k}](u32 row, u32 col) { return a[row * k + col]; };
  }
  auto c(tile_coord, const gemm_arguments& args) const {
    return [c = args.c, n = std::size_t{args.n}](u32 row, u32 col) -> half& {
      return c[row * n + col];
    };
  }
};

namespace detail {

/// One tile's products, in float as on the GPU. Rows and columns beyond the matrices are left out.
class host_gemm_tile {
public:
  host_gemm_tile(const gemm_arguments& args, gemm_tile shape, tile_coord tile)
      : args_(args), shape_(shape), row_(tile.row * shape.m), col_(tile.col * shape.n),
        rows_(min(shape.m, args.m - row_)), cols_(min(shape.n, args.n - col_)),
        a_(std::size_t{rows_} * shape.k), b_(std::size_t{cols_} * shape.k),
        sums_(std::size_t{rows_} * cols_) {}

  /// Adds the products of one k-tile.
  template <class A> void add(u32 step, const A& a) {
    const u32 k_begin = step * shape_.k;
    const u32 depth = min(shape_.k, args_.k - k_begin);
    for (u32 i = 0; i < rows_; ++i)
      for (u32 k = 0; k < depth; ++k)
        a_[std::size_t{i} * shape_.k + k] = static_cast<float>(a(row_ + i, k_begin + k));
    for (u32 k = 0; k < depth; ++k) {
      const half* from = args_.b + std::size_t{k_begin + k} * args_.n + col_;
      for (u32 j = 0; j < cols_; ++j) b_[std::size_t{k} * cols_ + j] = static_cast<float>(from[j]);
    }
    for (u32 i = 0; i < rows_; ++i)
      for (u32 k = 0; k < depth; ++k)
        add_row(i, a_[std::size_t{i} * shape_.k + k], &b_[std::size_t{k} * cols_]);
  }

  template <class C> void store(C& c) const {
    for (u32 i = 0; i < rows_; ++i)
      for (u32 j = 0; j < cols_; ++j)
        c(row_ + i, col_ + j) = half(apply(args_.then, sums_[std::size_t{i} * cols_ + j]));
  }

private:
  void add_row(u32 row, float scale, const float* b) {
    float* sums = &sums_[std::size_t{row} * cols_];
    for (u32 j = 0; j < cols_; ++j) sums[j] += scale * b[j];
  }

  gemm_arguments args_;
  gemm_tile shape_;
  u32 row_, col_, rows_, cols_;
  std::vector<float> a_, b_, sums_;
};

} // namespace detail

/// The host's twin of the kernel `gemm`: the body of a block of the virtual GPU. Waits for the same
/// operands in the same steps, and computes the same in float, the sums in another order.
template <class Stage, class Views = plain_gemm_views>
void gemm_host(const host_gemm_arguments& args, Stage stage, const Views& views = {}) {
  const u32 steps = ceil_div(args.gemm.k, args.tile.k);
  stage.start();
  while (const claimed_tile tile = stage.tile()) {
    detail::host_gemm_tile sums(args.gemm, args.tile, *tile);
    const auto a = views.a(stage, *tile, args.gemm);
    u32 next_a = 0, next_b = 0;
    for (u32 step = 0; step < steps; ++step) {
      if (step == next_a) next_a = stage.wait_ahead(gemm_a, *tile, step);
      if (step == next_b) next_b = stage.wait_ahead(gemm_b, *tile, step);
      sums.add(step, a);
    }
    auto c = views.c(*tile, args.gemm);
    sums.store(c);
    stage.post(*tile);
  }
}

} // namespace cusync
