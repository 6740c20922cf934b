// SPDX-License-Identifier: MIT
#pragma once

#include "any_order.hpp"
#include "operands.hpp"

#include <cusync/coverage.hpp>
#include <cusync/sim/checked_view.hpp>
#include <cusync/sim/cusync.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace cusync::test {

inline constexpr double poison = std::numeric_limits<double>::quiet_NaN();

/// What element (row, col) of slice `slice` holds in a run: small integers, so that sums are exact,
/// and others in each run, so that what an earlier run left behind shows.
inline double element(u32 row, u32 col, u32 slice, u32 run) {
  return static_cast<double>((row * 31 + col * 17 + slice * 7 + run * 101) % 1009 + 1);
}

/// Where `tile` stands in an array with an entry a tile of `grid`.
inline std::size_t flat(tile_coord tile, tile_extent grid) {
  return (std::size_t{tile.row} * grid.cols + tile.col) * grid.slices + tile.slice;
}

/// A matrix between two stages, and what a consumer tile reads of it. Each slice of the producer has
/// a matrix of its own.
template <class Policy, class Dependence> struct pair_case {
  Policy policy;
  Dependence dependence;
  element_extent matrix;
  element_extent producer_tile;

  std::size_t plane() const { return std::size_t{matrix.rows} * matrix.cols; }

  /// Calls `visit(row, col)` for each element of one producer tile.
  template <class Visit> void for_each_element(tile_coord tile, Visit visit) const {
    const u32 row_end = std::min(matrix.rows, (tile.row + 1) * producer_tile.rows);
    const u32 col_end = std::min(matrix.cols, (tile.col + 1) * producer_tile.cols);
    for (u32 row = tile.row * producer_tile.rows; row < row_end; ++row)
      for (u32 col = tile.col * producer_tile.cols; col < col_end; ++col) visit(row, col);
  }

  /// A consumer tile's result: a weighted sum over all that its dependence declares, step by step.
  template <class Wait, class Read> double consume(tile_coord tile, Wait wait, Read read) const {
    const step_range steps = dependence.steps(tile);
    double sum = 0;
    for (u32 step = steps.begin; step < steps.end; ++step) {
      wait(step);
      const double weight = 1 + (step + tile.col) % 3;
      cusync::detail::for_each_tile(
          dependence.reads(tile, step), dependence.producer().slices, [&](tile_coord from) {
            for_each_element(from,
                             [&](u32 row, u32 col) { sum += weight * read(row, col, from.slice); });
          });
    }
    return sum;
  }
};

template <class Case> struct producer_kernel {
  const Case* of;
  double* data;

  template <class Stage> void operator()(u32 run, Stage stage) const {
    stage.start();
    while (auto tile = stage.tile()) {
      const u32 slice = (*tile).slice;
      sim::checked_output<double> out(*tile, data + slice * of->plane(), of->matrix,
                                      of->producer_tile);
      of->for_each_element(
          *tile, [&](u32 row, u32 col) { out(row, col) = element(row, col, slice, run); });
      stage.post(*tile);
    }
  }
};

/// How a consumer asks for what a tile's steps read.
enum class asking { each_step, ahead };

template <class Case> struct consumer_kernel {
  const Case* of;
  const double* data;
  asking how;

  template <class Stage> void operator()(double* result, Stage stage) const {
    stage.start();
    while (auto tile = stage.tile()) {
      std::vector<sim::checked_input<double, Stage, 0>> in;
      for (u32 slice = 0; slice < of->dependence.producer().slices; ++slice)
        in.emplace_back(stage, A, *tile, data + slice * of->plane(), of->matrix, of->producer_tile);
      u32 next = of->dependence.steps(*tile).begin;
      const auto wait = [&](u32 step) {
        if (how == asking::each_step)
          stage.wait(A, *tile, step);
        else if (step == next)
          next = stage.wait_ahead(A, *tile, step);
      };
      result[flat(*tile, of->dependence.consumer())] = of->consume(
          *tile, wait, [&](u32 row, u32 col, u32 slice) { return in[slice](row, col); });
    }
  }
};

struct pair_options {
  any_order first{}, second{};
  stage_options producer{}, consumer{};
  sim::block_resources block{};
  asking consumer_asks = asking::each_step;
};

inline constexpr tile_source by_index = tile_source::block_index;
inline constexpr tile_source by_counter = tile_source::counter;

/// A chain of a producer and a consumer on the virtual GPU.
template <class Policy, class Dependence, tile_source First = by_index,
          tile_source Second = by_index>
class pair_chain {
public:
  using pair = pair_case<Policy, Dependence>;
  using Producer = CuStage<any_order, inputs<>, outputs<Policy>, First>;
  using Consumer = CuStage<any_order, inputs<reads<0, Policy, Dependence>>, outputs<>, Second>;

  pair_chain(const pair& of, const sim::gpu& device, const sim::schedule& how,
             const pair_options& options = {})
      : of_(of), between_(of.plane() * of.dependence.producer().slices, poison),
        chain_(device, how), producer_(chain_.stage<Producer>("producer", of.dependence.producer(),
                                                              options.first, options.producer)),
        consumer_(chain_.stage<Consumer>("consumer", of.dependence.consumer(), options.second,
                                         options.consumer)),
        produce_(chain_.kernel(producer_, producer_kernel<pair>{&of_, between_.data()},
                               options.block, {.ns = 1000})),
        consume_(chain_.kernel(consumer_,
                               consumer_kernel<pair>{&of_, between_.data(), options.consumer_asks},
                               options.block, {.ns = 700})) {
    chain_.dependency(producer_, consumer_, A, of.dependence, of.policy);
  }
  pair_chain(const pair_chain&) = delete; // the kernels point here
  pair_chain& operator=(const pair_chain&) = delete;

  sim::CuSync& chain() { return chain_; }

  /// That many runs in flight, one behind the other. Every result is compared, every visit counted.
  sim::report run(u32 runs) {
    std::vector<std::vector<double>> results(runs);
    for (u32 run = 0; run < runs; ++run) {
      results[run].assign(consumer_.tiles(), poison);
      chain_.enqueue(produce_(run), consume_(results[run].data()));
    }
    sim::report report = chain_.synchronize();
    for (u32 run = 0; run < runs; ++run) expect_result(results[run], run);
    expect_each_tile_once(report, runs);
    return report;
  }

private:
  void expect_result(const std::vector<double>& result, u32 run) const {
    cusync::detail::for_each_tile(consumer_.grid(), [&](tile_coord tile) {
      const double wanted = of_.consume(
          tile, [](u32) {},
          [&](u32 row, u32 col, u32 slice) { return element(row, col, slice, run); });
      ASSERT_EQ(result[flat(tile, consumer_.grid())], wanted)
          << "run " << run << ", tile " << cusync::to_string(tile);
    });
  }

  void expect_each_tile_once(const sim::report& report, u32 runs) const {
    const std::size_t a_run = std::size_t{producer_.tiles()} + consumer_.tiles();
    std::vector<u32> visits(runs * a_run, 0);
    for (const sim::tile_record& tile : report.timeline)
      ++visits[tile.run * a_run + (tile.stage == 0
                                       ? flat(tile.tile, producer_.grid())
                                       : producer_.tiles() + flat(tile.tile, consumer_.grid()))];
    ASSERT_EQ(std::count(visits.begin(), visits.end(), 1u),
              static_cast<std::ptrdiff_t>(visits.size()));
  }

  pair of_;
  std::vector<double> between_;
  sim::CuSync chain_;
  Producer& producer_;
  Consumer& consumer_;
  sim::bound_kernel<Producer, producer_kernel<pair>> produce_;
  sim::bound_kernel<Consumer, consumer_kernel<pair>> consume_;
};

} // namespace cusync::test
