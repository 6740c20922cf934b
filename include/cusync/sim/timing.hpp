// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/chain.hpp>            // chain, any_stage
#include <cusync/errors.hpp>           // deadlock, wait_timeout
#include <cusync/sim/launch_shape.hpp> // launch_shape
#include <cusync/sim/reached_map.hpp>  // reached_map
#include <cusync/sim/report.hpp>       // report
#include <cusync/sim/scheduler.hpp>    // scheduler, action

#include <algorithm> // max
#include <string>    // string, to_string
#include <utility>   // exchange, move
#include <vector>    // vector

namespace cusync::sim {

/// What a simulation keeps besides its totals. A timeline takes some 100 bytes a tile.
enum class keep { totals, timeline };

/// How the kernels wait.
enum class waits {
  each_step, ///< `wait` before each step: a round trip for each semaphore range, there or not.
  ahead, ///< `wait_ahead`: looks at all later steps in the same round trip, up to one that is missing.
  whole_tile, ///< `wait_all`: once, for all that the tile reads.
};

struct timing_options {
  keep kept = keep::totals;
  waits style = waits::each_step;
};

/// The engine that only keeps time: the chain's own policies, orders and dependences, but no kernels
/// and no data. A block waits as the options say, and posts at the end.
class timing {
public:
  /// `shape` is that of a chain whose semaphores are laid out, and outlives the engine.
  timing(const launch_shape& shape, const schedule& how, u32 semaphore_total,
         timing_options options = {})
      : shape_(shape), how_(how), keep_(options.kept), style_(options.style), random_(~how.seed),
        semaphores_(semaphore_total, 0), expected_(semaphore_total, 0),
        scheduler_(*this, shape.device(), how, semaphores_.data(), semaphore_total) {
    for (const stage_plan& plan : shape.plan().stages) {
      inputs_ = std::max(inputs_, plan.waits.size());
      for (u32 i = 0; i < plan.posted.size(); ++i)
        if (plan.posted[i]) add_set(*plan.stage, i);
    }
  }

  /// `runs` runs, one behind the other. Throws `deadlock` or `wait_timeout`.
  report run(u32 runs = 1) {
    const u32 stages = static_cast<u32>(shape_.plan().stages.size());
    for (u32 i = 0; i < runs * stages; ++i) {
      launches_.push_back(timed(shape_.plan().stages[i % stages], i / stages));
      scheduler_.add(shape_.launch_at(i % stages, i - i % stages, how_));
    }
    scheduler_.run();
    report result = std::move(report_);
    for (u32 i = 0; i < launches_.size(); ++i) {
      launches_[i].record.start_ns = scheduler_.launch_at(i).first_block_ns;
      launches_[i].record.end_ns = scheduler_.launch_at(i).end_ns;
      result.stages.push_back(std::move(launches_[i].record));
    }
    shape_.summarise(result);
    return result;
  }

  // --- called by the scheduler ------------------------------------------------------------------

  void placed(u32 id) {
    if (blocks_.size() <= id) {
      blocks_.resize(id + 1);
      progress_.resize((id + 1) * inputs_);
    }
    block& placed = blocks_[id];
    placed.next = step::start;
    placed.grid_passed = false;
    const std::size_t inputs = launches_[scheduler_.at(id).launch].inputs.size();
    for (std::size_t i = 0; i < inputs; ++i) of(id, i) = {};
  }

  action resume(u32 id) {
    block& now = blocks_[id];
    timed_launch& own = launches_[scheduler_.at(id).launch];
    for (;;) switch (now.next) {
      case step::start:
        start(id, now, own);
        break;
      case step::claim: {
        now.ticket = own.drawn++;
        now.next = step::begin;
        return {action::kind::elapse, shape_.device().claim_ns};
      }
      case step::begin:
        begin(id, now, own);
        break;
      case step::work: {
        const action next = work(id, now, own);
        if (next.what != action::kind::exit) return next;
        break;
      }
      case step::post:
        post(now, own);
        break;
      case step::leave:
        now.next = step::exit;
        if (own.behind_trigger && closes_run(id, now, own)) return {action::kind::wait_for_grid};
        break;
      case step::exit:
        return {action::kind::exit};
      }
  }

  [[noreturn]] void stuck() const {
    for (u32 id = 0; id < scheduler_.resident_count(); ++id)
      if (scheduler_.at(id).is == resident::state::waiting)
        throw deadlock("deadlock: " + wait_text(id));
    throw deadlock("deadlock at " + std::to_string(scheduler_.now()) + " ns: a stage cannot begin");
  }
  [[noreturn]] void expired(u32 id) const {
    throw wait_timeout(wait_text(id) + "; nothing was posted for " +
                       std::to_string(how_.spin_limit_ns / 1'000'000) + " ms");
  }
  [[noreturn]] void left_open(u32 index, u32) const {
    throw error("stage '" + launches_[index].record.name +
                "' was complete before the stage ahead of it");
  }

private:
  enum class step { start, claim, begin, work, post, leave, exit };

  /// Semaphores of a stage that somebody looks at.
  struct semaphore_set {
    const any_stage* stage = nullptr;
    u32 output = 0;
    u32 offset = 0; ///< Of its first one in the chain.
    u32 number = 0; ///< In `reached_map`.
  };
  struct guarded_input {
    u32 input;
    wait_kind kind;
    semaphore_set set;  ///< The producer's that guards it.
    bool same_in_a_row; ///< What `looks_of` finds holds for all tiles of a row, of one slice.
    bool known = false; ///< For `row` and `slice`, in a block that has waited for nothing yet:
    u32 row = 0, slice = 0;
    u32 looks = 0;
    semaphore_range last{};
  };
  struct timed_launch {
    const any_stage* stage = nullptr;
    stage_record record;
    u64 tile_ns = 0;
    std::vector<guarded_input> inputs;
    std::vector<semaphore_set> outputs;
    bool draws = false, triggers = false, behind_trigger = false, counter = false;
    u32 drawn = 0;
  };

  /// How far a tile is in one of its inputs.
  struct progress {
    semaphore_range passed{}; ///< As in `input_ref`.
    semaphore_range range{};  ///< Looked at, from `position` on.
    u32 position = 0;
    u32 first = 0, step = 0,
        end = 0;          ///< `step` is the one whose range it is; none where it is `end`.
    bool at_once = false; ///< All steps have the same range.
    u64 due = 0;          ///< The work that comes before `step`.
  };
  struct block {
    step next = step::start;
    bool grid_passed = false;
    u32 ticket = 0; ///< Position in the order, for a stage that claims.
    tile_coord tile;
    u64 tile_ns = 0, worked = 0, waited = 0;
    u64 ahead = 0; ///< Of the scheduler's clock, when its work begins.
    u64 waiting_since = not_waiting;
    std::size_t record = 0; ///< In the timeline.
  };
  static constexpr u64 not_waiting = ~u64{0};

  void add_set(const any_stage& stage, u32 output) {
    const any_stage::output_set& set = stage.declared_outputs()[output];
    sets_.push_back({&stage, output, set.offset, reached_.add_set(set.semaphores)});
    for (u32 i = 0; i < set.semaphores; ++i)
      expected_[set.offset + i] = stage.posts_expected(output, i);
  }

  semaphore_set set_of(const any_stage* stage, u32 output) const {
    for (const semaphore_set& set : sets_)
      if (set.stage == stage && set.output == output) return set;
    return {};
  }

  timed_launch timed(const stage_plan& plan, u32 run) const {
    timed_launch made;
    made.stage = plan.stage;
    made.record = shape_.record_of(*plan.stage, run);
    made.tile_ns = shape_.time_of(*plan.stage).ns;
    for (u32 i = 0; i < plan.waits.size(); ++i) {
      if (plan.waits[i] == wait_kind::none) continue;
      const any_stage::input_edge& edge = plan.stage->declared_inputs()[i];
      made.inputs.push_back(
          {i, plan.waits[i], set_of(edge.producer, edge.output), plan.stage->same_in_a_row(i)});
    }
    for (u32 i = 0; i < plan.posted.size(); ++i)
      if (plan.posted[i]) made.outputs.push_back(set_of(plan.stage, i));
    made.draws = plan.draws;
    made.triggers = plan.triggers;
    made.behind_trigger = plan.early;
    made.counter = plan.stage->source() == tile_source::counter;
    return made;
  }

  // --- a block, step by step --------------------------------------------------------------------

  void start(u32 id, block& now, timed_launch& own) {
    if (own.triggers) scheduler_.trigger(id);
    scheduler_.count_start(id);
    if (own.draws && !own.counter) now.ticket = own.drawn++;
    now.next = own.counter ? step::claim : step::begin;
  }

  void begin(u32 id, block& now, timed_launch& own) {
    const u32 position = own.counter ? now.ticket : scheduler_.at(id).block;
    now.next = position < own.stage->tiles() ? step::work : step::leave;
    if (now.next == step::leave) return;
    now.tile = own.stage->tile_at(position);
    now.tile_ns = how_.tile_ns(own.record.name, now.tile, own.tile_ns, random_);
    now.worked = now.waited = 0;
    if (keep_ == keep::timeline) begin_record(id, now, own);
    const bool complete = inputs_complete(own);
    for (std::size_t i = 0; i < own.inputs.size(); ++i)
      if (complete)
        pass_input(of(id, i), now, own, own.inputs[i]);
      else if (own.inputs[i].kind == wait_kind::semaphores)
        begin_input(of(id, i), now, own, own.inputs[i].input);
  }

  /// Whether no wait of a tile that begins now has to wait: the usual case in a long stage, whose blocks
  /// exist only once all producer blocks do.
  bool inputs_complete(const timed_launch& own) {
    reached_.enter(own.record.run);
    for (const guarded_input& input : own.inputs)
      if (input.kind == wait_kind::grid || !reached_.complete(input.set.number, scheduler_.now()))
        return false;
    return true;
  }

  /// All waits on an input at once, with what they cost.
  void pass_input(progress& at, block& now, const timed_launch& own, guarded_input& input) {
    at.step = at.end = 0;
    now.ahead += looks_of(at, now, own, input) * shape_.device().satisfied_wait_ns;
  }

  u32 looks_of(progress& at, const block& now, const timed_launch& own, guarded_input& input) {
    const bool fresh = input.same_in_a_row && at.passed == semaphore_range{};
    if (fresh && input.known && input.row == now.tile.row && input.slice == now.tile.slice) {
      at.passed = input.last;
      return input.looks;
    }
    const u32 looks = count_looks(at, now, own, input.input);
    if (fresh) {
      input.known = true;
      input.row = now.tile.row;
      input.slice = now.tile.slice;
      input.looks = looks;
      input.last = at.passed;
    }
    return looks;
  }

  u32 count_looks(progress& at, const block& now, const timed_launch& own, u32 input) const {
    enter_input(at, now, own, input);
    const u32 begin = at.step, end = at.end;
    at.step = at.end;
    if (!at.at_once && style_ == waits::ahead)
      return ceil_div(own.stage->looks(input, now.tile, 1, at.passed), gpu::warp);
    if (!at.at_once) return own.stage->looks(input, now.tile, gpu::warp, at.passed);
    if (begin == end || at.range == at.passed) return 0;
    at.passed = at.range;
    return ceil_div(at.range.count(), gpu::warp);
  }

  void begin_input(progress& at, const block& now, const timed_launch& own, u32 input) const {
    enter_input(at, now, own, input);
    find_range(at, now, own, input);
  }

  void enter_input(progress& at, const block& now, const timed_launch& own, u32 input) const {
    const step_range steps = own.stage->steps(input, now.tile);
    at.first = at.step = steps.begin;
    at.end = steps.end;
    at.range = own.stage->guards(input, now.tile);
    at.at_once = style_ == waits::whole_tile || steps.begin == steps.end || at.range.count() <= 1 ||
                 at.range == own.stage->guards(input, now.tile, steps.begin);
  }

  /// Moves on to the next step whose range is another than the last one waited for.
  static void find_range(progress& at, const block& now, const timed_launch& own, u32 input) {
    at.position = 0;
    if (at.at_once && (at.range == at.passed || at.range.count() == 0)) at.step = at.end;
    if (!at.at_once)
      for (; at.step < at.end; ++at.step) {
        at.range = own.stage->guards(input, now.tile, at.step);
        if (at.range != at.passed && at.range.count() != 0) break;
      }
    at.due = part_of(now.tile_ns, at.step - at.first, at.end - at.first);
  }

  /// Up to the next wait that is not satisfied yet, or to the post. What is there stays there, so
  /// satisfied waits and the work between them pass in one event.
  action work(u32 id, block& now, timed_launch& own) {
    if (now.waiting_since != not_waiting) end_wait(now);
    const u64 waited = now.waited;
    u64 ahead = std::exchange(now.ahead, 0); // of the scheduler's clock
    u64 begun = 0;                           // where the first look begins
    now.waited += ahead;
    const action next = look_and_work(id, now, own, ahead, begun);
    if (keep_ == keep::timeline && now.waited != waited)
      add_wait(now, scheduler_.now() + begun, now.waited - waited);
    return next;
  }

  action look_and_work(u32 id, block& now, timed_launch& own, u64& ahead, u64& first_look) {
    bool looked = ahead != 0;
    for (std::size_t i; (i = next_input(id, now, own)) < own.inputs.size();) {
      const guarded_input& input = own.inputs[i];
      if (input.kind == wait_kind::grid) {
        now.grid_passed = true;
        now.waiting_since = scheduler_.now();
        return {action::kind::wait_for_grid};
      }
      progress& at = of(id, i);
      if (at.due > now.worked) ahead += at.due - std::exchange(now.worked, at.due);
      if (!std::exchange(looked, true)) first_look = ahead;
      const u64 begun = ahead;
      const action look = look_at(at, input.set, own.record.run, ahead);
      now.waited += ahead - begun;
      if (look.what == action::kind::wait) now.waiting_since = scheduler_.now();
      if (look.what != action::kind::exit) return look;
      at.passed = at.range;
      if (at.at_once) {
        at.step = at.end;
        continue;
      }
      find_range(at, now, own, input.input);
      if (style_ == waits::ahead) look_on(at, now, own, input, ahead);
    }
    now.next = step::post;
    own.record.work_ns += now.tile_ns;
    own.record.wait_ns += now.waited;
    const u64 post_ns = own.outputs.empty() ? 0 : shape_.device().post_ns;
    return {action::kind::elapse, ahead + (now.tile_ns - now.worked) + post_ns};
  }

  /// Passes later steps whose semaphores can be seen now, as `wait_ahead` does behind the one that it
  /// has waited for.
  void look_on(progress& at, block& now, const timed_launch& own, const guarded_input& input,
               u64& ahead) const {
    const u32 waited = at.passed.count();
    u32 looked = waited;
    while (at.step < at.end && all_seen(at.range, input.set, own.record.run, ahead)) {
      looked += at.range.count();
      at.passed = at.range;
      find_range(at, now, own, input.input);
    }
    const u64 cost = looks_between(waited, looked);
    now.waited += cost;
    ahead += cost;
  }

  bool all_seen(const semaphore_range& range, const semaphore_set& set, u32 run, u64 ahead) const {
    for (u32 position = 0; position < range.count(); ++position) {
      const u32 word = set.offset + range.at(position);
      if (!reached(semaphores_[word], wanted_in_run(run, expected_[word])) ||
          scheduler_.visible_from(word) > scheduler_.now() + ahead)
        return false;
    }
    return true;
  }

  /// The input whose next wait comes first in the tile, or past the last.
  std::size_t next_input(u32 id, const block& now, const timed_launch& own) {
    std::size_t found = own.inputs.size();
    u64 soonest = 0;
    for (std::size_t i = 0; i < own.inputs.size(); ++i) {
      const progress& at = of(id, i);
      const bool grid = own.inputs[i].kind == wait_kind::grid;
      if (grid ? now.grid_passed : at.step == at.end) continue;
      const u64 due = grid ? 0 : at.due;
      if (found < own.inputs.size() && due >= soonest) continue;
      found = i;
      soonest = due;
    }
    return found;
  }

  static u64 part_of(u64 ns, u32 done, u32 of) {
    return done == 0 ? 0 : static_cast<u64>(static_cast<double>(ns) * done / of);
  }

  /// What a block whose own clock is `ahead` has to do for the rest of a range: `exit` is nothing.
  action look_at(progress& at, const semaphore_set& set, u32 run, u64& ahead) const {
    const u32 count = at.range.count();
    while (at.position < count) {
      if (pass_reached(at, set, ahead)) continue;
      const u32 word = set.offset + at.range.at(at.position);
      const u32 wanted = wanted_in_run(run, expected_[word]);
      const u64 cost = looks_between(at.position, at.position + 1);
      if (!reached(semaphores_[word], wanted)) {
        if (ahead != 0) return {action::kind::elapse, ahead}; // then look again
        ++at.position;
        return {action::kind::wait, cost, word, wanted};
      }
      ++at.position;
      ahead += cost;
      const u64 visible = scheduler_.visible_from(word);
      if (visible > scheduler_.now() + ahead) ahead = visible - scheduler_.now();
    }
    return {};
  }

  /// Passes semaphores that lie one behind the other and can all be seen. False where there is none.
  bool pass_reached(progress& at, const semaphore_set& set, u64& ahead) const {
    if (at.range.inner_stride != 1) return false;
    const u32 inner = at.range.inner;
    const u32 left = inner - (at.range.outer == 1 ? at.position : at.position % inner);
    const u32 passed =
        reached_.leading(set.number, at.range.at(at.position), left, scheduler_.now() + ahead);
    ahead += looks_between(at.position, at.position + passed);
    at.position += passed;
    return passed != 0;
  }

  /// What it costs to look at the semaphores at positions [begin, end): a warp looks at 32 at once.
  u64 looks_between(u32 begin, u32 end) const {
    return u64{ceil_div(end, gpu::warp) - ceil_div(begin, gpu::warp)} *
           shape_.device().satisfied_wait_ns;
  }

  void end_wait(block& now) {
    const u64 begun = std::exchange(now.waiting_since, not_waiting);
    now.waited += scheduler_.now() - begun;
    if (keep_ == keep::timeline && scheduler_.now() != begun)
      add_wait(now, begun, scheduler_.now() - begun);
  }

  void post(block& now, const timed_launch& own) {
    reached_.enter(own.record.run);
    for (const semaphore_set& set : own.outputs) {
      const u32 semaphore = own.stage->semaphore_of(set.output, now.tile);
      const u32 word = set.offset + semaphore;
      scheduler_.post(word);
      if (reached(semaphores_[word], wanted_in_run(own.record.run, expected_[word])))
        reached_.add(set.number, semaphore, scheduler_.visible_from(word));
    }
    if (keep_ == keep::timeline) end_record(now);
    now.next = own.counter ? step::claim : step::leave;
  }

  // --- the timeline -----------------------------------------------------------------------------

  void begin_record(u32 id, block& now, const timed_launch& own) {
    const resident& here = scheduler_.at(id);
    const u64 time = scheduler_.now();
    now.record = report_.timeline.size();
    report_.timeline.push_back({own.record.run, own.record.stage, now.tile, here.block, here.sm,
                                time, time, now.tile_ns, 0});
  }

  /// Looks of one event are one wait, at the first of them: a record each would be many, and too short
  /// to be seen.
  void add_wait(const block& now, u64 start_ns, u64 ns) {
    report_.waits.push_back({now.record, start_ns, start_ns + ns});
  }

  void end_record(const block& now) {
    report_.timeline[now.record].end_ns = scheduler_.now();
    report_.timeline[now.record].wait_ns = now.waited;
  }

  // ----------------------------------------------------------------------------------------------

  progress& of(u32 id, std::size_t input) { return progress_[id * inputs_ + input]; }

  bool closes_run(u32 id, const block& now, const timed_launch& own) const {
    return own.draws ? now.ticket + 1 == own.stage->tickets() : scheduler_.at(id).block == 0;
  }

  std::string wait_text(u32 id) const {
    const resident& waiting = scheduler_.at(id);
    return "stage '" + launches_[waiting.launch].record.name + "', tile " +
           to_string(blocks_[id].tile) + ": semaphore " + std::to_string(waiting.semaphore) +
           " of the chain saw " + std::to_string(semaphores_[waiting.semaphore]) +
           " posts and wanted " + std::to_string(waiting.wanted);
  }

  const launch_shape& shape_;
  const schedule& how_;
  keep keep_;
  waits style_;
  random_source random_; ///< Of the tiles' times.
  std::vector<u32> semaphores_;
  std::vector<u32> expected_; ///< Posts of a run, by semaphore.
  reached_map reached_;
  std::vector<semaphore_set> sets_;
  scheduler<timing> scheduler_;
  std::vector<timed_launch> launches_;
  std::vector<block> blocks_;      ///< By resident.
  std::vector<progress> progress_; ///< By resident and input.
  std::size_t inputs_ = 0;         ///< The most that a stage has.
  report report_;
};

} // namespace cusync::sim
