// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp>        // error, deadlock, wait_timeout
#include <cusync/sim/fiber.hpp>     // fiber
#include <cusync/sim/report.hpp>    // report, tile_record, wait_record
#include <cusync/sim/scheduler.hpp> // scheduler, launch, action
#include <cusync/stage_ref.hpp>     // spin_report

#include <functional> // function
#include <memory>     // unique_ptr
#include <string>     // string, to_string
#include <vector>     // vector

namespace cusync::sim {

/// A kernel broke the stage's contract: it read what it had not waited for, wrote what is not its
/// own, took a tile ahead of `start()` or left without `finish()`.
struct kernel_fault : error {
  using error::error;
};

/// One launch as the execution needs it.
struct kernel_launch {
  stage_record record; ///< With the times still to come.
  u64 tile_ns = 0;
  std::function<void()> body; ///< One block.
};

class execution;

/// A block that runs on the virtual GPU: what `host_backend` and the checked views act upon.
class running_block {
public:
  running_block(execution& owner, u32 id);

  /// The one whose code is running. Throws `kernel_fault` outside of a kernel.
  static running_block& current();

  u32 index() const;
  void start() { started_ = true; }
  void claim(); ///< A ticket's round trip.
  void count_start();
  void trigger();
  void begin_tile(tile_coord tile);
  /// Lets time pass until `done` of `of` parts of the tile's work are done.
  void work_until(u32 done, u32 of);
  void barrier() { looks_ = 0; }
  u32 look_at(const u32* semaphore);
  void spin(const u32* semaphore, const spin_report& where);
  void passed(const u32* semaphore);
  void wait_for_grid();
  void post(const u32* semaphore);
  void finish();

  /// Whether this block has waited for a semaphore, or for the stage ahead as a whole.
  bool has_waited_for(const u32* semaphore) const;
  bool has_waited_for_grid() const { return waited_for_grid_; }
  std::string place() const; ///< "stage 'x', tile (r, c, s)".

private:
  friend class execution;

  void run();
  void reset();
  void pause(const action& next);
  void end_tile();
  void waited_since(u64 start);
  tile_record* tile();

  execution& owner_;
  u32 id_;
  action next_;
  bool started_ = false;
  bool finished_ = false;
  std::size_t record_ = no_tile;
  u64 tile_ns_ = 0;
  bool posted_ = false;
  u32 looks_ = 0; ///< Semaphores looked at since the last barrier: a warp looks at 32 at once.
  spin_report where_{};
  std::vector<bool> waited_for_; ///< By semaphore.
  bool waited_for_grid_ = false;
  fiber fiber_; ///< Last: its body uses the others.

  static constexpr std::size_t no_tile = static_cast<std::size_t>(-1);
};

/// The engine that executes: each resident block is a fiber that runs the stage's host kernel.
class execution {
public:
  execution(const gpu& device, const schedule& how, u32* semaphores, u32 semaphore_count)
      : device_(device), how_(how), semaphores_(semaphores), semaphore_count_(semaphore_count),
        random_(~how.seed), scheduler_(*this, device, how, semaphores, semaphore_count) {}

  u32 add(launch added, kernel_launch kernel) {
    kernels_.push_back(std::move(kernel));
    return scheduler_.add(std::move(added));
  }

  /// Runs all launches. Throws what a kernel throws, `deadlock`, `wait_timeout` or `kernel_fault`;
  /// the blocks that were still running are unwound when the execution is destroyed.
  report run() {
    scheduler_.run();
    for (u32 i = 0; i < scheduler_.launch_count(); ++i) {
      stage_record& stage = kernels_[i].record;
      stage.start_ns = scheduler_.launch_at(i).first_block_ns;
      stage.end_ns = scheduler_.launch_at(i).end_ns;
      report_.stages.push_back(stage);
    }
    return std::move(report_);
  }

  // --- called by the scheduler ------------------------------------------------------------------

  void placed(u32 id) {
    while (blocks_.size() <= id)
      blocks_.push_back(std::make_unique<running_block>(*this, static_cast<u32>(blocks_.size())));
    blocks_[id]->reset();
  }

  action resume(u32 id) {
    struct entered {
      explicit entered(running_block* block) { current_ = block; }
      entered(const entered&) = delete;
      entered& operator=(const entered&) = delete;
      ~entered() { current_ = nullptr; }
    } const guard(blocks_[id].get());
    blocks_[id]->fiber_.resume();
    return blocks_[id]->next_;
  }

  [[noreturn]] void stuck() const;

  [[noreturn]] void expired(u32 id) const {
    throw wait_timeout(wait_text(id) + "; nothing was posted for " +
                       std::to_string(how_.spin_limit_ns / 1'000'000) + " ms");
  }

  [[noreturn]] void left_open(u32 index, u32 open) const {
    throw kernel_fault(
        "stage '" + kernels_[index].record.name + "' was complete before stage '" +
        kernels_[open].record.name +
        "': what follows in the stream would start too early; every block ends in finish()");
  }

private:
  friend class running_block;

  kernel_launch& kernel_of(u32 id) { return kernels_[scheduler_.at(id).launch]; }
  const std::string& name_of(u32 id) const {
    return kernels_[scheduler_.at(id).launch].record.name;
  }

  std::string wait_text(u32 id) const {
    const spin_report& where = blocks_[id]->where_;
    return "stage '" + name_of(id) + "', tile " + cusync::to_string(where.tile) +
           ": the wait for operand " + std::to_string(where.operand) + " on semaphore " +
           std::to_string(where.semaphore) + " saw " +
           std::to_string(semaphores_[scheduler_.at(id).semaphore]) + " posts and wanted " +
           std::to_string(where.wanted);
  }

  const gpu& device_;
  const schedule& how_;
  u32* semaphores_;
  u32 semaphore_count_;
  random_source random_; ///< Of the tiles' times.
  scheduler<execution> scheduler_;
  std::vector<kernel_launch> kernels_; ///< By launch.
  report report_;
  std::vector<std::unique_ptr<running_block>> blocks_; ///< By resident.

  static inline thread_local running_block* current_ = nullptr;
};

// --- deadlock ------------------------------------------------------------------------------------

/// Nothing can happen any more: names a wait, and who has no place.
inline void execution::stuck() const {
  std::string text = "deadlock at " + std::to_string(scheduler_.now()) + " ns";
  u32 waiting = 0;
  for (u32 id = 0; id < scheduler_.resident_count(); ++id) {
    if (scheduler_.at(id).is == resident::state::waiting && waiting++ == 0)
      text += ": " + wait_text(id);
    if (scheduler_.at(id).is == resident::state::waiting_for_grid)
      text += "; a block of stage '" + name_of(id) + "' waits for the whole stage ahead";
  }
  if (waiting > 1) text += "; " + std::to_string(waiting - 1) + " more blocks wait";
  for (u32 i = 0; i < scheduler_.launch_count(); ++i) {
    const launch& at = scheduler_.launch_at(i);
    if (at.released && at.placed < at.blocks)
      text += "; " + std::to_string(at.blocks - at.placed) + " blocks of stage '" +
              kernels_[i].record.name + "' have no place";
    else if (!at.released)
      text += "; stage '" + kernels_[i].record.name + "' cannot begin";
    else
      continue;
    break; // what comes behind it follows from it
  }
  throw deadlock(text);
}

// --- blocks --------------------------------------------------------------------------------------

inline running_block::running_block(execution& owner, u32 id)
    : owner_(owner), id_(id), fiber_([this](fiber&) { run(); }) {}

inline running_block& running_block::current() {
  if (execution::current_ == nullptr)
    throw kernel_fault(
        "stage view used outside of a kernel of the virtual GPU; launch it with sim::CuSync");
  return *execution::current_;
}

/// One block after another: a new stack for each would cost more than most test kernels.
inline void running_block::run() {
  for (;;) {
    owner_.kernel_of(id_).body();
    if (!finished_)
      throw kernel_fault("block " + std::to_string(index()) + " of stage '" + owner_.name_of(id_) +
                         "' left without finish(); call tile() until it returns none, or finish()");
    pause({action::kind::exit});
  }
}

inline void running_block::reset() {
  started_ = finished_ = false;
  record_ = no_tile;
  waited_for_.assign(owner_.semaphore_count_, false);
  waited_for_grid_ = false;
}

inline void running_block::pause(const action& next) {
  next_ = next;
  fiber_.suspend();
}

inline u32 running_block::index() const { return owner_.scheduler_.at(id_).block; }
inline void running_block::claim() { pause({action::kind::elapse, owner_.device_.claim_ns}); }
inline void running_block::count_start() { owner_.scheduler_.count_start(id_); }
inline void running_block::trigger() { owner_.scheduler_.trigger(id_); }

inline tile_record* running_block::tile() {
  return record_ == no_tile ? nullptr : &owner_.report_.timeline[record_];
}

inline void running_block::begin_tile(tile_coord tile) {
  if (!started_)
    throw kernel_fault("stage '" + owner_.name_of(id_) +
                       "' takes a tile before start(); without its run number a wait is wrong");
  end_tile();
  const resident& here = owner_.scheduler_.at(id_);
  const kernel_launch& kernel = owner_.kernel_of(id_);
  tile_ns_ = owner_.how_.tile_ns(kernel.record.name, tile, kernel.tile_ns, owner_.random_);
  posted_ = false;
  record_ = owner_.report_.timeline.size();
  const u64 now = owner_.scheduler_.now();
  owner_.report_.timeline.push_back(
      {kernel.record.run, kernel.record.stage, tile, here.block, here.sm, now, now, 0, 0});
}

inline void running_block::work_until(u32 done, u32 of) {
  if (tile() == nullptr || of == 0) return;
  const u64 wanted = static_cast<u64>(static_cast<double>(tile_ns_) * done / of);
  const u64 worked = tile()->work_ns;
  if (wanted <= worked) return;
  tile()->work_ns = wanted;
  pause({action::kind::elapse, wanted - worked});
}

inline void running_block::end_tile() {
  if (tile() == nullptr) return;
  work_until(1, 1); // a stage that nobody reads need not post
  tile()->end_ns = owner_.scheduler_.now();
  stage_record& stage = owner_.kernel_of(id_).record;
  stage.work_ns += tile()->work_ns;
  stage.wait_ns += tile()->wait_ns;
  record_ = no_tile;
}

/// The posts so far, once the look's round trip is over and the last one's hand-over too.
inline u32 running_block::look_at(const u32* semaphore) {
  const u32 at = static_cast<u32>(semaphore - owner_.semaphores_);
  const u64 start = owner_.scheduler_.now();
  if (looks_++ % gpu::warp == 0) pause({action::kind::elapse, owner_.device_.satisfied_wait_ns});
  while (owner_.scheduler_.visible_from(at) > owner_.scheduler_.now())
    pause({action::kind::elapse, owner_.scheduler_.visible_from(at) - owner_.scheduler_.now()});
  if (tile() != nullptr) tile()->wait_ns += owner_.scheduler_.now() - start;
  return *semaphore;
}

inline void running_block::passed(const u32* semaphore) {
  waited_for_[static_cast<u32>(semaphore - owner_.semaphores_)] = true;
}

inline void running_block::spin(const u32* semaphore, const spin_report& where) {
  where_ = where;
  const u64 start = owner_.scheduler_.now();
  pause({action::kind::wait, 0, static_cast<u32>(semaphore - owner_.semaphores_), where.wanted});
  waited_since(start);
}

inline void running_block::wait_for_grid() {
  const u64 start = owner_.scheduler_.now();
  pause({action::kind::wait_for_grid});
  waited_for_grid_ = true;
  waited_since(start);
}

inline void running_block::waited_since(u64 start) {
  const u64 end = owner_.scheduler_.now();
  if (tile() == nullptr || end == start) return;
  tile()->wait_ns += end - start;
  owner_.report_.waits.push_back({record_, start, end});
}

inline void running_block::post(const u32* semaphore) {
  if (!posted_) pause({action::kind::elapse, owner_.device_.post_ns});
  posted_ = true;
  owner_.scheduler_.post(static_cast<u32>(semaphore - owner_.semaphores_));
}

inline void running_block::finish() {
  end_tile();
  finished_ = true;
}

inline bool running_block::has_waited_for(const u32* semaphore) const {
  return waited_for_[static_cast<std::size_t>(semaphore - owner_.semaphores_)];
}

inline std::string running_block::place() const {
  std::string text = "stage '" + owner_.name_of(id_) + "'";
  if (record_ != no_tile)
    text += ", tile " + cusync::to_string(owner_.report_.timeline[record_].tile);
  return text;
}

} // namespace cusync::sim
