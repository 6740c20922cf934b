// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/gate.hpp>          // fit_together, single_wave, live_without_gate
#include <cusync/launch_plan.hpp>   // launch_plan, stage_plan
#include <cusync/sim/gpu.hpp>       // gpu, block_resources
#include <cusync/sim/launch.hpp>    // launch, precondition
#include <cusync/sim/report.hpp>    // report, stage_record
#include <cusync/sim/schedule.hpp>  // schedule, gate_kind
#include <cusync/sim/tile_cost.hpp> // tile_cost, time_of

#include <algorithm> // max
#include <string>    // string
#include <vector>    // vector

namespace cusync::sim {

/// What a stage's blocks ask of the GPU.
struct stage_load {
  block_resources block;
  tile_cost tile = {.ns = 1000};
};

/// A chain's launches on a GPU, worked out once: mode, plan, places and tile times.
class launch_shape {
public:
  /// `loads` has an entry a stage of the chain. Throws `invalid_argument` where the GPU or the mode
  /// cannot run the chain.
  launch_shape(const chain& chain, const gpu& device, const schedule& how,
               std::vector<stage_load> loads)
      : device_(device), loads_(std::move(loads)), slots_(how.slots) {
    for (const auto& stage : chain.stages()) per_sm(*stage);
    choose_mode(how, chain);
    plan_ = plan_launch(chain, mode_);
  }

  launch_mode mode() const { return mode_; }
  /// Why the mode is not the one asked for; empty where it is.
  const std::string& mode_reason() const { return reason_; }
  const launch_plan& plan() const { return plan_; }
  const gpu& device() const { return device_; }

  /// Blocks of a stage that an SM holds at once.
  u32 per_sm(const any_stage& stage) const {
    return slots_ != 0
               ? 1
               : require_occupancy(device_, load(stage).block, "stage '" + stage.name() + "'");
  }
  tile_time time_of(const any_stage& stage) const {
    return sim::time_of(device_, load(stage).tile, per_sm(stage), stage.blocks());
  }
  /// The record of a launch, with nothing measured yet.
  stage_record record_of(const any_stage& stage, u32 run) const {
    stage_record record;
    record.run = run;
    record.stage = stage.index();
    record.name = stage.name();
    record.tiles = stage.tiles();
    record.blocks = stage.blocks();
    record.per_sm = per_sm(stage);
    record.blocks_per_wave = u64{record.per_sm} * (slots_ != 0 ? slots_ : device_.sms);
    return record;
  }

  /// Adds up what the launches of a simulation found.
  void summarise(report& result) const {
    result.mode = mode_;
    double busy_sms = 0;
    for (const stage_record& stage : result.stages) {
      result.makespan_ns = std::max(result.makespan_ns, stage.end_ns);
      result.work_ns += stage.work_ns;
      result.wait_ns += stage.wait_ns;
      busy_sms += static_cast<double>(stage.work_ns) / stage.per_sm;
    }
    if (result.makespan_ns != 0)
      result.utilisation =
          busy_sms / static_cast<double>(result.makespan_ns) / (slots_ != 0 ? slots_ : device_.sms);
  }

  /// Whether a run needs no gate: proved for two stages (gate.hpp).
  bool gate_needless() const {
    if (mode_ != launch_mode::streams || plan_.stages.size() != 2) return false;
    const any_stage& producer = *plan_.stages[0].stage;
    const any_stage& consumer = *plan_.stages[1].stage;
    const u32 sms = slots_ != 0 ? slots_ : device_.sms;
    return single_wave(sms, per_sm(producer), per_sm(consumer), producer.blocks(),
                       consumer.blocks()) &&
           live_without_gate(sms, slots_ != 0 ? sm_capacity{1, 0, 0, 0} : capacity_of(device_),
                             footprint(producer), footprint(consumer), consumer.blocks());
  }

  /// The launch at `position` of a run whose first launch has index `first`; an earlier run, if any,
  /// lies right before it.
  launch launch_at(u32 position, u32 first, const schedule& how) const {
    const stage_plan& plan = plan_.stages[position];
    const u32 stages = static_cast<u32>(plan_.stages.size());
    const u32 index = first + position;
    launch made;
    made.blocks = plan.stage->blocks();
    made.footprint = footprint(*plan.stage);
    made.first_of_run = first;
    made.closes_run = position + 1 == stages && mode_ != launch_mode::streams;
    if (position == 0 || mode_ == launch_mode::streams) { // behind the run before it
      made.delay_ns = first == 0 ? device_.first_launch_ns : device_.run_gap_ns;
      const u32 oldest = first == 0                      ? first
                         : mode_ == launch_mode::streams ? first - stages
                                                         : first - 1;
      for (u32 before = oldest; before < first; ++before)
        made.after.push_back({milestone::completed, before});
    }
    if (position == 0) return made;
    if (mode_ == launch_mode::streams) {
      pass_gate(made, plan, first, index, how);
    } else {
      made.ahead = index - 1;
      made.after = {{plan.early ? milestone::all_triggered : milestone::completed, index - 1}};
      made.delay_ns = plan.early ? device_.early_launch_ns : device_.stream_gap_ns;
    }
    return made;
  }

private:
  const stage_load& load(const any_stage& stage) const { return loads_[stage.index()]; }

  block_footprint footprint(const any_stage& stage) const {
    return slots_ != 0 ? block_footprint{} : footprint_of(device_, load(stage).block);
  }

  void choose_mode(const schedule& how, const chain& chain) {
    mode_ = how.mode;
    const std::string gpu_name(device_.name);
    const bool has_pdl = device_.compute_capability >= 90;
    if (mode_ == launch_mode::pdl && !has_pdl)
      throw invalid_argument("mode pdl: " + gpu_name +
                             " has no programmatic dependent launch; use mode automatic");
    if (mode_ == launch_mode::automatic) {
      mode_ = has_pdl ? launch_mode::pdl : launch_mode::streams;
      if (!has_pdl) reason_ = gpu_name + " has no programmatic dependent launch";
    }
    if (mode_ != launch_mode::streams || slots_ != 0) return;
    const block_footprint gate = footprint_of(device_, {.threads = 1, .registers = 64});
    for (const auto& stage : chain.stages()) {
      if (stage->tiles() == 0 || fit_together(capacity_of(device_), footprint(*stage), 1, gate))
        continue;
      mode_ = launch_mode::serial;
      reason_ = "the gate does not fit beside a block of stage '" + stage->name() + "'";
      return;
    }
  }

  /// A stage behind a gate, in a stream of its own; event edges come on top.
  void pass_gate(launch& made, const stage_plan& plan, u32 first, u32 index,
                 const schedule& how) const {
    const bool gated = how.gate == gate_kind::all_blocks || how.gate == gate_kind::first_block ||
                       (how.gate == gate_kind::as_needed && !gate_needless());
    const milestone opens =
        how.gate == gate_kind::first_block ? milestone::one_started : milestone::all_started;
    for (u32 before = first; gated && before < index; ++before)
      made.after.push_back({opens, before});
    if (gated) made.delay_ns = device_.gate_ns;
    for (const any_stage* producer : plan.events)
      for (u32 before = first; before < index; ++before)
        if (plan_.stages[before - first].stage == producer)
          made.after.push_back({milestone::completed, before});
    if (!plan.events.empty()) made.delay_ns = device_.stream_gap_ns;
  }

  gpu device_;
  std::vector<stage_load> loads_; ///< By stage.
  u32 slots_;
  launch_mode mode_ = launch_mode::serial;
  std::string reason_;
  launch_plan plan_;
};

} // namespace cusync::sim
