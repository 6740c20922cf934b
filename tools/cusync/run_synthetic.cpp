// SPDX-License-Identifier: MIT
#include "format.hpp"
#include "gpu_part.hpp"
#include "run_calibrate.hpp"
#include "synthetic_cpu.hpp"
#include "workloads.hpp"

#include <cmath>  // floor
#include <memory> // make_shared

namespace cusync::cli {
namespace {

struct synthetic_options : common_options {
  std::string rows = "33", cols = "6";
  std::string stages = "2,3";
  std::string tile_us = "20,4";
  std::string blocks_per_sm = "1";
  std::string threads = "128";
  std::string checks = "200";
  bool calibrate = false;
  std::string from;
};

constexpr const char* examples = R"(Examples:
  cusync run synthetic                          33 x 6 tiles: one and a half waves on 132 SMs
  cusync run synthetic --rows 22 --tile-us 1    whole waves: what a hand-over costs
  cusync run synthetic --calibrate --json       fits the virtual GPU's costs to this GPU
  cusync run synthetic --calibrate --from FILE  the same from an earlier run's JSON, without a GPU
)";

std::vector<synthetic_problem> problems_of(const synthetic_options& options) {
  std::vector<synthetic_problem> problems;
  for (const double tile_us : times_of("--tile-us", options.tile_us))
    for (const u32 stages : counts_of("--stages", options.stages, 64)) {
      synthetic_problem problem;
      problem.rows = count_of("--rows", options.rows, 4096);
      problem.cols = count_of("--cols", options.cols, 4096);
      problem.stages = stages;
      problem.tile_us = tile_us;
      problem.blocks_per_sm = count_of("--blocks-per-sm", options.blocks_per_sm, 6);
      problem.threads = count_of("--threads", options.threads, 1024);
      problems.push_back(problem);
    }
  return problems;
}

// --- the table ----------------------------------------------------------------------------------

/// The time in stream order of the same problem, launched in the same form.
double baseline_of(const std::vector<synthetic_row>& rows, const synthetic_row& row) {
  for (const synthetic_row& other : rows)
    if (other.variant.policy == sync_kind::stream && other.form == row.form &&
        other.problem.stages == row.problem.stages && other.problem.tile_us == row.problem.tile_us)
      return other.us;
  return 0;
}

std::vector<cell> shape_cells(const synthetic_problem& problem) {
  return {problem.stages,
          cell(problem.tile_us, problem.tile_us == std::floor(problem.tile_us) ? 0 : 2)};
}

cell outcome_of(const synthetic_row& row) {
  if (!row.refused.empty()) return row.refused;
  return row.wrong_runs == 0 ? "ok" : cell(formatted("{} runs wrong", row.wrong_runs));
}

table virtual_table(const std::vector<synthetic_row>& rows) {
  table result({"stages", "tile us", "launch", "virtual us", "speed-up", "numbers"});
  for (const synthetic_row& row : rows) {
    std::vector<cell> cells = shape_cells(row.problem);
    const bool ran = row.us > 0;
    cells.insert(cells.end(),
                 {row.variant.name(), ran ? cell(row.us, 2) : cell(),
                  ran ? cell(baseline_of(rows, row) / row.us, 3) : cell(), outcome_of(row)});
    result.add(cells);
  }
  return result;
}

table measured_table(const std::vector<synthetic_row>& rows, const sim::gpu& gpu) {
  table result({"stages", "tile us", "launch", "form", "us", "10%", "90%", "MHz", "speed-up",
                "predicted us", "error %", "numbers"});
  for (const synthetic_row& row : rows) {
    std::vector<cell> cells = shape_cells(row.problem);
    cells.insert(cells.end(), {row.variant.name(), row.form.empty() ? cell() : cell(row.form)});
    if (row.us > 0) {
      const double predicted = predicted_us(row.problem, row.variant, gpu);
      cells.insert(cells.end(), {cell(row.us, 2), cell(row.low, 2), cell(row.high, 2),
                                 row.mhz > 0 ? cell(row.mhz, 0) : cell(),
                                 cell(baseline_of(rows, row) / row.us, 3), cell(predicted, 2),
                                 cell(100 * (predicted - row.us) / row.us, 1)});
    } else {
      cells.insert(cells.end(), 7, cell());
    }
    cells.push_back(outcome_of(row));
    result.add(cells);
  }
  return result;
}

void report_numbers(results& found, const std::vector<synthetic_row>& rows, u32 checks) {
  for (const synthetic_row& row : rows)
    if (row.wrong_runs != 0)
      found.wrong(formatted("{} stages, {} us, {} {}: {} of {} runs gave wrong words",
                            row.problem.stages, row.problem.tile_us, row.variant.name(), row.form,
                            row.wrong_runs, checks));
}

std::string shape_text(const synthetic_problem& problem, u32 sms) {
  const double waves = double(problem.tiles()) / (sms * problem.blocks_per_sm);
  return formatted("{} x {} tiles = {:.2f} waves of {} SMs, {} block{} an SM, {} threads a block",
                   problem.rows, problem.cols, waves, sms, problem.blocks_per_sm,
                   problem.blocks_per_sm == 1 ? "" : "s", problem.threads);
}

// --- the subcommand -----------------------------------------------------------------------------

synthetic_request request_of(const synthetic_options& options) {
  synthetic_request request;
  request.problems = problems_of(options);
  request.samples = samples_of(options);
  request.checks = count_of("--checks", options.checks, 1000000);
  return request;
}

int run_on_gpu(const synthetic_options& options) {
  const synthetic_request request = request_of(options);
  const virtual_gpu predictor = virtual_gpu_of(options.gpu, current_gpu());
  results found("Synthetic chain: launches and waits alone", options);
  found.fact(gpu_facts());
  found.fact("tiles", shape_text(request.problems.front(), current_gpu().sms));
  found.fact("predicted for", predictor.text());
  const std::vector<synthetic_row> rows = synthetic_on_gpu(request);
  found.add("", measured_table(rows, predictor.gpu));
  report_numbers(found, rows, request.checks);
  found.note(formatted(
      "Each variant gave the right words in {} runs first, poisoned before each, with changing "
      "seeds. Times interleaved; speed-up over stream order (kernels without stage code) in the "
      "same form.",
      request.checks));
  found.note("The virtual GPU knows nothing of the host: an eager run that waits for launch calls "
             "is slower.");
  return found.publish();
}

int run_on_virtual_gpu(const synthetic_options& options) {
  const synthetic_request request = request_of(options);
  const virtual_gpu device = virtual_gpu_of(options.gpu, sim::find_gpu("H200"));
  results found("Synthetic chain: launches and waits alone", options);
  found.fact("time", formatted("virtual time on a simulated {}; not measured", device.text()));
  found.fact("tiles", shape_text(request.problems.front(), device.gpu.sms));
  std::vector<synthetic_row> rows;
  for (const synthetic_problem& problem : request.problems)
    for (const synthetic_variant& variant : request.variants)
      if (variant.mode != launch_mode::pdl || device.gpu.compute_capability >= 90)
        rows.push_back(synthetic_on_virtual_gpu(problem, variant, device.gpu));
  found.add("", virtual_table(rows));
  report_numbers(found, rows, 1);
  return found.publish();
}

int run_synthetic(const synthetic_options& options) {
  if (options.calibrate) return run_calibrate(options, options.from);
  return use_gpu(options) ? run_on_gpu(options) : run_on_virtual_gpu(options);
}

void declare(command to) {
  auto options = std::make_shared<synthetic_options>();
  add_common(to, *options);
  to.option("--rows", options->rows, "Rows of tiles of a stage")
      .option("--cols", options->cols, "Tiles a row")
      .option("--stages", options->stages, "Stages of the chain: a list")
      .option("--tile-us", options->tile_us, "Microseconds that a tile is busy: a list")
      .option("--blocks-per-sm", options->blocks_per_sm,
              "1 to 6, by the shared memory that a block asks for")
      .option("--threads", options->threads, "Of a block")
      .option("--checks", options->checks, "Checked runs of each variant ahead of the timing")
      .flag("--calibrate", options->calibrate,
            "Fit the virtual GPU's costs on 66, 132 and 265 tiles of 2 and 7 us")
      .option("--from", options->from, "Fit to the times in the JSON of an earlier calibration")
      .examples(examples)
      .runs([options] { return run_synthetic(*options); });
}

} // namespace

subcommand synthetic_workload() {
  return {"synthetic",
          "Tiles that only spend time: launch modes against stream order and the virtual GPU",
          declare};
}

} // namespace cusync::cli
