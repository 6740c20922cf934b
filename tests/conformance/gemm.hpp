// SPDX-License-Identifier: MIT
#pragma once

#include "operands.hpp"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/sim/checked_view.hpp>
#include <cusync/sim/cusync.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace cusync::test {

/// A row-major matrix; several planes where a producer splits K.
struct matrix {
  element_extent extent;
  element_extent tile; ///< Of the stage that writes it.
  u32 slices = 1;
  std::vector<double> data;

  matrix(element_extent of, element_extent in_tiles_of, u32 planes = 1)
      : extent(of), tile(in_tiles_of), slices(planes),
        data(std::size_t{of.rows} * of.cols * planes) {
    poison();
  }
  void poison() { std::fill(data.begin(), data.end(), std::numeric_limits<double>::quiet_NaN()); }
  /// Small integers, so that sums are exact.
  void fill(u32 seed) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<double>((i * 7 + seed * 13) % 5) - 2;
  }
  double* plane(u32 slice) { return data.data() + std::size_t{slice} * extent.rows * extent.cols; }
  const double* plane(u32 slice) const {
    return data.data() + std::size_t{slice} * extent.rows * extent.cols;
  }
  /// The sum over the slices.
  double at(u32 row, u32 col) const {
    double sum = 0;
    for (u32 slice = 0; slice < slices; ++slice)
      sum += plane(slice)[std::size_t{row} * extent.cols + col];
    return sum;
  }
};

/// C = A B + R: what a GEMM kernel does, tile by tile, with the index arithmetic of a GEMM.
struct gemm {
  const matrix* a;
  const matrix* b;
  const matrix* r; ///< Null: none.
  matrix* c;
  u32 step; ///< K columns a step.

  u32 k() const { return a->extent.cols; }
  u32 steps() const { return ceil_div(k(), step); }

  row_dependence reads_a() const {
    return {.matrix = a->extent,
            .producer_tile = a->tile,
            .consumer_rows = c->tile.rows,
            .step_cols = step,
            .consumer_cols = ceil_div(c->extent.cols, c->tile.cols),
            .producer_slices = a->slices,
            .consumer_slices = c->slices};
  }
  tile_dependence reads_r() const {
    return {.matrix = r->extent,
            .producer_tile = r->tile,
            .consumer_tile = c->tile,
            .producer_slices = r->slices,
            .consumer_slices = c->slices};
  }
  tile_extent grid() const { return grid_of(c->extent, c->tile, c->slices); }

  matrix reference() const {
    matrix result(c->extent, c->tile);
    for (u32 row = 0; row < c->extent.rows; ++row)
      for (u32 col = 0; col < c->extent.cols; ++col) {
        double sum = r == nullptr ? 0 : r->at(row, col);
        for (u32 i = 0; i < k(); ++i) sum += a->at(row, i) * b->at(i, col);
        result.plane(0)[std::size_t{row} * c->extent.cols + col] = sum;
      }
    return result;
  }
};

/// Reads a matrix with all its slices as operand `Operand` of one tile.
template <class Stage, int Operand> class operand_reader {
public:
  operand_reader(const Stage& stage, operand<Operand> which, tile_coord tile, const matrix& from) {
    for (u32 slice = 0; slice < from.slices; ++slice)
      planes_.emplace_back(stage, which, tile, from.plane(slice), from.extent, from.tile);
  }
  double operator()(u32 row, u32 col) const {
    double sum = 0;
    for (const auto& plane : planes_) sum += plane(row, col);
    return sum;
  }

private:
  std::vector<sim::checked_input<double, Stage, Operand>> planes_;
};

struct gemm_kernel {
  template <class Stage> void operator()(const gemm& g, Stage stage) const {
    stage.start();
    while (auto tile = stage.tile()) {
      compute(g, *tile, stage);
      stage.post(*tile);
    }
  }

  template <class Stage> static void compute(const gemm& g, tile_coord tile, Stage& stage) {
    const u32 row = tile.row * g.c->tile.rows,
              rows = std::min(g.c->tile.rows, g.c->extent.rows - row);
    const u32 col = tile.col * g.c->tile.cols,
              cols = std::min(g.c->tile.cols, g.c->extent.cols - col);
    std::vector<double> sums(std::size_t{rows} * cols, 0);
    const operand_reader<Stage, 0> a(stage, A, tile, *g.a);
    const step_range steps = share_of(g.steps(), tile.slice, g.c->slices);
    for (u32 step = steps.begin; step < steps.end; ++step) {
      stage.wait(A, tile, step);
      for (u32 i = step * g.step; i < std::min(g.k(), (step + 1) * g.step); ++i)
        for (u32 y = 0; y < rows; ++y)
          for (u32 x = 0; x < cols; ++x) sums[y * cols + x] += a(row + y, i) * g.b->at(i, col + x);
    }
    if (g.r != nullptr && tile.slice == 0) {
      stage.wait_all(R, tile);
      const operand_reader<Stage, 1> r(stage, R, tile, *g.r);
      for (u32 y = 0; y < rows; ++y)
        for (u32 x = 0; x < cols; ++x) sums[y * cols + x] += r(row + y, col + x);
    }
    sim::checked_output<double> c(tile, g.c->plane(tile.slice), g.c->extent, g.c->tile);
    for (u32 y = 0; y < rows; ++y)
      for (u32 x = 0; x < cols; ++x) c(row + y, col + x) = sums[y * cols + x];
  }
};

} // namespace cusync::test
