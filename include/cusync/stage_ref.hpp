// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/config.hpp>      // CUSYNC_DEVICE
#include <cusync/dependence.hpp>  // dependence
#include <cusync/sync_policy.hpp> // sync_policy, semaphore_range
#include <cusync/tile_order.hpp>  // tile_order

#include <cstddef> // size_t
#include <utility> // index_sequence_for

namespace cusync {

// Who takes part in a call. All of them must make it, together.
struct by_block {}; ///< All threads of the block; the call holds a block barrier.
struct by_warp {};  ///< All lanes of one warp, always the same warp of the block.

/// An input of a stage: the operand, the policy that guards it and what a tile reads through it.
template <int Operand, sync_policy Policy, dependence Dependence> struct reads {
  static constexpr int operand = Operand;
};

template <class... Reads> struct inputs {};
/// One set of semaphores a policy; consumers whose policies compare equal share a set.
template <sync_policy... Policies> struct outputs {};

/// What makes the wait on an input safe in the launch at hand.
enum class wait_kind : u32 {
  none,       ///< Launch order: the producer is complete before the stage starts.
  grid,       ///< `griddepcontrol.wait` on the stage launched right before this one.
  semaphores, ///< The policy's semaphores.
};

/// Where a block's tiles come from: part of the stage's type, so that the usual case costs nothing.
enum class tile_source : u32 {
  block_index, ///< One tile a block: the block's linear index is the position in the order.
  counter,     ///< Any number of blocks, also fewer than tiles: claimed from the stage's tickets.
};

/// What a wait that gave up leaves behind, in host memory that the device writes.
struct spin_report {
  u32 raised; ///< 0, or a `spin_failure`, written last.
  u32 stage;
  u32 operand;
  tile_coord tile; ///< Of the consumer.
  u32 semaphore;
  u32 seen;
  u32 wanted;
};

enum class spin_failure : u32 { none, wait_expired, ticket_out_of_range };
enum class on_expiry : u32 { report, trap };

/// What a launch asks of a stage's blocks: bits of `stage_link::duties`, read once.
enum duty : u32 {
  triggers = 1, ///< Allow the next stage's launch at their entry.
  starts = 2,   ///< Count themselves as started (mode `streams`).
  draws = 4,    ///< Draw a ticket: some wait needs the run number.
  waits = 8,    ///< Wait on some operand.
  posts = 16,   ///< Post: some later stage looks at this stage's semaphores.
  stays = 32,   ///< Not complete before the stage ahead is: this one was launched early.
};

/// The part of a stage's view that does not depend on its policies. Pointers are to memory of the
/// chain's state, which outlives the run.
struct stage_link {
  u32 duties = 0;
  u32 tiles = 0;
  u64* word = nullptr;    ///< (run : 32 | ticket : 32) of this stage; no other stage reads it.
  u32 tickets = 0;        ///< Draws in one run.
  u32 stage = 0;          ///< Index in the chain, for the report.
  u32* started = nullptr; ///< Blocks of the chain that have started, over all runs.

  // What only a wait that spins looks at.
  u32* abort = nullptr;            ///< Not 0 once a wait of the run has given up.
  spin_report* report = nullptr;   ///< The host's memory.
  const u32* semaphores = nullptr; ///< All of the chain: a post anywhere is progress.
  u32 semaphore_total = 0;
  on_expiry expiry = on_expiry::report;
  u64 spin_limit_ns = 0; ///< 0: no limit.
};

/// True once `seen` posts reach `wanted`, both modulo 2^32. Right while fewer than 2^31 posts lie
/// between a semaphore and any value that is waited for.
CUSYNC_HOST_DEVICE constexpr bool reached(u32 seen, u32 wanted) {
  return static_cast<std::int32_t>(seen - wanted) >= 0;
}

/// The value of a semaphore after which run `run` has posted it `posts` times. Never reset: it grows
/// by `posts` each run, and 2^32 runs later both have wrapped to where they were.
CUSYNC_HOST_DEVICE constexpr u32 wanted_in_run(u32 run, u32 posts) { return (run + 1) * posts; }

/// What `wait_ahead` returns where no later step of the tile needs a wait.
inline constexpr u32 no_step = 0xffffffff;

/// A tile, or none. `while (auto tile = stage.tile())`.
struct claimed_tile {
  tile_coord coord;
  bool valid = false;
  CUSYNC_HOST_DEVICE constexpr explicit operator bool() const { return valid; }
  CUSYNC_HOST_DEVICE constexpr tile_coord operator*() const { return coord; }
};

template <class Reads> struct input_ref;

/// One input inside a stage's view.
template <int Operand, class Policy, class Dependence>
struct input_ref<reads<Operand, Policy, Dependence>> {
  static constexpr int operand = Operand;
  Policy policy{};
  Dependence dependence{};
  const u32* semaphores = nullptr; ///< Null where the launch makes them needless.
  bool grid_wait = false;          ///< Wait for the stage launched right before this one instead.
  semaphore_range passed{};        ///< The last range waited for: asking again costs a comparison.
};

/// One output inside a stage's view: a set of semaphores.
template <std::size_t Index, class Policy> struct output_ref {
  Policy policy{};
  u32* semaphores = nullptr; ///< Null where no consumer looks at this set.

  /// By one thread, behind the barrier. Releases at gpu scope, and by that barrier's cumulativity
  /// also what the other participants wrote.
  template <class Backend> CUSYNC_DEVICE void post(tile_coord tile) const {
    if (semaphores != nullptr) Backend::add_release(semaphores + policy.semaphore_of(tile), 1);
  }
};

template <class Indices, class... Policies> struct output_refs;

template <std::size_t... Index, class... Policies>
struct output_refs<std::index_sequence<Index...>, Policies...> : output_ref<Index, Policies>... {
  template <class Backend> CUSYNC_DEVICE void post_each(tile_coord tile) const {
    (output_ref<Index, Policies>::template post<Backend>(tile), ...);
  }
};

/// What every block reads first, at the front of the view: its cold misses are on the critical path.
template <class Order> struct stage_head {
  tile_extent grid;
  Order order;
  stage_link link;
};

namespace detail {
/// The view of operand `Operand`; no viable overload where the stage does not declare it.
template <int Operand, class Policy, class Dependence>
CUSYNC_HOST_DEVICE constexpr auto&
find_input(input_ref<reads<Operand, Policy, Dependence>>& input) {
  return input;
}
} // namespace detail

template <class Backend, class Order, class Inputs, class Outputs, tile_source Source>
class stage_ref;

/// What a kernel holds of its stage: trivially copyable, passed by value as the last argument.
///
/// A block calls `start()` once, then `tile()` until it returns none, and inside a tile `wait` before
/// an operand's loads and `post` after the tile's stores:
///
///     stage.start();
///     while (auto tile = stage.tile()) {
///       for (u32 k = 0; k < steps; ++k) {
///         stage.wait(A, *tile, k);
///         ... load A and B, multiply
///       }
///       ... store
///       stage.post(*tile);
///     }
///
/// `Backend` supplies the block's primitives: `cuda_backend` on a GPU, `sim::host_backend` on the
/// virtual GPU. Every call is collective over its participants and sits in control flow that is
/// uniform for them. Produced operands are read with plain loads: no `const __restrict__`, no
/// `__ldg`, since the read-only path may return what it cached before the wait.
template <class Backend, tile_order Order, class... Reads, class... Policies, tile_source Source>
class stage_ref<Backend, Order, inputs<Reads...>, outputs<Policies...>, Source>
    : public stage_head<Order>,
      public input_ref<Reads>...,
      public output_refs<std::index_sequence_for<Policies...>, Policies...> {
public:
  using stage_head<Order>::link;
  using stage_head<Order>::order;
  using stage_head<Order>::grid;

  /// First call of every block, before anything that an earlier stage writes is touched.
  ///
  /// Allows the next stage to be launched, which says nothing about data, and draws the block's
  /// ticket; the draw's latency runs on until the first wait needs the run number.
  template <class By = by_block> CUSYNC_DEVICE void start(By by = {}) {
    forget_launch_values();
    Backend::start();
    if (has(duty::triggers)) Backend::trigger();
    if (has(duty::starts) && Backend::rank(by) == 0) Backend::add(link.started, 1);
    if constexpr (draws_at_start)
      Backend::draw_if(has(duty::draws) && Backend::rank(by) == 0, link.word, claim_);
  }

  /// The next tile, the same for all participants, or none; none implies `finish()`.
  template <class By = by_block> CUSYNC_DEVICE claimed_tile tile(By by = {}) {
    const u32 index = next_index(by);
    if (index >= link.tiles) {
      finish(by);
      return {};
    }
    const tile_coord coord = order.tile_at(index, grid);
    Backend::begin_tile(coord);
    return {coord, true};
  }

  /// Calls `body(tile)` for each tile that `tile()` would give. The same loop, and none at all in a
  /// stage of one tile a block: for tiles of a few microseconds.
  template <class Body, class By = by_block>
  CUSYNC_DEVICE void for_each_tile(const Body& body, By by = {}) {
    if constexpr (Source == tile_source::counter) {
      while (auto next = tile(by)) body(*next);
    } else {
      const u32 index = Backend::block_index();
      if (index < link.tiles) {
        const tile_coord coord = order.tile_at(index, grid);
        Backend::begin_tile(coord);
        body(coord);
      }
      finish(by);
    }
  }

  /// Returns once all producer tiles that `step` of `tile` reads through the operand are complete.
  ///
  /// Acquires, at gpu scope, all writes made before their posts, for every participant. Compiles to
  /// nothing for an operand without a dependence; costs a comparison where the last wait on this
  /// operand was for the same semaphores. Loads of other operands may be issued ahead of it.
  template <int Operand, class By = by_block>
  CUSYNC_DEVICE void wait(operand<Operand> which, tile_coord tile, u32 step, By by = {}) {
    if constexpr (declares(which)) {
      auto& input = detail::find_input<Operand>(*this);
      const step_range steps = input.dependence.steps(tile);
      Backend::work_until(step - steps.begin, steps.end - steps.begin);
      await(
          input, tile, [&] { return input.dependence.reads(tile, step); }, by);
    }
  }

  /// Like `wait`, and returns the first later step that needs another one, or `no_step`.
  ///
  /// In the same round trip it looks at what the steps behind read, without waiting for that: where
  /// many semaphores guard a tile (`TileSync`), those that are there cost one call and not one each.
  /// A kernel runs its usual loop up to the step returned, without a test a step.
  template <int Operand, class By = by_block>
  CUSYNC_DEVICE u32 wait_ahead(operand<Operand> which, tile_coord tile, u32 step, By by = {}) {
    if constexpr (declares(which)) {
      auto& input = detail::find_input<Operand>(*this);
      const step_range steps = input.dependence.steps(tile);
      Backend::work_until(step - steps.begin, steps.end - steps.begin);
      return await_ahead(input, tile, {step, steps.end}, by);
    }
    return no_step;
  }

  /// The same for all that `tile` reads through the operand.
  template <int Operand, class By = by_block>
  CUSYNC_DEVICE void wait_all(operand<Operand> which, tile_coord tile, By by = {}) {
    if constexpr (declares(which)) {
      auto& input = detail::find_input<Operand>(*this);
      await(
          input, tile, [&] { return input.dependence.reads(tile); }, by);
    }
  }

  /// After the last store of `tile` (or of one slice of it), once a tile and slice.
  ///
  /// Releases, at gpu scope, what all participants wrote before. Participants are those who stored;
  /// a tile stored by TMA is posted by the warp that issued the stores, after its
  /// `cp.async.bulk.wait_group 0`.
  template <class By = by_block> CUSYNC_DEVICE void post(tile_coord tile, By by = {}) {
    Backend::work_until(1, 1);
    if constexpr (sizeof...(Policies) > 0) {
      if (!has(duty::posts)) return;
      Backend::sync(by);
      if (Backend::rank(by) == 0) this->template post_each<Backend>(tile);
    }
  }

  /// Last call of a block that leaves without having been told that there is no tile.
  ///
  /// The block that drew the run's last ticket opens the next run, and, in a stage that was launched
  /// early, holds the stage open until the stage before it is complete: whoever is ordered after the
  /// last stage is then ordered after all of them.
  template <class By = by_block> CUSYNC_DEVICE void finish(By by = {}) {
    Backend::finish();
    if (!has(duty::draws | duty::stays)) return;
    if (Backend::rank(by) != 0) return;
    bool last = Backend::block_index() == 0;
    if constexpr (may_draw)
      if (has(duty::draws)) last = close_run();
    if (last && has(duty::stays)) Backend::grid_wait();
  }

  /// Whether a dependence is declared for the operand.
  template <int Operand> CUSYNC_HOST_DEVICE static constexpr bool declares(operand<Operand>) {
    return ((Reads::operand == Operand) || ...);
  }

private:
  /// A stage of one tile a block needs the run number for its waits alone.
  static constexpr bool draws_at_start = Source == tile_source::block_index && sizeof...(Reads) > 0;
  static constexpr bool may_draw = Source == tile_source::counter || sizeof...(Reads) > 0;

  /// Sets what is the same in every block: the compiler then knows it, and need not load it.
  CUSYNC_DEVICE void forget_launch_values() {
    claim_ = 0;
    taken_ = false;
    ((static_cast<input_ref<Reads>&>(*this).passed = {}), ...);
  }

  CUSYNC_DEVICE bool has(u32 any_of) const { return (link.duties & any_of) != 0; }

  /// A position in the order, or past the end: the block's own, once; or the next ticket. A block
  /// stops at its first invalid ticket, so that a run draws exactly tiles + blocks of them.
  template <class By> CUSYNC_DEVICE u32 next_index(By by) {
    if constexpr (Source == tile_source::block_index) {
      const u32 index = taken_ ? link.tiles : Backend::block_index();
      taken_ = true;
      return index;
    } else {
      Backend::draw_if(Backend::rank(by) == 0, link.word, claim_);
      claim_ = Backend::share(claim_, by);
      return static_cast<u32>(claim_);
    }
  }

  /// By the first participant. The drawer of ticket T-1 adds 2^32 - T: the ticket is 0 again and the
  /// run one higher, for the next launch; every other block has drawn already.
  CUSYNC_DEVICE bool close_run() {
    const u32 ticket = static_cast<u32>(claim_);
    if (ticket >= link.tickets) [[unlikely]]
      Backend::raise(link, spin_failure::ticket_out_of_range, {});
    const bool last = ticket + 1 == link.tickets;
    if (last) Backend::add(link.word, (u64{1} << 32) - link.tickets);
    return last;
  }

  /// Whether the launch makes semaphores needless, once a grid wait that it asks for is over.
  template <class Input> CUSYNC_DEVICE bool ordered_by_launch(const Input& input) const {
    if (!has(duty::waits)) return true;
    if (input.grid_wait) Backend::grid_wait(); // by every thread that loads
    return input.grid_wait || input.semaphores == nullptr;
  }

  /// `needed` is evaluated only where there is something to wait for.
  template <class Input, class Needed, class By>
  CUSYNC_DEVICE void await(Input& input, tile_coord tile, const Needed& needed, By by) {
    if (ordered_by_launch(input)) return;
    await_guards(input, input.policy.guards(needed()), tile, by);
  }
  template <class Input, class By>
  CUSYNC_DEVICE void await_guards(Input& input, semaphore_range guards, tile_coord tile, By by) {
    if (guards == input.passed) return;
    input.passed = guards;
    poll(input, guards, tile, by);
    Backend::sync(by);
  }

  /// For the first of `steps`; returns what `wait_ahead` does.
  template <class Input, class By>
  CUSYNC_DEVICE u32 await_ahead(Input& input, tile_coord tile, step_range steps, By by) {
    if (ordered_by_launch(input)) return no_step;
    const semaphore_range guards = input.policy.guards(input.dependence.reads(tile));
    if (guards == input.passed) return no_step;
    if (guards == input.policy.guards(input.dependence.reads(tile, steps.begin))) {
      await_guards(input, guards, tile, by);
      return no_step;
    }
    u32 missing = no_step;
    if (Backend::rank(by) < Backend::pollers(by)) missing = look_ahead(input, tile, steps, by);
    return Backend::tell_all(missing, by);
  }

  /// By the pollers, who share the steps in order. The first step of all is waited for.
  template <class Input, class By>
  CUSYNC_DEVICE u32 look_ahead(const Input& input, tile_coord tile, step_range steps, By by) {
    const u32 run = Backend::from_first(static_cast<u32>(claim_ >> 32), by);
    const u32 each = ceil_div(steps.end - steps.begin, Backend::pollers(by));
    const u32 begin = steps.begin + Backend::rank(by) * each;
    const u32 end = detail::min(begin + each, steps.end);
    u32 missing = no_step;
    semaphore_range seen{};
    for (u32 step = begin; step < end && missing == no_step; ++step) {
      const semaphore_range guards = input.policy.guards(input.dependence.reads(tile, step));
      if (guards == seen) continue;
      seen = guards;
      for (u32 position = 0; position < guards.count() && missing == no_step; ++position) {
        const u32 semaphore = guards.at(position);
        const u32 posts = Backend::load_acquire(input.semaphores + semaphore);
        if (!settle(input, semaphore, posts, run, tile, step == steps.begin)) missing = step;
      }
    }
    return Backend::least(missing, by);
  }

  /// By one participant, whose look saw `seen` posts. Whether they are enough; waits until they are
  /// where they `must` be.
  template <class Input>
  CUSYNC_DEVICE bool settle(const Input& input, u32 semaphore, u32 seen, u32 run, tile_coord tile,
                            bool must) const {
    const u32 wanted = wanted_in_run(run, input.policy.posts_expected(semaphore));
    if (!reached(seen, wanted)) [[unlikely]] {
      if (!must) return false;
      Backend::spin(
          link, input.semaphores + semaphore,
          {0, link.stage, static_cast<u32>(Input::operand), tile, semaphore, seen, wanted});
    }
    Backend::passed(input.semaphores + semaphore);
    return true;
  }

  /// The first warp of the participants looks at the semaphores, a lane each, so that a row of tiles
  /// costs one round trip; the barrier behind hands what its lanes acquired to all.
  template <class Input, class By>
  CUSYNC_DEVICE void poll(const Input& input, semaphore_range guards, tile_coord tile, By by) {
    const u32 lanes = Backend::pollers(by);
    u32 position = Backend::rank(by);
    if (position >= lanes) return;
    // The first look goes out before the run number is needed: two round trips become one.
    u32 seen = position < guards.count()
                   ? Backend::load_acquire(input.semaphores + guards.at(position))
                   : 0;
    const u32 run = Backend::from_first(static_cast<u32>(claim_ >> 32), by);
    while (position < guards.count()) {
      settle(input, guards.at(position), seen, run, tile, true);
      position += lanes;
      if (position < guards.count())
        seen = Backend::load_acquire(input.semaphores + guards.at(position));
    }
  }

  u64 claim_ = 0;      ///< (run | ticket) last drawn; valid in the first participant.
  bool taken_ = false; ///< The block has had its one tile.
};

} // namespace cusync
