// SPDX-License-Identifier: MIT
// Each kernel is wrong in one way, and its name says which check of check_ptx.sh must find it. They
// are compiled, never run.

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/device/cuda_backend.cuh>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/stage.hpp>

using namespace cusync;

namespace {

constexpr operand<0> A;
using Middle = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<RowSync>>;
using Right = Middle::ref<cuda_backend>;

struct relaxed_first_look : cuda_backend {
  CUSYNC_DEVICE static u32 load_acquire(const u32* semaphore) { return load_relaxed(semaphore); }
};
struct relaxed_spin : cuda_backend {
  CUSYNC_DEVICE static void spin(const stage_link&, const u32* semaphore,
                                 const spin_report& where) {
    while (!reached(load_relaxed(semaphore), where.wanted)) {
    }
  }
};
struct volatile_look : cuda_backend {
  CUSYNC_DEVICE static u32 load_acquire(const u32* semaphore) {
    return *static_cast<const volatile u32*>(semaphore);
  }
};
struct no_barrier : cuda_backend {
  template <class By> CUSYNC_DEVICE static void sync(By) {}
};
struct relaxed_post : cuda_backend {
  CUSYNC_DEVICE static void add_release(u32* semaphore, u32 value) { add(semaphore, value); }
};

/// The kernel without a fault: what the faults are put into.
template <class In, class Stage> CUSYNC_DEVICE void copy(In in, unsigned short* out, Stage& stage) {
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    stage.wait_all(A, tile);
    const u32 at = tile.row * blockDim.x + threadIdx.x;
    out[at] = in[at];
    stage.post(tile);
  });
}

} // namespace

// Field case 9: the read-only path may return what it cached before the wait.
extern "C" __global__ void fails_no_read_only_loads__restrict(const unsigned short* __restrict__ in,
                                                              unsigned short* out, Right stage) {
  copy(in, out, stage);
}

struct through_ldg {
  const unsigned short* in;
  CUSYNC_DEVICE unsigned short operator[](u32 at) const { return __ldg(in + at); }
};
extern "C" __global__ void fails_no_read_only_loads__ldg(const unsigned short* in,
                                                         unsigned short* out, Right stage) {
  copy(through_ldg{in}, out, stage);
}

extern "C" __global__ void
fails_first_look_acquires__relaxed(const unsigned short* in, unsigned short* out,
                                   Middle::ref<relaxed_first_look> stage) {
  copy(in, out, stage);
}
extern "C" __global__ void fails_first_look_acquires__volatile(const unsigned short* in,
                                                               unsigned short* out,
                                                               Middle::ref<volatile_look> stage) {
  copy(in, out, stage);
}
extern "C" __global__ void fails_only_acquired_looks_decide(const unsigned short* in,
                                                            unsigned short* out,
                                                            Middle::ref<relaxed_spin> stage) {
  copy(in, out, stage);
}
extern "C" __global__ void fails_barrier_behind_wait(const unsigned short* in, unsigned short* out,
                                                     Middle::ref<no_barrier> stage) {
  copy(in, out, stage);
}
extern "C" __global__ void fails_barrier_before_post(const unsigned short* in, unsigned short* out,
                                                     Middle::ref<no_barrier> stage) {
  copy(in, out, stage);
}
extern "C" __global__ void fails_post_releases(const unsigned short* in, unsigned short* out,
                                               Middle::ref<relaxed_post> stage) {
  copy(in, out, stage);
}

extern "C" __global__ void fails_loads_behind_wait(const unsigned short* in, unsigned short* out,
                                                   Right stage) {
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    const u32 at = tile.row * blockDim.x + threadIdx.x;
    const unsigned short value = in[at];
    stage.wait_all(A, tile);
    out[at] = value;
    stage.post(tile);
  });
}

extern "C" __global__ void fails_stores_before_post(const unsigned short* in, unsigned short* out,
                                                    Right stage) {
  stage.start();
  stage.for_each_tile([&](tile_coord tile) {
    stage.wait_all(A, tile);
    const u32 at = tile.row * blockDim.x + threadIdx.x;
    const unsigned short value = in[at];
    stage.post(tile);
    out[at] = value;
  });
}

extern "C" __global__ void fails_finish_waits_for_stage_ahead(const unsigned short* in,
                                                              unsigned short* out, Right stage) {
  stage.start();
  const tile_coord tile{blockIdx.x, 0, 0};
  stage.wait_all(A, tile);
  const u32 at = tile.row * blockDim.x + threadIdx.x;
  out[at] = in[at];
  stage.post(tile); // and no finish()
}
