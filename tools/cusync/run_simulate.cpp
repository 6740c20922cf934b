// SPDX-License-Identifier: MIT
#include "chain_file.hpp"
#include "format.hpp"
#include "results.hpp"
#include "simulate.hpp"
#include "timeline_files.hpp"
#include "tools.hpp"

#include <cusync/errors.hpp>    // invalid_argument
#include <cusync/sim/waves.hpp> // wave_load

#include <algorithm> // find
#include <memory>    // make_shared

namespace cusync::cli {
namespace {

struct simulate_options : common_options {
  std::string file;
  std::string mode, policies;
  std::string waits = "ahead";
  std::string jitter = "0";
  timeline_paths paths;
};

constexpr const char* examples = R"(Examples:
  cusync simulate examples/chains/gpt3_mlp.json            stream order beside every policy
  cusync simulate chain.json --gpu A100 --mode streams     the same chain on another GPU
  cusync simulate chain.json --svg t.svg --trace t.json    a picture, and a trace for Perfetto

Virtual time, not measured. docs/simulate.md says what is counted; docs/check.md describes the file.
)";

// --- values of options --------------------------------------------------------------------------

/// By default all that differ: the file's own policies may be RowSync on every edge.
std::vector<edge_choice> default_choices(const sim::chain_description& chain) {
  std::vector<edge_choice> choices;
  bool own_is_there = false;
  for (const edge_choice each : edge_choices) {
    if (each == edge_choice::own && own_is_there) continue;
    choices.push_back(each);
    own_is_there = own_is_there || is_own(chain, each);
  }
  return choices;
}

std::vector<edge_choice> choices_of(const std::string& list, const sim::chain_description& chain) {
  if (list.empty()) return default_choices(chain);
  std::vector<edge_choice> choices{edge_choice::stream};
  for (const std::string& part : split(list)) {
    const auto* found = std::find_if(std::begin(edge_choices), std::end(edge_choices),
                                     [&](edge_choice each) { return part == name_of(each); });
    if (found == std::end(edge_choices))
      throw invalid_argument(formatted("--policy: '{}' is none; choose from StreamSync, GridSync, "
                                       "RowSync, TileSync, own",
                                       part));
    if (std::find(choices.begin(), choices.end(), *found) == choices.end())
      choices.push_back(*found);
  }
  return choices;
}

sim::waits waits_of(const std::string& text) {
  if (text == "step") return sim::waits::each_step;
  if (text == "ahead") return sim::waits::ahead;
  if (text == "tile") return sim::waits::whole_tile;
  throw invalid_argument(formatted("--waits: '{}' is none; choose ahead, step or tile", text));
}

simulate_settings settings_of(const simulate_options& options) {
  simulate_settings settings;
  settings.seed = options.seed;
  if (options.jitter != "0") settings.jitter = 0.01 * count_of("--jitter", options.jitter, 90);
  if (options.paths.any()) settings.timing.kept = sim::keep::timeline;
  settings.timing.style = waits_of(options.waits);
  return settings;
}

// --- tables -------------------------------------------------------------------------------------

std::string name_of(const simulated& row, const sim::chain_description& chain) {
  if (row.choice != edge_choice::own)
    return name_of(row.choice) + std::string(is_own(chain, row.choice) ? " (own)" : "");
  return "own (" + policies_of(chain) + ")";
}

double us(u64 ns) { return static_cast<double>(ns) * 1e-3; }

double speed_up(const simulated& row, const simulated& baseline) {
  return us(baseline.found.makespan_ns) / us(row.found.makespan_ns);
}

table policies_table(const std::vector<simulated>& rows, const sim::chain_description& chain) {
  table result({"policy", "mode", "makespan us", "speed-up", "waves", "used %", "waiting us",
                "waiting %", "note"});
  for (const simulated& row : rows) {
    std::vector<cell> cells{name_of(row, chain)};
    if (row.ran())
      cells.insert(cells.end(),
                   {cusync::name_of(row.found.mode), cell(us(row.found.makespan_ns), 2),
                    rows.front().ran() ? cell(speed_up(row, rows.front()), 3) : cell(),
                    cell(row.waves(), 2), cell(100 * row.found.utilisation, 1),
                    cell(us(row.found.wait_ns), 1), cell(100 * row.waiting_share(), 1),
                    row.doubt.empty() ? cell() : cell(row.doubt)});
    else
      cells.insert(cells.end(), 7, cell());
    if (!row.ran()) cells.emplace_back(row.refused);
    result.add(cells);
  }
  return result;
}

table stages_table(const simulated& row) {
  table result({"stage", "tiles", "blocks", "blocks an SM", "waves", "used %", "tile us"});
  for (const sim::stage_record& stage : row.found.stages) {
    const sim::wave_load load{stage.blocks, stage.blocks_per_wave};
    result.add({stage.name, stage.tiles, stage.blocks, stage.per_sm, cell(load.waves(), 4),
                cell(100 * load.utilisation(), 1), cell(us(row.tiles[stage.stage].ns), 2)});
  }
  return result;
}

void explain(results& found, const std::vector<simulated>& rows) {
  for (const simulated& row : rows)
    if (row.ran()) {
      for (const sim::stage_record& stage : row.found.stages)
        found.note(stage.name + ": " + sim::explain(row.tiles[stage.stage]));
      break;
    }
  for (const simulated& row : rows)
    if (!row.mode_reason.empty() && row.choice != edge_choice::stream) {
      found.note(formatted("mode {}: {}", cusync::name_of(row.found.mode), row.mode_reason));
      break;
    }
  found.note("waves: whole ones a stage in stream order and with GridSync, else of all stages "
             "together. used: work in the places of all SMs over the makespan.");
  found.note("waiting: of all blocks together, looks at semaphores included, and its part of the "
             "tiles' time.");
}

// --- the subcommand -----------------------------------------------------------------------------

std::vector<simulated> simulate_all(const sim::chain_description& chain,
                                    const std::vector<edge_choice>& choices,
                                    const simulate_settings& settings) {
  std::vector<simulated> rows;
  bool any = choices.size() == 1;
  for (const edge_choice choice : choices) {
    rows.push_back(simulate(chain, choice, settings));
    any = any || (rows.back().ran() && choice != edge_choice::stream);
  }
  if (!any) throw invalid_argument(rows.back().refused); // nothing to compare
  if (!rows.front().ran()) throw invalid_argument(rows.front().refused);
  return rows;
}

timeline_picture picture_of(const std::vector<simulated>& rows, const sim::chain_description& chain,
                            const std::string& heading) {
  timeline_picture picture{heading, {}};
  const u32 sms = chain.slots != 0 ? chain.slots : chain.device.sms;
  for (const simulated& row : rows) {
    if (!row.ran()) continue;
    std::string title = name_of(row, chain) + ", " + cusync::name_of(row.found.mode);
    if (row.choice == edge_choice::stream) title = "Stream order";
    std::string note = formatted("{:.2f} us", us(row.found.makespan_ns));
    if (row.choice != edge_choice::stream)
      note += formatted(", {:.2f} times as fast as stream order", speed_up(row, rows.front()));
    note += formatted("; {:.0f} % of the places work, {:.0f} % of the tiles' time is waiting",
                      100 * row.found.utilisation, 100 * row.waiting_share());
    picture.runs.push_back({title, &row.found, sms, note});
  }
  return picture;
}

sim::chain_description chain_of(const simulate_options& options, std::string& gpu_text) {
  sim::chain_description chain = read_chain(options.file);
  const virtual_gpu device = virtual_gpu_of(options.gpu, chain.device);
  gpu_text = device.text();
  chain.device = device.gpu;
  if (!options.mode.empty()) chain.mode = mode_of(options.mode);
  if (chain.name.empty()) chain.name = options.file;
  return chain;
}

int run_simulate(const simulate_options& options) {
  std::string gpu_text;
  const sim::chain_description chain = chain_of(options, gpu_text);
  const std::vector<edge_choice> choices = choices_of(options.policies, chain);
  const simulate_settings settings = settings_of(options);
  results found("Simulated chain: stream order beside policies", options);
  u64 tiles = 0;
  for (const sim::stage_description& stage : chain.stages) tiles += stage.grid.count();
  require_drawable(options.paths, tiles, choices.size());
  const std::vector<simulated> rows = simulate_all(chain, choices, settings);
  found.fact("chain", chain.name);
  found.fact("time", formatted("virtual time on a simulated {}; not measured", gpu_text));
  if (settings.jitter != 0)
    found.fact("jitter", formatted("{} % of a tile's time, seed {}", options.jitter, options.seed));
  found.add("policies", policies_table(rows, chain));
  found.add("stages", stages_table(rows.front()));
  explain(found, rows);
  write_timelines(options.paths, picture_of(rows, chain, chain.name + ", on " + gpu_text));
  return found.publish();
}

void declare(command to) {
  auto options = std::make_shared<simulate_options>();
  to.argument("file", options->file, "The chain, as JSON (docs/check.md)")
      .option("--gpu", options->gpu,
              "Instead of the file's: a name, numbers or both: H200 | A100,sms=27 | sms=16")
      .option("--mode", options->mode,
              "Instead of the file's: serial, pdl, streams or automatic; stream order is serial")
      .option("--policy", options->policies,
              "A list of GridSync, RowSync, TileSync (on all edges) and own (the file's); all")
      .option(
          "--waits", options->waits,
          "How kernels wait: step (before each), ahead (looking at later steps too), tile (once)")
      .option("--trace", options->paths.trace, "Write a trace for Perfetto to this file")
      .option("--svg", options->paths.svg, "Write a picture to this file")
      .option("--html", options->paths.html, "Write a picture as a web page to this file")
      .option("--jitter", options->jitter, "Percent by which a tile's time varies, both ways")
      .option("--seed", options->seed, "Of the jitter")
      .examples(examples);
  add_output(to, *options);
  to.runs([options] { return run_simulate(*options); });
}

} // namespace

subcommand simulate_tool() {
  return {"simulate", "Time a chain on a virtual GPU: stream order beside every policy", declare};
}

} // namespace cusync::cli
