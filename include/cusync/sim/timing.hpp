// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/chain.hpp>            // chain, any_stage
#include <cusync/errors.hpp>           // deadlock, wait_timeout
#include <cusync/sim/launch_shape.hpp> // launch_shape
#include <cusync/sim/report.hpp>       // report
#include <cusync/sim/scheduler.hpp>    // scheduler, action

#include <string>  // string, to_string
#include <utility> // exchange, move
#include <vector>  // vector

namespace cusync::sim {

/// The engine that only keeps time: the chain's own policies, orders and dependences, but no kernels
/// and no data. A block does what a kernel does that waits before each step and posts at the end.
class timing {
public:
  /// `shape` is that of a chain whose semaphores are laid out, and outlives the engine.
  timing(const launch_shape& shape, const schedule& how, u32 semaphore_total)
      : shape_(shape), how_(how), random_(~how.seed), semaphores_(semaphore_total, 0),
        scheduler_(*this, shape.device(), how, semaphores_.data(), semaphore_total) {}

  /// `runs` runs, one behind the other, without a timeline. Throws `deadlock` or `wait_timeout`.
  report run(u32 runs = 1) {
    const u32 stages = static_cast<u32>(shape_.plan().stages.size());
    for (u32 i = 0; i < runs * stages; ++i) {
      launches_.push_back(timed(shape_.plan().stages[i % stages], i / stages));
      scheduler_.add(shape_.launch_at(i % stages, i - i % stages, how_));
    }
    scheduler_.run();
    report result;
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
    if (blocks_.size() <= id) blocks_.resize(id + 1);
    block& placed = blocks_[id];
    placed.next = step::start;
    placed.grid_passed = false;
    placed.inputs.assign(launches_[scheduler_.at(id).launch].inputs.size(), {});
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
        const action next = work(now, own);
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

  struct guarded_input {
    u32 input;
    wait_kind kind;
    const any_stage* producer;
    u32 output; ///< The producer's set that guards it.
    u32 offset; ///< Of that set's semaphores.
  };
  struct posted_output {
    u32 output;
    u32 offset;
  };
  struct timed_launch {
    const any_stage* stage = nullptr;
    stage_record record;
    u64 tile_ns = 0;
    std::vector<guarded_input> inputs;
    std::vector<posted_output> outputs;
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
  };
  struct block {
    step next = step::start;
    bool grid_passed = false;
    u32 ticket = 0; ///< Position in the order, for a stage that claims.
    tile_coord tile;
    u64 tile_ns = 0, worked = 0;
    std::vector<progress> inputs;
  };

  timed_launch timed(const stage_plan& plan, u32 run) const {
    timed_launch made;
    made.stage = plan.stage;
    made.record = shape_.record_of(*plan.stage, run);
    made.tile_ns = shape_.time_of(*plan.stage).ns;
    for (u32 i = 0; i < plan.waits.size(); ++i) {
      if (plan.waits[i] == wait_kind::none) continue;
      const any_stage::input_edge& edge = plan.stage->declared_inputs()[i];
      made.inputs.push_back({i, plan.waits[i], edge.producer, edge.output,
                             edge.producer->declared_outputs()[edge.output].offset});
    }
    for (u32 i = 0; i < plan.posted.size(); ++i)
      if (plan.posted[i]) made.outputs.push_back({i, plan.stage->declared_outputs()[i].offset});
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

  void begin(u32 id, block& now, const timed_launch& own) {
    const u32 position = own.counter ? now.ticket : scheduler_.at(id).block;
    now.next = position < own.stage->tiles() ? step::work : step::leave;
    if (now.next == step::leave) return;
    now.tile = own.stage->tile_at(position);
    now.tile_ns = how_.tile_ns(own.record.name, now.tile, own.tile_ns, random_);
    now.worked = 0;
    for (std::size_t i = 0; i < own.inputs.size(); ++i)
      if (own.inputs[i].kind == wait_kind::semaphores)
        begin_input(now.inputs[i], own, own.inputs[i].input, now.tile);
  }

  static void begin_input(progress& at, const timed_launch& own, u32 input, tile_coord tile) {
    const step_range steps = own.stage->steps(input, tile);
    at.first = at.step = steps.begin;
    at.end = steps.end;
    at.range = own.stage->guards(input, tile);
    at.at_once = steps.begin == steps.end || at.range.count() <= 1 ||
                 at.range == own.stage->guards(input, tile, steps.begin);
    find_range(at, own, input, tile);
  }

  /// Moves on to the next step whose range is another than the last one waited for.
  static void find_range(progress& at, const timed_launch& own, u32 input, tile_coord tile) {
    at.position = 0;
    if (at.at_once && (at.range == at.passed || at.range.count() == 0)) at.step = at.end;
    if (at.at_once) return;
    for (; at.step < at.end; ++at.step) {
      at.range = own.stage->guards(input, tile, at.step);
      if (at.range != at.passed && at.range.count() != 0) return;
    }
  }

  /// Up to the next wait that is not satisfied yet, or to the post. What is there stays there, so
  /// satisfied waits and the work between them pass in one event.
  action work(block& now, timed_launch& own) {
    u64 ahead = 0; // of the scheduler's clock
    for (std::size_t i; (i = next_input(now, own)) < own.inputs.size();) {
      const guarded_input& input = own.inputs[i];
      if (input.kind == wait_kind::grid) {
        now.grid_passed = true;
        return {action::kind::wait_for_grid};
      }
      progress& at = now.inputs[i];
      const u64 due = part_of(now.tile_ns, at.step - at.first, at.end - at.first);
      if (due > now.worked) ahead += due - std::exchange(now.worked, due);
      const action look = look_at(at, input, own.record.run, ahead);
      if (look.what != action::kind::exit) return look;
      at.passed = at.range;
      if (at.at_once)
        at.step = at.end;
      else
        find_range(at, own, input.input, now.tile);
    }
    now.next = step::post;
    own.record.work_ns += now.tile_ns;
    const u64 post_ns = own.outputs.empty() ? 0 : shape_.device().post_ns;
    return {action::kind::elapse, ahead + (now.tile_ns - now.worked) + post_ns};
  }

  /// The input whose next wait comes first in the tile, or past the last.
  std::size_t next_input(const block& now, const timed_launch& own) const {
    std::size_t found = own.inputs.size();
    u64 soonest = 0;
    for (std::size_t i = 0; i < own.inputs.size(); ++i) {
      const progress& at = now.inputs[i];
      if (own.inputs[i].kind == wait_kind::grid ? now.grid_passed : at.step == at.end) continue;
      const u64 due = part_of(now.tile_ns, at.step - at.first, at.end - at.first);
      if (found < own.inputs.size() && due >= soonest) continue;
      found = i;
      soonest = due;
    }
    return found;
  }

  static u64 part_of(u64 ns, u32 done, u32 of) {
    return done == 0 ? 0 : static_cast<u64>(static_cast<double>(ns) * done / of);
  }

  /// What a block whose own clock is `ahead` has to do for the rest of a range: `exit` is nothing. A
  /// warp looks at 32 semaphores at once.
  action look_at(progress& at, const guarded_input& input, u32 run, u64& ahead) const {
    for (; at.position < at.range.count(); ++at.position) {
      const u32 semaphore = at.range.at(at.position);
      const u32 wanted =
          wanted_in_run(run, input.producer->posts_expected(input.output, semaphore));
      const u32 word = input.offset + semaphore;
      const u64 cost = at.position % gpu::warp == 0 ? shape_.device().satisfied_wait_ns : 0;
      if (!reached(semaphores_[word], wanted)) {
        if (ahead != 0) return {action::kind::elapse, ahead}; // then look again
        ++at.position;
        return {action::kind::wait, cost, word, wanted};
      }
      ahead += cost;
      const u64 visible = scheduler_.visible_from(word);
      if (visible > scheduler_.now() + ahead) ahead = visible - scheduler_.now();
    }
    return {};
  }

  void post(block& now, const timed_launch& own) {
    for (const posted_output& output : own.outputs)
      scheduler_.post(output.offset + own.stage->semaphore_of(output.output, now.tile));
    now.next = own.counter ? step::claim : step::leave;
  }

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
  random_source random_; ///< Of the tiles' times.
  std::vector<u32> semaphores_;
  scheduler<timing> scheduler_;
  std::vector<timed_launch> launches_;
  std::vector<block> blocks_; ///< By resident.
};

} // namespace cusync::sim
