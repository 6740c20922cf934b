// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/coverage.hpp>         // require_coverage, require_reached
#include <cusync/errors.hpp>           // invalid_argument
#include <cusync/launch_mode.hpp>      // launch_mode
#include <cusync/policy/grid_sync.hpp> // GridSync
#include <cusync/policy/no_sync.hpp>   // NoSync
#include <cusync/stage.hpp>            // CuStage, any_stage, stage_options

#include <functional>  // function
#include <memory>      // unique_ptr
#include <string>      // string
#include <type_traits> // is_same_v
#include <utility>     // move
#include <vector>      // vector

namespace cusync {

namespace detail {

/// What a chain must know of a policy beyond the concept.
struct policy_traits {
  bool whole_grid;
  bool unguarded;
  bool covers_all; ///< `covers_every_range`.
};

/// By type, or, where the policy is known at run time only, as it says itself.
template <class Policy> policy_traits traits_of(const Policy& policy) {
  if constexpr (requires { policy.whole_grid(); })
    return {policy.whole_grid(), policy.unguarded(), policy.covers_all()};
  else
    return {std::is_same_v<Policy, GridSync>, std::is_same_v<Policy, NoSync>,
            covers_every_range<Policy>};
}

} // namespace detail

/// What a stage reads of a buffer's content from before the chain.
struct initial_read {
  const any_stage* reader = nullptr;
  buffer of;
  element_extent tile;                         ///< Elements of one of the tiles read.
  tile_extent grid;                            ///< Of those tiles.
  std::function<tile_range(tile_coord)> reads; ///< By the reader's tile.
};

/// The stages of a chain and what they read of each other: any directed acyclic graph. Pure
/// description; `CuSync` adds a GPU to it, `sim::CuSync` the virtual one.
class chain {
public:
  chain() = default;
  chain(const chain&) = delete; // stages are handed out by reference
  chain& operator=(const chain&) = delete;

  /// Adds a stage. The reference is valid as long as the chain.
  ///
  /// Throws `invalid_argument` where the order is no permutation of the grid, or the grid or the
  /// blocks cannot be counted in 31 bits.
  template <class Stage, class Order>
  Stage& stage(std::string name, tile_extent grid, Order order, stage_options options = {}) {
    refuse_after_sealing();
    require_grid(name, grid, options);
    if (options.writes.index != cusync::buffer::none) require_buffer(options.writes, name);
    require_positive(options.tile, "stage '" + name + "': tile");
    if (!faults_kept_) require_permutation(order, grid);
    auto made = std::make_unique<Stage>(std::move(name), static_cast<u32>(stages_.size()), grid,
                                        order, options);
    Stage& result = *made;
    if (!faults_kept_ && result.blocks() < result.tiles() &&
        result.source() == tile_source::block_index)
      throw invalid_argument("stage '" + result.name() + "' has " +
                             std::to_string(result.blocks()) + " blocks for " +
                             std::to_string(result.tiles()) +
                             " tiles, and its type takes one tile a block; use "
                             "CuStage<..., tile_source::counter>");
    stages_.push_back(std::move(made));
    return result;
  }

  /// Declares that `consumer` reads `producer`'s output through operand `Operand`, guarded by
  /// `Policy`, as `reads` says.
  ///
  /// Throws `invalid_argument` where the grids are not those of the two stages, the operand has a
  /// producer already, or the policy does not cover the dependence.
  template <derivable_policy Policy, class Producer, class Consumer, int Operand,
            dependence Dependence>
  void dependency(Producer& producer, Consumer& consumer, operand<Operand> which,
                  const Dependence& reads) {
    dependency(producer, consumer, which, reads, derive<Policy>(reads));
  }

  /// The same with a policy that has parameters, or one of the user's.
  template <class Producer, class Consumer, int Operand, dependence Dependence, sync_policy Policy>
  void dependency(Producer& producer, Consumer& consumer, operand<Operand>, const Dependence& reads,
                  const Policy& policy) {
    refuse_after_sealing();
    require_owned(producer);
    require_owned(consumer);
    if constexpr (requires { reads.validate(); }) reads.validate();
    if constexpr (requires { policy.validate(); }) policy.validate();
    require_grids(producer, consumer, reads.producer(), reads.consumer());
    const detail::policy_traits is = detail::traits_of(policy);
    if (!faults_kept_ && !is.unguarded) {
      require_reached(policy, producer.grid());
      if (!is.covers_all) require_coverage(policy, reads);
    }
    const u32 output = producer.provide(policy);
    consumer.template depend<Operand>(producer, output, policy, reads, is.whole_grid, is.unguarded);
  }

  /// A buffer that stages write (`stage_options::writes`) or read.
  cusync::buffer buffer(std::string name) {
    refuse_after_sealing();
    buffers_.push_back(std::move(name));
    return {static_cast<u32>(buffers_.size() - 1)};
  }

  /// Declares that `reader` reads what the buffer held before the chain, in tiles of `tile` elements:
  /// nothing to wait for, but no stage may overwrite it too early.
  template <class Reader, dependence Dependence>
  void initial(cusync::buffer of, Reader& reader, element_extent tile, const Dependence& reads) {
    refuse_after_sealing();
    require_owned(reader);
    require_buffer(of, reader.name());
    require_positive(tile, "initial read of stage '" + reader.name() + "': tile");
    if constexpr (requires { reads.validate(); }) reads.validate();
    require_grids(reader, reader, reader.grid(), reads.consumer());
    initial_reads_.push_back(
        {&reader, of, tile, reads.producer(),
         [reads](tile_coord each) -> tile_range { return reads.reads(each); }});
  }

  const std::vector<std::unique_ptr<any_stage>>& stages() const { return stages_; }
  const std::vector<std::string>& buffers() const { return buffers_; } ///< Names.
  const std::vector<initial_read>& initial_reads() const { return initial_reads_; }
  /// Orders, policies and numbers of blocks have not been checked (`keep_faults`).
  bool keeps_faults() const { return faults_kept_; }

  /// Semaphores of all stages together; known once the chain is sealed.
  u32 semaphore_total() const { return semaphore_total_; }

  /// The stages in an order in which every producer stands before its consumers; declaration order
  /// where that is one. Throws `invalid_argument` on a cycle, naming its stages.
  std::vector<const any_stage*> topological_order() const {
    std::vector<const any_stage*> order;
    std::vector<bool> placed(stages_.size(), false);
    while (order.size() < stages_.size()) {
      const any_stage* next = next_ready(placed);
      if (next == nullptr) throw invalid_argument(cycle_text(placed));
      placed[next->index()] = true;
      order.push_back(next);
    }
    return order;
  }

protected:
  /// Takes orders, policies and numbers of blocks as they are from now on, for `sim::check` to refute.
  /// Such a chain is not to be launched unless that has proved it.
  void keep_faults() { faults_kept_ = true; }

  /// Ends the description: lays out the semaphores. Called by the first set-up of a launch.
  void seal() {
    if (sealed_) return;
    if (stages_.empty()) throw invalid_argument("chain has no stage; add one with stage(...)");
    topological_order();
    u64 offset = 0;
    for (const auto& stage : stages_)
      for (any_stage::output_set& set : stage->declared_outputs()) {
        set.offset = static_cast<u32>(offset);
        offset += set.semaphores;
      }
    if (offset > max_tiles)
      throw invalid_argument("chain needs " + std::to_string(offset) +
                             " semaphores, more than 2^31 - 1; use a coarser policy");
    semaphore_total_ = static_cast<u32>(offset);
    sealed_ = true;
  }

  bool sealed() const { return sealed_; }

  /// Enters one stage's call of a launch into `by_stage`, which has an entry a stage.
  template <class Call>
  void place(std::vector<const Call*>& by_stage, const any_stage& stage, const Call& call) const {
    if (stage.index() >= by_stage.size() || stages_[stage.index()].get() != &stage)
      throw invalid_argument("call of stage '" + stage.name() + "' belongs to another chain");
    if (by_stage[stage.index()] != nullptr)
      throw invalid_argument("stage '" + stage.name() + "' is called twice in one launch");
    by_stage[stage.index()] = &call;
  }

  template <class Call> void require_all_placed(const std::vector<const Call*>& by_stage) const {
    for (const auto& stage : stages_)
      if (by_stage[stage->index()] == nullptr)
        throw invalid_argument("launch has no call of stage '" + stage->name() +
                               "'; give one a stage");
  }

  /// What all semaphores hold after that many runs of a sealed chain, modulo 2^32.
  std::vector<u32> semaphores_after(u32 runs) const {
    std::vector<u32> values(semaphore_total_);
    for (const auto& stage : stages_)
      for (u32 output = 0; output < stage->declared_outputs().size(); ++output) {
        const any_stage::output_set& set = stage->declared_outputs()[output];
        for (u32 i = 0; i < set.semaphores; ++i)
          values[set.offset + i] = runs * stage->posts_expected(output, i);
      }
    return values;
  }

private:
  void refuse_after_sealing() const {
    if (sealed_)
      throw invalid_argument(
          "chain was launched already; declare its stages and dependences before");
  }

  static void require_grid(const std::string& name, tile_extent grid, stage_options options) {
    require_countable(grid, "stage '" + name + "': grid");
    if (grid.count() + options.blocks > max_tiles)
      throw invalid_argument("stage '" + name + "': grid " + to_string(grid) + " with " +
                             std::to_string(options.blocks) + " blocks draws more than " +
                             std::to_string(max_tiles) +
                             " tickets; use larger tiles or fewer blocks");
  }

  void require_buffer(cusync::buffer of, const std::string& stage) const {
    if (of.index < buffers_.size()) return;
    throw invalid_argument("stage '" + stage +
                           "' names a buffer that is not this chain's; make it with buffer(...)");
  }

  void require_owned(const any_stage& stage) const {
    if (stage.index() >= stages_.size() || stages_[stage.index()].get() != &stage)
      throw invalid_argument(
          "stage '" + stage.name() +
          "' belongs to another chain; both sides of a dependency are of one chain");
  }

  static void require_grids(const any_stage& producer, const any_stage& consumer, tile_extent from,
                            tile_extent to) {
    const auto refuse = [](const any_stage& stage, const char* side, tile_extent grid) {
      throw invalid_argument("stage '" + stage.name() + "' has grid " + to_string(stage.grid()) +
                             ", the dependence declares a " + side + " grid of " + to_string(grid) +
                             "; make them equal");
    };
    if (from != producer.grid()) refuse(producer, "producer", from);
    if (to != consumer.grid()) refuse(consumer, "consumer", to);
  }

  const any_stage* next_ready(const std::vector<bool>& placed) const {
    for (const auto& stage : stages_) {
      bool ready = !placed[stage->index()];
      for (const any_stage::input_edge& input : stage->declared_inputs())
        ready = ready && (input.producer == nullptr || placed[input.producer->index()]);
      if (ready) return stage.get();
    }
    return nullptr;
  }

  std::string cycle_text(const std::vector<bool>& placed) const {
    std::string names;
    for (const auto& stage : stages_)
      if (!placed[stage->index()]) names += (names.empty() ? "'" : ", '") + stage->name() + "'";
    return "the dependences form a cycle among or before the stages " + names +
           "; a chain is a directed acyclic graph";
  }

  std::vector<std::unique_ptr<any_stage>> stages_;
  std::vector<std::string> buffers_; ///< Names.
  std::vector<initial_read> initial_reads_;
  u32 semaphore_total_ = 0;
  bool sealed_ = false;
  bool faults_kept_ = false;
};

} // namespace cusync
