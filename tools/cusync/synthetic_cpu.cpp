// SPDX-License-Identifier: MIT
#include "synthetic_cpu.hpp"

#include <cusync/sim/checked_view.hpp> // checked_input, checked_output
#include <cusync/sim/cusync.hpp>       // sim::CuSync

#include <algorithm> // max
#include <cmath>     // llround
#include <limits>    // numeric_limits
#include <vector>    // vector

namespace cusync::cli {
namespace {

/// A chain on the virtual GPU and its words, a row of tiles a stage.
template <class Policy, tile_source Source> class virtual_synthetic {
public:
  virtual_synthetic(const synthetic_problem& problem, const synthetic_variant& variant,
                    const sim::gpu& gpu)
      : problem_(problem), words_(problem.stages * problem.tiles(), poison),
        chain_(gpu, {.mode = variant.mode,
                     .gate = variant.w ? sim::gate_kind::as_needed : sim::gate_kind::all_blocks}) {
    const sim::block_resources block{problem.threads, 32, problem.shared_bytes(gpu.shared_per_sm)};
    const sim::tile_cost cost{.ns = static_cast<u64>(std::llround(problem.tile_us * 1000))};
    declare_synthetic<Policy, Source>(chain_, problem, [&](auto& stage) {
      const u32 index = stage.index();
      calls_.push_back(chain_.kernel(
          stage, [this, index](auto ref) { this->block_of(index, ref); }, block, cost)());
    });
  }

  sim::CuSync& chain() { return chain_; }

  sim::report execute(u32 runs) {
    for (u32 run = 0; run < runs; ++run) chain_.enqueue(calls_);
    return chain_.synchronize();
  }

  u32 wrong_words() const {
    u32 wrong = 0;
    for (u32 row = 0; row < problem_.rows; ++row)
      for (u32 col = 0; col < problem_.cols; ++col)
        wrong += words_of(problem_.stages - 1)[row * problem_.cols + col] !=
                 synthetic_expected(problem_, seed, row);
    return wrong;
  }

private:
  static constexpr u32 seed = 1;
  static constexpr u32 poison = std::numeric_limits<u32>::max();

  const u32* words_of(u32 stage) const { return words_.data() + stage * problem_.tiles(); }

  template <class Stage> void block_of(u32 index, Stage stage) {
    const element_extent matrix{problem_.rows, problem_.cols};
    stage.start();
    while (const claimed_tile tile = stage.tile()) {
      stage.wait_all(previous, *tile);
      const u32 row = tile.coord.row;
      u32 value = index == 0 ? seed + row * problem_.cols + tile.coord.col : 1;
      if (index > 0) {
        const sim::checked_input<u32, Stage, 0> in(stage, previous, *tile, words_of(index - 1),
                                                   matrix, {1, 1});
        for (u32 col = 0; col < problem_.cols; ++col) value += in(row, col);
      }
      u32* words = words_.data() + index * problem_.tiles();
      sim::checked_output<u32>(*tile, words, matrix, {1, 1})(row, tile.coord.col) = value;
      stage.post(*tile);
    }
  }

  synthetic_problem problem_;
  std::vector<u32> words_;
  sim::CuSync chain_;
  std::vector<sim::stage_call> calls_;
};

/// Of two runs back to back: the second one's end minus the first one's is what each of a long burst
/// takes.
double us_a_run(const sim::report& report) {
  u64 end[2] = {0, 0};
  for (const sim::stage_record& stage : report.stages)
    end[stage.run] = std::max(end[stage.run], stage.end_ns);
  return static_cast<double>(end[1] - end[0]) * 1e-3;
}

} // namespace

synthetic_row synthetic_on_virtual_gpu(const synthetic_problem& problem,
                                       const synthetic_variant& variant, const sim::gpu& gpu) {
  synthetic_row row;
  row.problem = problem;
  row.variant = variant;
  with_types(variant, [&](auto policy, auto source) {
    virtual_synthetic<typename decltype(policy)::type, source()> bench(problem, variant, gpu);
    if (bench.chain().mode() != variant.mode) {
      row.refused = bench.chain().mode_reason();
    } else if (variant.w && !bench.chain().gate_needless()) {
      row.refused = "W not proved";
    } else {
      row.us = us_a_run(bench.execute(2));
      row.wrong_runs = bench.wrong_words() != 0;
    }
  });
  return row;
}

double predicted_us(const synthetic_problem& problem, const synthetic_variant& variant,
                    const sim::gpu& gpu) {
  double us = 0;
  with_types(variant, [&](auto policy, auto source) {
    virtual_synthetic<typename decltype(policy)::type, source()> bench(problem, variant, gpu);
    bench.chain().prepare();
    us = us_a_run(bench.chain().predict(2));
  });
  return us;
}

} // namespace cusync::cli
