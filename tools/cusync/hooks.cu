// SPDX-License-Identifier: MIT
#include "gpu_part.hpp"
#include "gpu_timing.cuh"
#include "mlp_gpu.cuh"
#include "synthetic_gpu.cuh"

namespace cusync::cli {
namespace {

/// The same work without any stage code and with all of it, where every wait is satisfied: `RowSync`
/// in stream order.
class hooks_bench {
public:
  hooks_bench(table& rows, u32 samples, progress& bar)
      : rows_(rows), samples_(samples), bar_(bar) {}

  void compare(const std::string& work, u32 runs, const gpu_launch& plain,
               const gpu_launch& hooked) {
    const std::vector<timing> times = time_interleaved(
        {{work + ", plain", plain.enqueue}, {work + ", with hooks", hooked.enqueue}}, samples_,
        runs, &bar_);
    const std::vector<double> ratios = times[1].over(times[0]);
    rows_.add({work, cell(times[0].median(), 2), cell(times[1].median(), 2),
               cell(timing::at(ratios, 0.5), 4), cell(timing::at(ratios, 0.1), 4),
               cell(timing::at(ratios, 0.9), 4),
               times[0].clock() > 0 ? cell(times[0].clock(), 0) : cell()});
  }

private:
  table& rows_;
  u32 samples_;
  progress& bar_;
};

void compare_synthetic(hooks_bench& bench, double tile_us) {
  synthetic_problem problem;
  problem.tile_us = tile_us;
  const synthetic_data data(problem);
  bench.compare("synthetic, " + std::to_string(static_cast<int>(tile_us)) + " us a tile", 10,
                make_synthetic(problem, {}, data),
                make_synthetic(problem, {sync_kind::row, launch_mode::serial}, data));
}

void compare_gemm(hooks_bench& bench, u32 batch, u64 seed) {
  const mlp_data data({batch, mlp_models[0].hidden, mlp_models[0].columns}, seed);
  const tile_info tile = fastest_tile(data);
  const gpu_launch plain = make_mlp(tile, {}, launch_mode::serial, data);
  const sync_choice hooked{sync_kind::row, false,
                           true}; // weights first, as the plain kernel loads them
  bench.compare("GPT-3 MLP, B = " + std::to_string(batch) + ", " + tile.name(),
                runs_a_sample({"plain GEMM", plain.enqueue}), plain,
                make_mlp(tile, hooked, launch_mode::serial, data));
}

} // namespace

void hooks_on_gpu(results& found, const common_options& options) {
  const u32 samples = samples_of(options);
  table rows({"work", "plain us", "with hooks us", "ratio", "10%", "90%", "MHz"});
  progress bar(timing_steps(2, samples) * 4);
  hooks_bench bench(rows, samples, bar);
  for (const double tile_us : {1.0, 4.0}) compare_synthetic(bench, tile_us);
  for (const u32 batch : {64u, 512u}) compare_gemm(bench, batch, options.seed);
  found.add("", rows);
  found.note("with hooks: RowSync in mode serial, all its waits satisfied; plain: the same kernels "
             "without stage code. "
             "In graphs, interleaved; the ratio is taken sample by sample. Two stages each; 33 x 6 "
             "synthetic tiles.");
}

} // namespace cusync::cli
