// SPDX-License-Identifier: MIT
// Field case 12: what a stage may read ahead of its first wait. PTX promises visibility only behind
// griddepcontrol.wait, which no stage executes there: this is what shows that it is there all the same.

#include "gpu_test.cuh"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>

namespace cusync::test {
namespace {

constexpr u32 fresh_words = 64;

/// Lets the next kernel begin, if it may, before it writes what every stage of the chain reads.
__global__ void write_late(u32* fresh, u32 value, u64 delay) {
  cuda_backend::trigger();
  sleep_ns(delay);
  fresh[threadIdx.x] = value;
}

/// Reads `fresh` with plain loads right at its start; the runs before have left the old values in the L1
/// of every SM.
template <class Stage>
__global__ void early_reader(const u32* fresh, u32 value, u32* stale, Stage stage) {
  stage.start();
  if (fresh[threadIdx.x % fresh_words] != value) atomicAdd(stale, 1u);
  while (auto tile = stage.tile()) {
    stage.wait_all(A, *tile);
    stage.post(*tile);
  }
}

TEST(FieldCase12, WhatAnEarlierKernelWritesIsThereAheadOfTheFirstWait) {
  using read = inputs<reads<0, RowSync, row_dependence>>;
  using first_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using middle_stage = CuStage<RowMajor, read, outputs<RowSync>>;
  using last_stage = CuStage<RowMajor, read, outputs<>>;
  const row_dependence row{{264, 1}, {1, 1}, 1, 1, 1}; // two blocks an SM, and all three stages fit
  for (const launch_mode mode : {launch_mode::pdl, launch_mode::streams}) {
    CuSync chain(in_mode(mode));
    auto& first = chain.stage<first_stage>("first", row.producer(), RowMajor{});
    auto& middle = chain.stage<middle_stage>("middle", row.consumer(), RowMajor{});
    auto& last = chain.stage<last_stage>("last", row.consumer(), RowMajor{});
    chain.dependency<RowSync>(first, middle, A, row);
    chain.dependency<RowSync>(middle, last, A, row);
    const auto run_first = chain.kernel(first, early_reader<gpu_ref<first_stage>>, 128);
    const auto run_middle = chain.kernel(middle, early_reader<gpu_ref<middle_stage>>, 128);
    const auto run_last = chain.kernel(last, early_reader<gpu_ref<last_stage>>, 128);
    words fresh(fresh_words), stale(1);
    stream user;
    stale.set(0, user);
    for (u32 run = 0; run < 20'000; ++run) {
      write_late<<<1, fresh_words, 0, user>>>(fresh.data(), run, run % 100 == 0 ? 50'000 : 0);
      chain.launch(user, run_first(fresh.data(), run, stale.data()),
                   run_middle(fresh.data(), run, stale.data()),
                   run_last(fresh.data(), run, stale.data()));
    }
    chain.synchronize(user);
    EXPECT_EQ(stale.read()[0], 0u) << name_of(mode);
  }
}

} // namespace
} // namespace cusync::test
