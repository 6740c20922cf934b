// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/event_queue.hpp> // event_queue
#include <cusync/sim/gpu.hpp>         // gpu
#include <cusync/sim/launch.hpp>      // launch, resident, action
#include <cusync/sim/machine.hpp>     // machine
#include <cusync/sim/schedule.hpp>    // schedule, pick, random_source
#include <cusync/stage_ref.hpp>       // reached

#include <algorithm> // max
#include <limits>    // numeric_limits
#include <numeric>   // iota
#include <utility>   // swap
#include <vector>    // vector

namespace cusync::sim {

/// The virtual GPU's hardware: launches whose time has come, blocks that get places on SMs,
/// semaphores, and a queue of events in virtual time.
///
/// What a block does is up to the engine, which keeps its own state for each resident block:
///
/// - `placed(id)`: a block has a place; `at(id)` says which;
/// - `resume(id)`: it runs until time must pass, and says why; meanwhile it may call `post`,
///   `trigger` and `count_start`;
/// - `stuck()`, `expired(id)`, `left_open(launch, open)`: throw.
///
/// All of one thread; n events take n log(resident blocks).
template <class Engine> class scheduler {
public:
  /// `semaphores` has `semaphore_count` words, which outlive the simulation.
  scheduler(Engine& engine, const gpu& device, const schedule& how, u32* semaphores,
            u32 semaphore_count)
      : engine_(engine), device_(device), how_(how), random_(how.seed),
        machine_(how.slots != 0 ? machine(how.slots, {1, 0, 0, 0})
                                : machine(device.sms, capacity_of(device))),
        semaphores_(semaphores), lines_(semaphore_count) {
    restart_limit(0);
  }

  /// Appends a launch. Its preconditions name earlier ones.
  u32 add(launch added) {
    if (how_.slots != 0) added.footprint = {};
    launches_.push_back(std::move(added));
    return static_cast<u32>(launches_.size() - 1);
  }

  /// Until all launches are complete.
  void run() {
    release();
    while (!events_.empty()) {
      const event next = events_.pop();
      if (next.time > quiet_until_) look_for_expired(next.time);
      now_ = next.time;
      if ((next.subject & launch_bit) != 0)
        open(next.subject & ~launch_bit);
      else
        resume(next.subject);
    }
    if (completed_ != launches_.size()) engine_.stuck();
  }

  u64 now() const { return now_; }
  const resident& at(u32 id) const { return residents_[id]; }
  u32 resident_count() const { return static_cast<u32>(residents_.size()); }
  const launch& launch_at(u32 index) const { return launches_[index]; }
  u32 launch_count() const { return static_cast<u32>(launches_.size()); }

  // --- by a running block -----------------------------------------------------------------------

  void post(u32 semaphore) {
    line& waiters = lines_[semaphore];
    const u32 seen = ++semaphores_[semaphore];
    waiters.visible_from = now_ + device_.hand_over_ns;
    restart_limit(now_);
    while (waiters.first != no_id && reached(seen, residents_[waiters.first].wanted)) {
      const u32 id = waiters.first;
      waiters.first = residents_[id].next_waiter;
      residents_[id].is = resident::state::running;
      push(std::max(waiters.visible_from, residents_[id].not_before), id);
    }
  }

  /// When the semaphore's last post can be seen.
  u64 visible_from(u32 semaphore) const { return lines_[semaphore].visible_from; }

  void trigger(u32 id) {
    resident& block = residents_[id];
    if (block.triggered) return;
    block.triggered = true;
    launch& own = launches_[block.launch];
    if (++own.triggered == own.blocks) release();
  }

  void count_start(u32 id) {
    resident& block = residents_[id];
    if (block.started) return;
    block.started = true;
    launch& own = launches_[block.launch];
    ++own.started;
    if (own.started == 1 || own.started == own.blocks) release();
  }

private:
  /// Set in an event's subject that is a launch's index; the others are residents' ids.
  static constexpr u32 launch_bit = 0x80000000;

  /// Who waits on a semaphore, and when its last post can be seen.
  struct line {
    u64 visible_from = 0;
    u32 first = no_id;
  };

  void push(u64 time, u32 subject) {
    const u32 turn = turn_++;
    const u32 tie = how_.ties == pick::in_order   ? turn
                    : how_.ties == pick::reversed ? ~turn
                                                  : static_cast<u32>(random_.next());
    events_.push({time, tie, subject});
  }

  // --- launches ---------------------------------------------------------------------------------

  /// Lets launches begin whose preconditions hold. One that depends on a launch which has not begun
  /// ends the search: all behind it do too.
  void release() {
    while (first_unreleased_ < launches_.size() && launches_[first_unreleased_].released)
      ++first_unreleased_;
    for (std::size_t i = first_unreleased_; i < launches_.size(); ++i) {
      launch& candidate = launches_[i];
      if (candidate.released) continue;
      bool ready = true;
      for (const precondition& before : candidate.after) {
        if (!launches_[before.launch].released) return;
        ready = ready && launches_[before.launch].has(before.what);
      }
      if (!ready) continue;
      candidate.released = true;
      push(now_ + candidate.delay_ns, static_cast<u32>(i) | launch_bit);
    }
  }

  void open(u32 index) {
    launch& opened = launches_[index];
    opened.first_block_ns = now_;
    if (how_.blocks == pick::random) shuffle(opened);
    ready_.push_back(index);
    fill();
  }

  void shuffle(launch& shuffled) {
    shuffled.order.resize(shuffled.blocks);
    std::iota(shuffled.order.begin(), shuffled.order.end(), 0u);
    for (u32 i = shuffled.blocks; i > 1; --i)
      std::swap(shuffled.order[i - 1], shuffled.order[random_.below(i)]);
  }

  void complete(u32 index) {
    launch& done = launches_[index];
    done.end_ns = now_;
    ++completed_;
    if (done.closes_run)
      for (u32 i = done.first_of_run; i < index; ++i)
        if (!launches_[i].complete()) engine_.left_open(index, i);
    std::vector<u32> others;
    for (const u32 id : grid_waiters_)
      if (launches_[residents_[id].launch].ahead == index) {
        residents_[id].is = resident::state::running;
        push(now_ + device_.grid_wait_ns, id);
      } else {
        others.push_back(id);
      }
    grid_waiters_ = std::move(others);
    release();
  }

  // --- places -----------------------------------------------------------------------------------

  /// Gives out places, one an SM in turn, until nothing that may start fits anywhere.
  void fill() {
    for (u32 misses = 0; misses < machine_.sms() && !ready_.empty();) {
      misses = place_one(next_sm_) ? 0 : misses + 1;
      next_sm_ = next_sm_ + 1 == machine_.sms() ? 0 : next_sm_ + 1;
    }
  }

  /// The position in `ready_` of the stage that gets a place on `sm`, or none.
  u32 choose(u32 sm) {
    const u32 count = static_cast<u32>(ready_.size());
    if (count == 0) return no_id;
    const auto fits = [&](u32 at) { return machine_.fits(sm, launches_[ready_[at]].footprint); };
    if (how_.stages == pick::in_order) return fits(0) ? 0 : no_id;
    const u32 first = how_.stages == pick::reversed ? 0 : random_.below(count);
    for (u32 i = 0; i < count; ++i) {
      const u32 at = count - 1 - (first + i) % count;
      if (fits(at)) return at;
    }
    return no_id;
  }

  bool place_one(u32 sm) {
    const u32 at = choose(sm);
    if (at == no_id) return false;
    launch& from = launches_[ready_[at]];
    const u32 id = new_resident();
    residents_[id] = {};
    residents_[id].is = resident::state::running;
    residents_[id].launch = ready_[at];
    residents_[id].block = block_at(from, from.placed++);
    residents_[id].sm = sm;
    machine_.take(sm, from.footprint);
    if (from.placed == from.blocks) ready_.erase(ready_.begin() + at);
    engine_.placed(id);
    push(std::max(now_ + device_.block_start_ns, machine_.usable_from(sm)), id);
    return true;
  }

  u32 block_at(const launch& from, u32 position) const {
    if (!from.order.empty()) return from.order[position];
    return how_.blocks == pick::reversed ? from.blocks - 1 - position : position;
  }

  u32 new_resident() {
    if (free_.empty()) {
      residents_.emplace_back();
      return static_cast<u32>(residents_.size() - 1);
    }
    const u32 id = free_.back();
    free_.pop_back();
    return id;
  }

  // --- blocks -----------------------------------------------------------------------------------

  void resume(u32 id) {
    const action next = engine_.resume(id);
    switch (next.what) {
    case action::kind::elapse:
      return push(now_ + next.ns, id);
    case action::kind::wait:
      return wait(id, next);
    case action::kind::wait_for_grid:
      return wait_for_grid(id);
    case action::kind::exit:
      return leave(id);
    }
  }

  void wait(u32 id, const action& asked) {
    line& waiters = lines_[asked.semaphore];
    if (reached(semaphores_[asked.semaphore], asked.wanted))
      return push(std::max(now_ + asked.ns, waiters.visible_from), id);
    resident& block = residents_[id];
    block.is = resident::state::waiting;
    block.semaphore = asked.semaphore;
    block.wanted = asked.wanted;
    block.waiting_since = now_;
    block.not_before = now_ + asked.ns;
    u32* place = &waiters.first;
    while (*place != no_id && !reached(residents_[*place].wanted, asked.wanted))
      place = &residents_[*place].next_waiter;
    block.next_waiter = *place;
    *place = id;
  }

  void wait_for_grid(u32 id) {
    const u32 ahead = launches_[residents_[id].launch].ahead;
    if (ahead == no_id) return push(now_, id);
    if (launches_[ahead].complete())
      return push(std::max(now_, launches_[ahead].end_ns + device_.grid_wait_ns), id);
    residents_[id].is = resident::state::waiting_for_grid;
    grid_waiters_.push_back(id);
  }

  void leave(u32 id) {
    const u32 index = residents_[id].launch;
    const u32 sm = residents_[id].sm;
    trigger(id); // an exit counts as one
    residents_[id].is = resident::state::free;
    free_.push_back(id);
    launch& own = launches_[index];
    machine_.give_back(sm, own.footprint, now_ + device_.turnaround_ns);
    if (++own.exited == own.blocks) complete(index);
    while (place_one(sm)) {
    }
  }

  // --- the spin limit ---------------------------------------------------------------------------

  void restart_limit(u64 from) {
    quiet_until_ =
        how_.spin_limit_ns == 0 ? std::numeric_limits<u64>::max() : from + how_.spin_limit_ns;
  }

  /// No post for as long as the limit: has any block waited for all of that time?
  void look_for_expired(u64 time) {
    u32 oldest = no_id;
    for (u32 id = 0; id < residents_.size(); ++id)
      if (residents_[id].is == resident::state::waiting &&
          (oldest == no_id || residents_[id].waiting_since < residents_[oldest].waiting_since))
        oldest = id;
    const u64 since = oldest == no_id ? time : residents_[oldest].waiting_since;
    if (since + how_.spin_limit_ns < time) {
      now_ = std::max(since + how_.spin_limit_ns, quiet_until_);
      engine_.expired(oldest);
    }
    restart_limit(since);
  }

  Engine& engine_;
  const gpu& device_;
  const schedule& how_;
  random_source random_;
  machine machine_;
  std::vector<launch> launches_;
  std::size_t first_unreleased_ = 0;
  std::size_t completed_ = 0;
  std::vector<u32> ready_; ///< Launches with blocks that have no place yet, oldest first.
  u32 next_sm_ = 0;
  std::vector<resident> residents_;
  std::vector<u32> free_; ///< Of `residents_`.
  std::vector<u32> grid_waiters_;
  u32* semaphores_;
  std::vector<line> lines_; ///< By semaphore.
  event_queue events_;
  u64 now_ = 0;
  u32 turn_ = 0;
  u64 quiet_until_ = 0;
};

} // namespace cusync::sim
