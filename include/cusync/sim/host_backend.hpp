// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/execution.hpp> // running_block
#include <cusync/stage_ref.hpp>     // stage_link, spin_report, spin_failure

namespace cusync::sim {

/// The primitives of a block on the virtual GPU. A block has one thread, so barriers are nothing;
/// memory is sequentially consistent, so it shows a missing wait but not a missing release.
struct host_backend {
  template <class By> static u32 rank(By) { return 0; }
  template <class By> static u32 pollers(By) { return 1; }
  template <class By> static void sync(By) { running_block::current().barrier(); }
  template <class By> static u32 from_first(u32 value, By) { return value; }
  template <class By> static u32 least(u32 value, By) { return value; }
  /// Follows each claim of a tile; the draw at a block's start is not waited for.
  template <class By> static u64 share(u64 value, By) {
    running_block::current().claim();
    return value;
  }
  template <class By> static u32 tell_all(u32 value, By by) {
    sync(by);
    return value;
  }

  static u32 block_index() { return running_block::current().index(); }

  static void draw_if(bool draws, u64* word, u64& drawn) {
    if (draws) drawn = (*word)++;
  }
  static void add(u64* word, u64 value) { *word += value; }
  /// Counts a block that has started, for the gates.
  static void add(u32* word, u32 value) {
    *word += value;
    running_block::current().count_start();
  }
  static void add_release(u32* semaphore, u32) { running_block::current().post(semaphore); }

  static void trigger() { running_block::current().trigger(); }
  static void grid_wait() { running_block::current().wait_for_grid(); }
  static u32 load_acquire(const u32* semaphore) {
    return running_block::current().look_at(semaphore);
  }
  static void spin(const stage_link&, const u32* semaphore, const spin_report& where) {
    running_block::current().spin(semaphore, where);
  }
  [[noreturn]] static void raise(const stage_link&, spin_failure, const spin_report&) {
    throw kernel_fault(running_block::current().place() +
                       " drew more tickets than a run has; a block draws "
                       "none after finish() or after tile() returned none");
  }

  static void start() { running_block::current().start(); }
  static void begin_tile(tile_coord tile) { running_block::current().begin_tile(tile); }
  static void work_until(u32 done, u32 of) { running_block::current().work_until(done, of); }
  static void passed(const u32* semaphore) { running_block::current().passed(semaphore); }
  static void finish() { running_block::current().finish(); }
};

} // namespace cusync::sim
