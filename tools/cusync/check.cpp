// SPDX-License-Identifier: MIT
#include "chain_edges.hpp"
#include "chain_file.hpp"
#include "format.hpp"
#include "options.hpp"
#include "results.hpp"
#include "tools.hpp"

#include <cusync/sim/check.hpp>           // check
#include <cusync/sim/described_chain.hpp> // described_chain

#include <memory>  // make_shared
#include <utility> // move

namespace cusync::cli {
namespace {

using sim::chain_description;
using sim::check_report;
using sim::counterexample;
using sim::property_result;

struct check_request {
  std::string file, mode, gate, slots;
  common_options common;
};

sim::gate_kind gate_of(const std::string& text) {
  std::string list;
  for (const auto& [name, kind] : gate_names) {
    if (text == name) return kind;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  throw invalid_argument(formatted("--gate: '{}' is none; choose from {}", text, list));
}

const char* name_of(sim::gate_kind gate) {
  for (const auto& [name, kind] : gate_names)
    if (kind == gate) return name;
  return "";
}

/// What the command line says in place of the file.
void override_by(const check_request& asked, chain_description& chain) {
  if (!asked.mode.empty()) chain.mode = mode_of(asked.mode);
  if (!asked.gate.empty()) chain.gate = gate_of(asked.gate);
  if (!asked.slots.empty()) chain.slots = count_of("--slots", asked.slots, max_tiles);
}

cell place_of(const std::string& stage, const std::optional<tile_coord>& tile) {
  if (stage.empty()) return {};
  return {tile ? formatted("{} {}", stage, to_string(*tile)) : stage};
}

table verdicts_of(const check_report& report) {
  table made({"property", "verdict", "because"});
  for (const property_result& each : report.results)
    made.add({name_of(each.of), name_of(each.is), each.why});
  return made;
}

table edges_of(const check_report& report) {
  table made({"edge", "waits for", "tiles read", "waited for", "not read %", "most a tile", "at"});
  for (const sim::over_wait& edge : report.edges) {
    const double share = edge.waited == 0 ? 0
                                          : 100 * static_cast<double>(edge.excess()) /
                                                static_cast<double>(edge.waited);
    made.add({formatted("{} -> {}", edge.producer, edge.consumer), edge.waits, edge.read,
              edge.waited, cell(share, 1), edge.worst,
              edge.worst == 0 ? cell() : cell(to_string(edge.worst_tile))});
  }
  return made;
}

table places_of(const check_report& report) {
  table made({"property", "stage", "tile", "semaphore", "other", "other tile"});
  for (const property_result& each : report.results) {
    if (!each.counter) continue;
    const counterexample& found = *each.counter;
    made.add({name_of(each.of), found.stage, to_string(found.tile),
              found.semaphore ? cell(u64{*found.semaphore}) : cell(), place_of(found.other, {}),
              found.other_tile ? cell(to_string(*found.other_tile)) : cell()});
  }
  return made;
}

table schedule_of(const counterexample& found) {
  table made({"step", "what happens"});
  for (const std::string& step : found.schedule) made.add({u64{made.rows.size() + 1}, step});
  return made;
}

int run_check(const check_request& asked) {
  chain_description chain = read_chain(asked.file);
  override_by(asked, chain);
  const virtual_gpu gpu = virtual_gpu_of(asked.common.gpu, chain.device);
  chain.device = gpu.gpu;
  sim::described_chain made(chain, sim::faults::kept);
  const check_report report =
      sim::check(made, chain.device, chain.mode, {.gate = chain.gate, .slots = chain.slots});

  results found(formatted("check {}: {}", asked.file, report.proved() ? "proved" : "NOT PROVED"),
                asked.common);
  if (!chain.name.empty()) found.fact("chain", chain.name);
  found.fact("gpu", chain.slots == 0 ? gpu.text() : formatted("{} slots", chain.slots));
  found.fact("mode", report.mode_reason.empty()
                         ? cusync::name_of(report.mode)
                         : formatted("{} ({})", cusync::name_of(report.mode), report.mode_reason));
  if (report.mode == launch_mode::streams) found.fact("gate", name_of(chain.gate));
  found.add("", verdicts_of(report));
  if (!report.edges.empty()) found.add("what is waited for", edges_of(report));
  const table places = places_of(report);
  if (!places.rows.empty()) found.add("where it goes wrong", places);
  for (const property_result& each : report.results)
    if (each.counter && !each.counter->schedule.empty())
      found.add(formatted("{}: a schedule that leads there", name_of(each.of)),
                schedule_of(*each.counter));
  const int published = found.publish();
  return report.proved() ? published : 1;
}

} // namespace

subcommand check_tool() {
  return {"check", "Prove that a chain is right, or show where it goes wrong", [](command to) {
            const auto asked = std::make_shared<check_request>();
            to.argument("FILE", asked->file, "A chain's description: docs/check.md")
                .option("--mode", asked->mode, "serial, pdl, streams or automatic: not the file's")
                .option("--gpu", asked->common.gpu,
                        "Another GPU: a name, numbers or both: H200 | A100,sms=27")
                .option("--gate", asked->gate,
                        "all_blocks, first_block, as_needed or none: not the file's")
                .option("--slots", asked->slots, "Blocks at once on the whole GPU")
                .flag("--json", asked->common.json, "Print JSON instead of tables")
                .option("--markdown", asked->common.markdown, "Also write the results to this file")
                .examples("Exit status: 0 proved; 1 refuted, or not proved; 2 a bad file or "
                          "option.\n")
                .runs([asked] { return run_check(*asked); });
          }};
}

} // namespace cusync::cli
