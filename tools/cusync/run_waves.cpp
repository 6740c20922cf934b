// SPDX-License-Identifier: MIT
#include "format.hpp"
#include "results.hpp"
#include "tools.hpp"
#include "waves.hpp"

#include <cusync/errors.hpp>  // invalid_argument
#include <cusync/sim/gpu.hpp> // require_occupancy, block_resources

#include <memory> // make_shared

namespace cusync::cli {
namespace {

struct waves_options : common_options {
  std::vector<std::string> chains;
  std::string blocks_per_sm;
  std::string threads, registers, smem;
  bool paper = false;
};

constexpr const char* examples = R"(Examples:
  cusync waves 4x48,4x96 --gpu V100 --blocks-per-sm 2       two GEMMs of 192 and 384 blocks
  cusync waves 1x24x3,1x48 4x48,4x96 --gpu V100 --threads 256 --registers 128
                                                            a row a chain; blocks that fit on an SM
  cusync waves 16x24,16x96 --threads 384,128 --smem 200,40  stages of different kernels
  cusync waves --paper                                      the tables of arXiv 2305.13450
)";

// --- values of options --------------------------------------------------------------------------

std::vector<std::string> split_at(std::string_view list, char separator) {
  std::string commas(list);
  for (char& each : commas)
    if (each == separator) each = ',';
  return split(commas);
}

tile_extent grid_of_text(const std::string& text) {
  const std::vector<std::string> parts = split_at(text, 'x');
  if (text.find(',') != std::string::npos || parts.size() > 3)
    throw invalid_argument("grid '" + text +
                           "' is not ROWSxCOLSxSLICES; write e.g. 4x48 or 1x24x3");
  u32 extents[3] = {1, 1, 1};
  for (std::size_t i = 0; i < parts.size(); ++i)
    extents[i] = count_of("grid '" + text + "'", parts[i], max_tiles);
  const tile_extent grid{extents[0], extents[1], extents[2]};
  require_countable(grid, "grid");
  return grid;
}

/// The value of stage `at`: a list has one for each, or one for all.
std::string value_at(const char* option, const std::string& list, std::size_t at,
                     std::size_t stages) {
  const std::vector<std::string> values = split(list);
  if (values.size() != 1 && values.size() != stages)
    throw invalid_argument(
        formatted("{}: '{}' has {} values for a chain of {} stages; give one, or one a stage",
                  option, list, values.size(), stages));
  return values[values.size() == 1 ? 0 : at];
}

/// Blocks of stage `at` that an SM holds, and why.
u32 blocks_per_sm(const waves_options& options, const sim::gpu& gpu, std::size_t at,
                  std::size_t stages) {
  const auto number = [&](const char* option, const std::string& list, u32 otherwise) {
    return list.empty() ? otherwise
                        : count_of(option, value_at(option, list, at, stages), 1'000'000);
  };
  if (!options.blocks_per_sm.empty()) return number("--blocks-per-sm", options.blocks_per_sm, 1);
  const sim::block_resources block{.threads = number("--threads", options.threads, 128),
                                   .registers = number("--registers", options.registers, 32),
                                   .shared_bytes = number("--smem", options.smem, 0) * 1024};
  return sim::require_occupancy(gpu, block, "stage " + std::to_string(at + 1));
}

waves_row row_of(const waves_options& options, const sim::gpu& gpu, const std::string& chain) {
  waves_row row{chain, {}};
  const std::vector<std::string> grids = split(chain);
  for (std::size_t i = 0; i < grids.size(); ++i)
    row.stages.push_back(
        {grid_of_text(grids[i]), u64{blocks_per_sm(options, gpu, i, grids.size())} * gpu.sms});
  return row;
}

// --- the subcommand -----------------------------------------------------------------------------

void explain(results& found) {
  found.note("waves: blocks over blocks per wave. used: part of the places in whole waves that "
             "holds a block.");
  found.note("stream waves: each stage ends its last wave alone. overlapped: the next stage fills "
             "it up.");
}

int print_paper(const waves_options& options) {
  results found("Waves of the paper's tables, computed", options);
  found.fact("source", "arXiv 2305.13450, V100: its grids and blocks per wave, nothing else");
  for (auto& [heading, rows] : paper_tables()) found.add(heading, std::move(rows));
  explain(found);
  found.note("The paper cuts some of its figures and rounds others: 1.8375 stands there as 1.83 "
             "and as 1.84.");
  found.note("Its text counts 33 % fewer waves for Conv2D at batch 16; its own table has 4 and "
             "2.45, which is 3.");
  return found.publish();
}

int run_waves(const waves_options& options) {
  if (options.paper) {
    if (!options.chains.empty())
      throw invalid_argument("waves: '" + options.chains.front() +
                             "' beside --paper; give grids or --paper");
    return print_paper(options);
  }
  if (options.chains.empty())
    throw invalid_argument("waves: no grids; give e.g. 4x48,4x96, or --paper");
  const virtual_gpu device = virtual_gpu_of(options.gpu, sim::find_gpu("H200"));
  results found("Waves", options);
  found.fact("gpu", device.text());
  std::vector<waves_row> rows;
  for (const std::string& chain : options.chains)
    rows.push_back(row_of(options, device.gpu, chain));
  found.add("", waves_table("chain", rows));
  explain(found);
  return found.publish();
}

void declare(command to) {
  auto options = std::make_shared<waves_options>();
  to.arguments("chains", options->chains,
               "Grids of each chain's stages, as ROWSxCOLSxSLICES,...: a row of the table a chain")
      .option("--gpu", options->gpu, "A name, numbers or both: H200 | V100 | A100,sms=27 | sms=16")
      .option("--blocks-per-sm", options->blocks_per_sm,
              "Blocks that an SM holds, for all stages or a list")
      .option("--threads", options->threads,
              "Instead: threads of a block (128), for all stages or a list")
      .option("--registers", options->registers, "and registers of a thread (32)")
      .option("--smem", options->smem, "and KB of shared memory of a block (0)")
      .flag("--paper", options->paper, "The paper's wave tables instead")
      .examples(examples);
  add_output(to, *options);
  to.runs([options] { return run_waves(*options); });
}

} // namespace

subcommand waves_tool() {
  return {"waves", "Waves and utilisation of grids on a GPU, in stream order and overlapped",
          declare};
}

} // namespace cusync::cli
