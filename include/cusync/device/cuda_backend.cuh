// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/stage_ref.hpp> // stage_link, spin_report, by_block, by_warp

namespace cusync {

/// The primitives of a block on a GPU: all PTX and atomics of the core.
///
/// Every asm statement carries a memory clobber, so that the compiler moves no load over it.
struct cuda_backend {
  // --- who is who -------------------------------------------------------------------------------

  CUSYNC_DEVICE static u32 rank(by_block) {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  CUSYNC_DEVICE static u32 rank(by_warp) {
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  /// Participants with a rank below this one are in the first warp and poll.
  CUSYNC_DEVICE static u32 pollers(by_block) {
    return detail::min(blockDim.x * blockDim.y * blockDim.z, 32u);
  }
  CUSYNC_DEVICE static u32 pollers(by_warp) { return 32; }

  /// Stages are launched with one-dimensional grids.
  CUSYNC_DEVICE static u32 block_index() { return blockIdx.x; }

  CUSYNC_DEVICE static void sync(by_block) { __syncthreads(); }
  CUSYNC_DEVICE static void sync(by_warp) { __syncwarp(); }

  /// The first participant's value, for all pollers.
  template <class By> CUSYNC_DEVICE static u32 from_first(u32 value, By by) {
    return __shfl_sync(0xffffffffu >> (32 - pollers(by)), value, 0);
  }
  /// The least of the pollers' values, for all of them.
  template <class By> CUSYNC_DEVICE static u32 least(u32 value, By by) {
    return __reduce_min_sync(0xffffffffu >> (32 - pollers(by)), value);
  }
  /// The first participant's value, for all participants. The barrier ahead keeps a slow thread's
  /// read of the last value apart from this write.
  CUSYNC_DEVICE static u64 share(u64 value, by_block by) {
    __shared__ u64 mailbox;
    __syncthreads();
    if (rank(by) == 0) mailbox = value;
    __syncthreads();
    return mailbox;
  }
  CUSYNC_DEVICE static u64 share(u64 value, by_warp) { return __shfl_sync(0xffffffffu, value, 0); }
  /// The same for what a wait has found.
  template <class By> CUSYNC_DEVICE static u32 tell_all(u32 value, By by) {
    return static_cast<u32>(share(value, by));
  }

  // --- global memory ----------------------------------------------------------------------------

  /// Draws a ticket where `draws`. Relaxed: the word orders no data, and only its own stage looks at it.
  ///
  /// The result is not needed until the first wait, so nothing here may wait for it: a branch around
  /// the draw would end in a register move that does, and of a constant 1 ptxas would make a
  /// warp-wide sum, whose shuffle does; hence the predicate, and a 1 made from the lane (0).
  CUSYNC_DEVICE static void draw_if(bool draws, u64* word, u64& drawn) {
    asm volatile("{\n\t"
                 ".reg .pred draws;\n\t"
                 "setp.ne.u32 draws, %2, 0;\n\t"
                 "@draws atom.relaxed.gpu.global.add.u64 %0, [%1], %3;\n\t"
                 "}"
                 : "+l"(drawn)
                 : "l"(word), "r"(static_cast<u32>(draws)), "l"(u64{1} + rank(by_warp{}))
                 : "memory");
  }
  CUSYNC_DEVICE static void add(u64* word, u64 value) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  CUSYNC_DEVICE static void add(u32* word, u32 value) {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
  }
  /// Release at gpu scope: whoever acquires this value sees all that was written before.
  CUSYNC_DEVICE static void add_release(u32* semaphore, u32 value) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(semaphore), "r"(value)
                 : "memory");
  }
  CUSYNC_DEVICE static u32 load_acquire(const u32* semaphore) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(semaphore) : "memory");
    return value;
  }
  CUSYNC_DEVICE static u32 load_relaxed(const u32* word) {
    u32 value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
  }

  // --- programmatic dependent launch ------------------------------------------------------------

  /// Lets the next stage's blocks be scheduled once every block of this one has done so or exited.
  /// It says that this block is resident and nothing about its data, so it needs no fence: at its
  /// entry a block has written nothing, and what kernels before the chain wrote was performed before
  /// the chain's first stage began (docs/memory-model.md).
  CUSYNC_DEVICE static void trigger() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }
  /// Returns once the kernels before this one in its stream are complete and their writes visible.
  CUSYNC_DEVICE static void grid_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }

  // --- waiting ----------------------------------------------------------------------------------

  /// By one thread whose first look saw too few posts. Returns once the semaphore has reached
  /// `where.wanted`, having acquired; or after the run was given up, which makes its output invalid.
  /// Needs the producer resident or complete, which the launch mode guarantees.
  ///
  /// Looks a quarter of the limit at a time, so that a producer which is slow but alive restarts it:
  /// the wait gives up after four quarters in a row without one post anywhere in the chain.
  CUSYNC_DEVICE static void spin(const stage_link& link, const u32* semaphore, spin_report where) {
    const u64 quarter = link.spin_limit_ns / 4;
    u64 next_check = now_ns() + quarter;
    u32 posts = 0;
    u32 quiet = 0;
    for (u32 turn = 1;; ++turn) {
      where.seen = load_acquire(semaphore);
      if (reached(where.seen, where.wanted)) return;
      if (turn % 256 != 0) continue;
      if (load_relaxed(link.abort) != 0) return;
      if (quarter == 0 || now_ns() < next_check) continue;
      next_check += quarter;
      const u32 posts_now = posts_so_far(link);
      quiet = posts_now == posts ? quiet + 1 : 0;
      posts = posts_now;
      if (quiet == 4) return raise(link, spin_failure::wait_expired, where);
    }
  }

  /// Records the first failure of the run for the host, and lets every other wait return.
  CUSYNC_DEVICE static void raise(const stage_link& link, spin_failure failure, spin_report where) {
    if (atomicExch(link.abort, 1u) != 0) return;
    where.stage = link.stage;
    volatile spin_report* out = link.report;
    out->stage = where.stage;
    out->operand = where.operand;
    out->tile.row = where.tile.row;
    out->tile.col = where.tile.col;
    out->tile.slice = where.tile.slice;
    out->semaphore = where.semaphore;
    out->seen = where.seen;
    out->wanted = where.wanted;
    __threadfence_system(); // the host reads the rest only after `raised`
    out->raised = static_cast<u32>(failure);
    if (link.expiry == on_expiry::trap) fault();
  }

private:
  /// Ends the kernel, and with it the context, by a store to address 0. Not by `__trap`: behind a path
  /// that leaves the kernel ptxas takes no warp for converged any more, which costs a GEMM's loop its
  /// uniform registers and an eighth of its issue slots, in a kernel that never gets here.
  CUSYNC_DEVICE static void fault() {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(u64{0}), "r"(0) : "memory");
  }

  CUSYNC_DEVICE static u64 now_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
  }

  /// Changes whenever any stage of the chain posts.
  CUSYNC_DEVICE static u32 posts_so_far(const stage_link& link) {
    u32 sum = 0;
#pragma unroll 1 // rare; unrolled it would be half of the kernel's code
    for (u32 i = 0; i < link.semaphore_total; ++i) sum += load_relaxed(link.semaphores + i);
    return sum;
  }

public:
  // --- what only the virtual GPU needs ----------------------------------------------------------

  CUSYNC_DEVICE static void start() {}
  CUSYNC_DEVICE static void begin_tile(tile_coord) {}
  CUSYNC_DEVICE static void work_until(u32, u32) {}
  CUSYNC_DEVICE static void passed(const u32*) {}
  CUSYNC_DEVICE static void finish() {}
};

} // namespace cusync
