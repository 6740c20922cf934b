// SPDX-License-Identifier: MIT
#include "simulate.hpp"

#include <cusync/errors.hpp>              // invalid_argument
#include <cusync/sim/check.hpp>           // check
#include <cusync/sim/described_chain.hpp> // described_chain
#include <cusync/sim/waves.hpp>           // waves_of

#include <type_traits> // is_same_v

namespace cusync::cli {
namespace {

template <class Policy> const char* name_of_policy(const Policy&) {
  if constexpr (std::is_same_v<Policy, GridSync>) return "GridSync";
  if constexpr (std::is_same_v<Policy, NoSync>) return "NoSync";
  if constexpr (std::is_same_v<Policy, TileSync>) return "TileSync";
  if constexpr (std::is_same_v<Policy, RowSync>) return "RowSync";
  if constexpr (std::is_same_v<Policy, BatchedRowSync>) return "BatchedRowSync";
  if constexpr (std::is_same_v<Policy, StridedSync>) return "StridedSync";
  if constexpr (std::is_same_v<Policy, Conv2DTileSync>) return "Conv2DTileSync";
  return "table";
}

sim::any_policy policy_for(edge_choice choice, const sim::any_dependence& reads) {
  switch (choice) {
  case edge_choice::grid:
    return sim::derive_any<GridSync>(reads);
  case edge_choice::tile:
    return sim::derive_any<TileSync>(reads);
  default:
    return sim::derive_any<RowSync>(reads);
  }
}

sim::schedule schedule_of(const sim::chain_description& chain, const simulate_settings& settings) {
  sim::schedule how;
  how.mode = chain.mode;
  how.gate = chain.gate;
  how.slots = chain.slots;
  how.seed = settings.seed;
  how.jitter = settings.jitter;
  return how;
}

/// The library's policies are right by construction, those that are written out need not be.
bool has_tables(const sim::chain_description& chain) {
  for (const sim::dependence_description& edge : chain.dependences)
    if (std::holds_alternative<sim::table_policy>(edge.policy.get())) return true;
  return false;
}

std::string doubt_about(const sim::described_chain& made, const sim::chain_description& chain) {
  const sim::check_report report =
      sim::check(made, chain.device, chain.mode, {.gate = chain.gate, .slots = chain.slots});
  for (const sim::property_result& each : report.results)
    if (each.is != sim::verdict::proved)
      return std::string(name_of(each.is)) + ": " + name_of(each.of) + "; see cusync check";
  return {};
}

void run(simulated& result, const sim::chain_description& chain,
         const simulate_settings& settings) {
  sim::described_chain made(chain, schedule_of(chain, settings));
  made.prepare();
  for (const auto& stage : made.stages()) result.tiles.push_back(made.time_of(*stage));
  result.mode_reason = made.mode_reason();
  result.found = made.predict(1, settings.timing);
  if (has_tables(chain)) result.doubt = doubt_about(made, chain);
}

} // namespace

sim::chain_description with_choice(const sim::chain_description& chain, edge_choice choice) {
  sim::chain_description changed = chain;
  if (choice == edge_choice::stream) changed.mode = launch_mode::serial;
  if (choice == edge_choice::stream || choice == edge_choice::own) return changed;
  for (sim::dependence_description& edge : changed.dependences)
    edge.policy = policy_for(choice, edge.reads);
  return changed;
}

bool is_own(const sim::chain_description& chain, edge_choice choice) {
  if (choice == edge_choice::stream) return false;
  const sim::chain_description changed = with_choice(chain, choice);
  for (std::size_t i = 0; i < chain.dependences.size(); ++i)
    if (!(changed.dependences[i].policy == chain.dependences[i].policy)) return false;
  return true;
}

std::string policies_of(const sim::chain_description& chain) {
  std::string names, last;
  for (const sim::dependence_description& edge : chain.dependences) {
    const std::string name =
        std::visit([](const auto& policy) { return name_of_policy(policy); }, edge.policy.get());
    if (name == last) continue;
    names += (names.empty() ? "" : ", ") + name;
    last = name;
  }
  return names;
}

double simulated::waves() const {
  std::vector<sim::wave_load> loads;
  for (const sim::stage_record& stage : found.stages)
    loads.push_back({stage.blocks, stage.blocks_per_wave});
  const sim::chain_waves waves = sim::waves_of(loads);
  const bool whole = found.mode == launch_mode::serial || choice == edge_choice::grid;
  return whole ? static_cast<double>(waves.in_stream_order) : waves.overlapped;
}

double simulated::waiting_share() const {
  const u64 all = found.work_ns + found.wait_ns;
  return all == 0 ? 0 : static_cast<double>(found.wait_ns) / static_cast<double>(all);
}

simulated simulate(const sim::chain_description& chain, edge_choice choice,
                   const simulate_settings& settings) {
  simulated result;
  result.choice = choice;
  try {
    run(result, with_choice(chain, choice), settings);
  } catch (const invalid_argument& why) {
    result.refused = why.what();
  }
  return result;
}

} // namespace cusync::cli
