// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/overwrite.hpp>           // find_overwrite
#include <cusync/sim/check_deadlock.hpp>  // deadlock_search
#include <cusync/sim/check_edges.hpp>     // edge_check
#include <cusync/sim/check_report.hpp>    // check_report
#include <cusync/sim/check_residency.hpp> // residency
#include <cusync/sim/check_tiles.hpp>     // tiles_check
#include <cusync/sim/cusync.hpp>          // CuSync
#include <cusync/sim/launch_shape.hpp>    // launch_shape, stage_load

#include <string>  // string
#include <utility> // move
#include <vector>  // vector

namespace cusync::sim {

struct check_options {
  gate_kind gate = gate_kind::all_blocks; ///< Mode `streams`.
  u32 slots = 0;                          ///< Blocks at once on the whole GPU; 0: as many as fit.
  std::vector<stage_load> loads{};        ///< By stage; what is missing asks for little.
};

namespace detail {

class chain_check {
public:
  chain_check(const chain& of, const gpu& device, launch_mode mode, const check_options& options)
      : chain_(of), options_(with_loads(options, of)),
        shape_(of, device, how(mode, options), options_.loads) {}

  check_report run() {
    report_.mode = shape_.mode();
    report_.mode_reason = shape_.mode_reason();
    report_.results.push_back(tiles_check(plan()).run());
    look_at_edges();
    report_.results.push_back(liveness());
    report_.results.push_back(overwrites());
    return std::move(report_);
  }

private:
  static check_options with_loads(check_options options, const chain& of) {
    options.loads.resize(of.stages().size());
    return options;
  }
  static schedule how(launch_mode mode, const check_options& options) {
    return {.mode = mode, .gate = options.gate, .slots = options.slots};
  }
  const launch_plan& plan() const { return shape_.plan(); }

  void look_at_edges() {
    std::optional<counterexample> uncovered, threshold;
    u64 waits = 0;
    for (u32 k = 0; k < plan().stages.size(); ++k)
      for (u32 input = 0; input < plan().stages[k].waits.size(); ++input) {
        const any_stage::input_edge& edge = plan().stages[k].stage->declared_inputs()[input];
        if (edge.producer == nullptr || edge.producer->tiles() == 0) continue;
        edge_check checked(plan(), k, input);
        checked.run();
        report_.edges.push_back(checked.cost);
        waits += checked.cost.read;
        if (!uncovered) uncovered = std::move(checked.uncovered);
        if (!threshold) threshold = checked.early ? checked.early : checked.endless;
        if (!endless_) endless_ = std::move(checked.endless);
      }
    add(property::coverage, uncovered,
        "each of " + std::to_string(waits) +
            " reads of a produced tile stands behind a wait for it");
    add(property::thresholds, threshold,
        "each semaphore gets as many posts a run as its waits expect, in every run, past both "
        "wraps "
        "of 32 bits");
  }

  void add(property of, std::optional<counterexample>& found, const std::string& proof) {
    const bool wrong = found.has_value();
    report_.results.push_back(
        {of, wrong ? verdict::refuted : verdict::proved, wrong ? found->what : proof, found});
  }

  // --- liveness -----------------------------------------------------------------------------------

  property_result liveness() {
    if (endless_) return {property::liveness, verdict::refuted, endless_->what, endless_};
    if (plan().mode == launch_mode::serial)
      return proved("no block waits: each stage begins when the one ahead is complete");
    if (plan().mode == launch_mode::pdl)
      return proved("a block exists only when all blocks of all earlier stages have started, and "
                    "waits for those alone");
    const gate_kind gate = options_.gate;
    if (gate == gate_kind::all_blocks || (gate == gate_kind::as_needed && !shape_.gate_needless()))
      return proved(
          "each gate opens when all blocks of all earlier stages have started, and a block "
          "waits for those alone");
    return search(gate == gate_kind::first_block);
  }

  property_result search(bool gated) {
    const residency places(shape_, options_.slots, options_.loads);
    bool exact = true;
    std::vector<u64> most;
    for (const wait_style style : wait_styles) {
      deadlock_search search(plan(), places, gated, style);
      if (most.empty()) most = search.most_waiting();
      if (const auto found = search.run())
        return {property::liveness, verdict::refuted, found->what, found};
      exact = exact && search.exact();
    }
    u64 count = 0;
    for (const u64 each : most) count += each;
    const std::string blocks = std::to_string(count) + " blocks may wait, and " +
                               std::to_string(places.places()) + " places are there";
    if (places.never_shut_out(most)) return proved("at most " + blocks + " for others");
    if (exact && options_.slots != 0)
      return proved("all choices of blocks that start first were tried: at most " + blocks);
    return {property::liveness,
            verdict::unproved,
            "neither proof nor deadlock was found: up to " + blocks +
                "; use gate all_blocks, which is proved for any chain",
            {}};
  }

  static property_result proved(const std::string& why) {
    return {property::liveness, verdict::proved, why, {}};
  }

  // --- overwrites ---------------------------------------------------------------------------------

  property_result overwrites() {
    const auto found = find_overwrite(chain_, plan());
    if (!found)
      return {property::overwrites,
              verdict::proved,
              cusync::detail::overwrites_something(chain_)
                  ? "each write to a buffer comes behind all reads of what it destroys; a run ends "
                    "before the next one begins"
                  : "no buffer is declared to be written again within a run; a run ends before the "
                    "next one begins",
              {}};
    counterexample made;
    made.what = found->text(chain_);
    made.stage = found->writer->name();
    made.tile = found->writing;
    const bool read = found->reader != nullptr;
    const any_stage& other = read ? *found->reader : *found->producer;
    made.other = other.name();
    made.other_tile = read ? found->reading : found->lost;
    made.schedule = {"the block with tile " + to_string(*made.other_tile) + " of stage '" +
                         other.name() + "' is still " +
                         (read ? "to read tile " + to_string(found->lost) + " of buffer '" +
                                     chain_.buffers()[found->of.index] + "'"
                               : "to store it"),
                     "stage '" + made.stage + "' tile " + to_string(made.tile) +
                         " passes all its waits, none of which is behind that block's post",
                     "it stores over that tile"};
    return {property::overwrites, verdict::refuted, made.what, made};
  }

  const chain& chain_;
  check_options options_;
  launch_shape shape_;
  check_report report_;
  std::optional<counterexample> endless_;
};

} // namespace detail

/// Proves of a launch that it is right, or shows where it goes wrong: for every schedule of the mode on
/// that GPU, for kernels that wait before each step or once a tile. Nothing is executed.
///
/// About linear in tiles and in what distinct tiles read; memory is linear. Throws `invalid_argument`
/// where the GPU or the mode cannot run the chain at all.
inline check_report check(const chain& of, const gpu& device, launch_mode mode,
                          const check_options& options = {}) {
  return detail::chain_check(of, device, mode, options).run();
}

/// The same of a chain on the virtual GPU, which knows what its kernels ask for.
inline check_report check(const CuSync& of, const gpu& device, launch_mode mode,
                          check_options options = {}) {
  if (options.loads.empty()) options.loads = of.loads();
  return check(static_cast<const chain&>(of), device, mode, options);
}

} // namespace cusync::sim
