// SPDX-License-Identifier: MIT
// What went wrong for users of similar systems, tried on this library. Each case runs in a process of
// its own (ctest, run_each.sh), so a hang is a failure and not the end of the run.

#include "gpu_test.cuh"

#include <cusync/dependence/grid_dependence.hpp>
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/dependence/tile_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/grid_sync.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

namespace cusync::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A line of stages, each reading rows of the one before.
template <class Policy = RowSync> class line {
public:
  struct shape {
    u32 rows = 33;
    u32 cols = 6;
    u32 stages = 2;
    u32 shared_bytes = 0;
  };

  line(shape size, chain_options options) : size_(size), seed_(1), chain_(options) {
    const row_dependence row = this->row();
    head* first = &chain_.template stage<head>("stage 0", grid(), RowMajor{});
    bind(*first);
    body* ahead = nullptr;
    for (u32 i = 1; i + 1 < size.stages; ++i) {
      body& next = chain_.template stage<body>("stage " + std::to_string(i), grid(), RowMajor{});
      depend(first, ahead, next, row);
      bind(next);
      ahead = &next;
    }
    tail& last =
        chain_.template stage<tail>("stage " + std::to_string(size.stages - 1), grid(), RowMajor{});
    depend(first, ahead, last, row);
    bind(last);
  }

  tile_extent grid() const { return {size_.rows, size_.cols, 1}; }
  row_dependence row() const { return {{size_.rows, size_.cols}, {1, 1}, 1, 1, size_.cols}; }
  CuSync& chain() { return chain_; }
  sum_arguments& arguments(u32 stage) { return *arguments_[stage]; }
  words& out(u32 stage) { return *outs_[stage]; }
  void set_seed(u32 seed, cudaStream_t stream) { seed_.set(seed, stream); }
  u32* seed() const { return seed_.data(); }
  void poison(cudaStream_t stream) {
    for (auto& each : outs_) each->poison(stream);
  }
  void launch(cudaStream_t stream) {
    std::vector<std::unique_ptr<stage_call>> calls;
    std::vector<const stage_call*> given;
    for (auto& make : make_calls_) calls.push_back(make());
    for (auto& call : calls) given.push_back(call.get());
    chain_.launch(stream, given);
  }
  std::vector<u32> expected(u32 seed) const {
    auto values = first_stage_words(grid(), seed);
    for (u32 i = 1; i < size_.stages; ++i) values = next_stage_words(values, row());
    return values;
  }
  void expect(u32 seed) { ASSERT_EQ(outs_.back()->read(), expected(seed)) << "seed " << seed; }

private:
  using read = inputs<reads<0, Policy, row_dependence>>;
  using head = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using body = CuStage<RowMajor, read, outputs<Policy>>;
  using tail = CuStage<RowMajor, read, outputs<>>;

  template <class Stage>
  void depend(head* first, body* ahead, Stage& next, const row_dependence& row) {
    if (ahead == nullptr)
      chain_.template dependency<Policy>(*first, next, A, row);
    else
      chain_.template dependency<Policy>(*ahead, next, A, row);
  }
  template <class Stage> void bind(Stage& stage) {
    auto kernel = chain_.kernel(stage, sum_kernel<gpu_ref<Stage>>, 64, size_.shared_bytes);
    const u32* in = outs_.empty() ? nullptr : outs_.back()->data();
    outs_.push_back(std::make_unique<words>(grid().count() * lane_words));
    arguments_.push_back(std::make_unique<sum_arguments>(
        sum_arguments{.seed = seed_.data(), .a = in, .out = outs_.back()->data()}));
    make_calls_.push_back(
        [kernel, arguments = arguments_.back().get()]() -> std::unique_ptr<stage_call> {
          using call = decltype(kernel(*arguments));
          return std::make_unique<call>(kernel(*arguments));
        });
  }

  shape size_;
  words seed_;
  CuSync chain_;
  std::vector<std::unique_ptr<words>> outs_;
  std::vector<std::unique_ptr<sum_arguments>> arguments_;
  std::vector<std::function<std::unique_ptr<stage_call>()>> make_calls_;
};

constexpr launch_mode overlapping[] = {launch_mode::pdl, launch_mode::streams};

void expect_runs_exact(line<>& chain, u32 runs) {
  stream user;
  for (u32 run = 0; run < runs; ++run) {
    chain.poison(user);
    chain.set_seed(run, user);
    chain.launch(user);
    chain.chain().synchronize(user);
    chain.expect(run);
  }
}

// --- 1: lazy module loading ---------------------------------------------------------------------

class FieldCase1 : public testing::TestWithParam<const char*> {};

TEST_P(FieldCase1, FreshProcessWithoutWarmUp) {
  if (GetParam()[0] != 0) setenv("CUDA_MODULE_LOADING", GetParam(), 1);
  for (const launch_mode mode : overlapping) {
    line<> chain({.stages = 3}, in_mode(mode));
    expect_runs_exact(chain, 1);
  }
}
INSTANTIATE_TEST_SUITE_P(Loading, FieldCase1, testing::Values("", "LAZY", "EAGER"));

// --- 2: runtime calls while something waits ------------------------------------------------------

TEST(FieldCase2, AnotherThreadAllocatesAndFrees) {
  for (const launch_mode mode : overlapping) {
    line<> chain({}, in_mode(mode));
    chain.arguments(0).sleep_ns = 20'000;
    std::atomic<bool> stop{false};
    std::thread allocator([&] {
      while (!stop) {
        void* memory = nullptr;
        cudaStream_t extra = nullptr;
        ok(cudaMalloc(&memory, std::size_t{1} << 30));
        ok(cudaStreamCreate(&extra));
        ok(cudaStreamDestroy(extra));
        ok(cudaFree(memory));
      }
    });
    stream user;
    for (u32 run = 0; run < 300; ++run) chain.launch(user);
    chain.chain().synchronize(user);
    stop = true;
    allocator.join();
    expect_runs_exact(chain, 2);
  }
}

TEST(FieldCase2, SecondChainIsBuiltWhileTheFirstRuns) {
  for (const launch_mode mode : overlapping) {
    line<> first({}, in_mode(mode));
    first.arguments(0).sleep_ns = 2'000'000;
    stream user;
    first.set_seed(7, user);
    first.launch(user);
    line<> second({.stages = 3}, in_mode(mode));
    expect_runs_exact(second, 1);
    first.chain().synchronize(user);
    first.expect(7);
  }
}

// --- 3: serialised launches ---------------------------------------------------------------------

class FieldCase3 : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FieldCase3, NeverHangsBesideBusyStreams) {
  setenv(GetParam().first, GetParam().second, 1);
  std::vector<std::unique_ptr<stream>> busy;
  std::vector<std::unique_ptr<words>> sinks;
  for (int i = 0; i < 12; ++i) {
    busy.push_back(std::make_unique<stream>());
    sinks.push_back(std::make_unique<words>(1 << 20));
  }
  for (const launch_mode mode : overlapping)
    for (const u32 stages : {2u, 6u}) {
      line<> chain({.stages = stages}, in_mode(mode));
      stream user;
      for (u32 run = 0; run < 20; ++run) {
        chain.set_seed(run, user);
        for (int i = 0; i < 12; ++i) sinks[i]->poison(*busy[i]);
        chain.launch(user);
        chain.chain().synchronize(user);
        chain.expect(run);
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Settings, FieldCase3,
                         testing::Values(std::pair{"CUDA_LAUNCH_BLOCKING", "1"},
                                         std::pair{"CUDA_DEVICE_MAX_CONNECTIONS", "1"},
                                         std::pair{"CUDA_DEVICE_MAX_CONNECTIONS", "2"},
                                         std::pair{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}),
                         [](const auto& info) {
                           return std::string(info.param.first) + "_" + info.param.second;
                         });

// --- 4: profilers and sanitizers run these too (tests/gpu/tools.sh) --------------------------------

TEST(FieldCase4, SmallPairUnderATool) {
  for (const launch_mode mode : overlapping) {
    line<> chain({.rows = 4, .cols = 4}, in_mode(mode));
    expect_runs_exact(chain, 3);
  }
}

// --- 6: a foreign kernel holds most of the GPU ------------------------------------------------------

__global__ void hold(u64 duration) { sleep_ns(duration); }

TEST(FieldCase6, ForeignKernelHoldsAHundredMultiprocessors) {
  ok(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  for (const launch_mode mode : overlapping)
    for (const bool skip_gates : {false, true}) {
      chain_options options = in_mode(mode);
      options.skip_gates = skip_gates;
      line<> chain({.rows = 11, .cols = 6, .shared_bytes = 200 * 1024}, options);
      chain.chain().prepare();
      stream other, user;
      hold<<<100, 32, 200 * 1024, other>>>(500'000'000);
      for (u32 run = 0; run < 3; ++run) {
        chain.set_seed(run, user);
        chain.launch(user);
        chain.chain().synchronize(user);
        chain.expect(run);
      }
      ok(cudaStreamSynchronize(other));
    }
}

TEST(FieldCase6, GateIsSkippedOnlyWhereItIsProvedNeedless) {
  chain_options options = in_mode(launch_mode::streams);
  options.skip_gates = true;
  line<> small({.rows = 11, .cols = 6, .shared_bytes = 200 * 1024}, options); // 66 + 66 <= 132
  small.chain().prepare();
  EXPECT_TRUE(small.chain().gate_skipped(*small.chain().stages()[1]));
  line<> large({.rows = 33, .cols = 6, .shared_bytes = 200 * 1024}, options); // 198 + 198
  large.chain().prepare();
  EXPECT_FALSE(large.chain().gate_skipped(*large.chain().stages()[1]));
  expect_runs_exact(small, 20);
}

// --- 8: memory order --------------------------------------------------------------------------------

/// The consumer reads its tile ahead of the wait, which warms its L1 with what is old, and again
/// behind it with plain loads. In some runs one producer warp is late with its store.
template <class Stage>
__global__ void warm_then_read(const u32* seed, const u32* in, u32* out, u32* stale, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const u32 at = tile.coord.row * 256;
    if constexpr (Stage::declares(A)) {
      const u32 before = in[at + threadIdx.x];
      stage.wait_all(A, *tile);
      const u32 after = in[at + (threadIdx.x + 96) % 256]; // another warp's store
      if (after != *seed) atomicAdd(stale, 1u);
      out[at + threadIdx.x] = before;
    } else {
      const u32 value = *seed;
      if (value % 64 == 5 && threadIdx.x / 32 == value % 8) sleep_ns(50'000);
      out[at + threadIdx.x] = value;
      stage.post(*tile);
    }
  }
}

__global__ void next_seed(u32* seed) { ++*seed; }

TEST(FieldCase8, NeverStaleInAHundredThousandRuns) {
  const u32 rows = 40;
  const row_dependence row{{rows, 1}, {1, 1}, 1, 1, 1};
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using consumer_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  for (const launch_mode mode : overlapping) {
    const u32 runs = mode == launch_mode::pdl ? 100'000 : 10'000;
    CuSync chain(in_mode(mode));
    auto& producer = chain.stage<producer_stage>("producer", {rows, 1, 1}, RowMajor{});
    auto& consumer = chain.stage<consumer_stage>("consumer", {rows, 1, 1}, RowMajor{});
    chain.dependency<RowSync>(producer, consumer, A, row);
    auto produce = chain.kernel(producer, warm_then_read<gpu_ref<producer_stage>>, 256);
    auto consume = chain.kernel(consumer, warm_then_read<gpu_ref<consumer_stage>>, 256);
    words seed(1), middle(rows * 256), out(rows * 256), stale(1);
    stream user;
    seed.set(0, user);
    stale.set(0, user);
    for (u32 run = 0; run < runs; ++run) {
      next_seed<<<1, 1, 0, user>>>(seed.data());
      chain.launch(user, produce(seed.data(), nullptr, middle.data(), nullptr),
                   consume(seed.data(), middle.data(), out.data(), stale.data()));
    }
    chain.synchronize(user);
    EXPECT_EQ(stale.read()[0], 0u) << name_of(mode);
    EXPECT_EQ(seed.read()[0], runs);
  }
}

// --- 12: a trigger is not data --------------------------------------------------------------------

TEST(FieldCase12, TriggerDoesNotMeanThatDataIsReady) {
  line<> chain({.rows = 4, .cols = 4},
               in_mode(launch_mode::pdl)); // all blocks are resident at once
  chain.arguments(0).sleep_ns = 100'000;
  expect_runs_exact(chain, 20);
}

__global__ void fill(u32* to, u32 value, u64 delay) {
  sleep_ns(delay);
  *to = value;
}

TEST(FieldCase12, WhatAnEarlierKernelWritesIsThereForEveryStage) {
  // `seed` is written right before the run, by a kernel that takes its time.
  line<> chain({.rows = 4, .cols = 4, .stages = 3}, in_mode(launch_mode::pdl));
  stream user;
  for (u32 run = 1; run < 50; ++run) {
    chain.poison(user);
    fill<<<1, 1, 0, user>>>(chain.seed(), run, 100'000);
    chain.launch(user);
    chain.chain().synchronize(user);
    chain.expect(run);
  }
}

// --- 13: what comes behind the chain ----------------------------------------------------------------

/// Posts first and writes `late` a millisecond after its last post.
template <class Stage> __global__ void late_writer(u32* out, u32* late, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    if (threadIdx.x == 0) out[tile.coord.row] = 1;
    stage.post(*tile);
    sleep_ns(1'000'000);
    if (threadIdx.x == 0) late[tile.coord.row] = 17;
  }
}

template <class Stage> __global__ void quick_reader(const u32* in, u32* out, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    if (tile.coord.row % 2 == 1) continue; // half of the blocks leave at once
    stage.wait_all(A, *tile);
    if (threadIdx.x == 0) out[tile.coord.row] = in[tile.coord.row];
  }
}

__global__ void copy_behind(const u32* from, u32* to, u32* overwrite) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  to[threadIdx.x] = from[threadIdx.x];
  overwrite[threadIdx.x] = 99;
}

TEST(FieldCase13, KernelBehindTheChainSeesAllOfIt) {
  const u32 rows = 8;
  const row_dependence row{{rows, 1}, {1, 1}, 1, 1, 1};
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using consumer_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  for (const bool early : {false, true}) {
    CuSync chain(in_mode(launch_mode::pdl));
    auto& producer = chain.stage<producer_stage>("producer", {rows, 1, 1}, RowMajor{});
    auto& consumer = chain.stage<consumer_stage>("consumer", {rows, 1, 1}, RowMajor{});
    chain.dependency<RowSync>(producer, consumer, A, row);
    auto produce = chain.kernel(producer, late_writer<gpu_ref<producer_stage>>, 32);
    auto consume = chain.kernel(consumer, quick_reader<gpu_ref<consumer_stage>>, 32);
    words middle(rows), late(rows), out(rows), copy(rows);
    stream user;
    for (int run = 0; run < 20; ++run) {
      late.poison(user);
      chain.launch(user, produce(middle.data(), late.data()), consume(middle.data(), out.data()));
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = 1;
      config.blockDim = rows;
      config.stream = user;
      config.attrs = &attribute;
      config.numAttrs = early ? 1 : 0;
      ok(cudaLaunchKernelEx(&config, copy_behind, static_cast<const u32*>(late.data()), copy.data(),
                            middle.data()));
      ok(cudaStreamSynchronize(user));
      ASSERT_EQ(copy.read(), std::vector<u32>(rows, 17)) << "early " << early << ", run " << run;
    }
  }
}

// --- 15: graphs with other nodes in between -----------------------------------------------------------

u32 programmatic_edges(cudaGraph_t graph) {
  std::size_t count = 0;
  ok(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> from(count), to(count);
  std::vector<cudaGraphEdgeData> data(count);
  ok(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count));
  u32 programmatic = 0;
  for (const cudaGraphEdgeData& edge : data)
    programmatic += edge.type == cudaGraphDependencyTypeProgrammatic;
  return programmatic;
}

TEST(FieldCase15, CapturedBesideOtherNodes) {
  line<> chain({.stages = 3}, in_mode(launch_mode::pdl));
  chain.chain().prepare();
  words unrelated(64);
  cudaEvent_t event = nullptr;
  ok(cudaEventCreate(&event));
  graph captured([&](cudaStream_t capture) {
    chain.launch(capture);
    unrelated.poison(capture);
    ok(cudaEventRecord(event, capture));
    chain.launch(capture);
  });
  EXPECT_EQ(programmatic_edges(captured.get()),
            has_pdl() ? 4u : 0u); // two in each run, none between
  stream user;
  for (u32 run = 0; run < 100; ++run) {
    chain.poison(user);
    chain.set_seed(run, user);
    captured.launch(user);
    chain.chain().synchronize(user);
    chain.expect(run);
  }
  ok(cudaEventDestroy(event));
}

// --- 16: runs one after another -------------------------------------------------------------------------

TEST(FieldCase16, ThousandRunsWithoutHostSynchronisation) {
  for (const launch_mode mode : overlapping) {
    line<> chain({.rows = 80, .cols = 6, .shared_bytes = 200 * 1024}, in_mode(mode)); // 3.6 waves
    words visits(480);
    stream user;
    ok(cudaMemsetAsync(visits.data(), 0, 480 * sizeof(u32), user));
    chain.arguments(1).visits = visits.data();
    chain.arguments(0).sleep_ns = 3'000;
    chain.set_seed(3, user);
    for (u32 run = 0; run < 1000; ++run) {
      chain.arguments(1).sleep_ns = run % 100 == 7 ? 1'000'000 : 0;
      chain.launch(user);
    }
    chain.chain().synchronize(user);
    chain.expect(3);
    EXPECT_EQ(visits.read(), std::vector<u32>(480, 1000));
  }
}

TEST(FieldCase16, RunsOnChangingStreamsStayApart) {
  for (const launch_mode mode : overlapping) {
    line<> chain({}, in_mode(mode));
    chain.arguments(0).sleep_ns = 10'000;
    stream first, second;
    chain.set_seed(5, first);
    for (u32 run = 0; run < 200; ++run) chain.launch(run % 2 == 0 ? first : second);
    chain.chain().synchronize(first);
    chain.chain().synchronize(second);
    chain.expect(5);
  }
}

TEST(Runs, CountersWrap) {
  for (const launch_mode mode : overlapping)
    for (const u32 start : {0xfffffffeu, 0x7ffffffeu, 0xffffffffu / 6 - 1}) {
      line<> chain({}, in_mode(mode));
      chain.chain().start_at_run(start);
      expect_runs_exact(chain, 6);
    }
}

// --- 21, 22: capture and the user's stream ---------------------------------------------------------------

TEST(FieldCase21, SetUpInsideACaptureIsAClearError) {
  line<> chain({}, in_mode(launch_mode::pdl));
  stream capture;
  ok(cudaStreamBeginCapture(capture, cudaStreamCaptureModeThreadLocal));
  try {
    chain.launch(capture);
    FAIL() << "set-up was captured";
  } catch (const invalid_argument& refused) {
    EXPECT_NE(std::string(refused.what()).find("prepare()"), std::string::npos) << refused.what();
  }
  cudaGraph_t intact = nullptr;
  ok(cudaStreamEndCapture(capture, &intact));
  ok(cudaGraphDestroy(intact));
  expect_runs_exact(chain, 1);
}

TEST(FieldCase21, CapturedInEveryModeAndScope) {
  for (const launch_mode mode : {launch_mode::serial, launch_mode::pdl, launch_mode::streams})
    for (const auto scope : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
      line<> chain({.stages = 3}, in_mode(mode));
      chain.chain().prepare();
      graph captured([&](cudaStream_t capture) { chain.launch(capture); }, scope);
      stream user;
      for (u32 run = 0; run < 20; ++run) {
        chain.poison(user);
        chain.set_seed(run, user);
        captured.launch(user);
        chain.chain().synchronize(user);
        chain.expect(run);
      }
    }
}

TEST(FieldCase21, EmptyPoolNamesItsRemedyAndDestroyedGraphsGiveBack) {
  chain_options options = in_mode(launch_mode::pdl);
  options.captures = 1;
  line<> chain({}, options);
  chain.chain().prepare();
  for (int turn = 0; turn < 3; ++turn) {
    graph only([&](cudaStream_t capture) { chain.launch(capture); });
    stream second;
    ok(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal));
    try {
      chain.launch(second);
      ADD_FAILURE() << "a second capture found a state";
    } catch (const invalid_argument& refused) {
      EXPECT_NE(std::string(refused.what()).find("captures"), std::string::npos) << refused.what();
    }
    cudaGraph_t unused = nullptr;
    ok(cudaStreamEndCapture(second, &unused));
    ok(cudaGraphDestroy(unused));
    stream user;
    chain.set_seed(9, user);
    only.launch(user);
    chain.chain().synchronize(user);
    chain.expect(9);
  }
}

TEST(FieldCase21, GraphOutlivesItsChain) {
  std::optional<graph> captured;
  words seed(1), middle(33 * 6 * lane_words), out(33 * 6 * lane_words);
  {
    line<> chain({}, in_mode(launch_mode::pdl));
    chain.arguments(0).seed = seed.data();
    chain.arguments(0).out = middle.data();
    chain.arguments(1).a = middle.data();
    chain.arguments(1).out = out.data();
    chain.chain().prepare();
    captured.emplace([&](cudaStream_t capture) { chain.launch(capture); });
  }
  line<> alike({}, in_mode(launch_mode::pdl));
  stream user;
  for (u32 run = 0; run < 10; ++run) {
    seed.set(run, user);
    captured->launch(user);
    ok(cudaStreamSynchronize(user));
    ASSERT_EQ(out.read(), alike.expected(run));
  }
}

__global__ void overwrite_all(u32* to, u32 count) {
  for (u32 i = threadIdx.x; i < count; i += blockDim.x) to[i] = 0xdeadbeef;
}

TEST(FieldCase22, OrderedInTheUsersStreamLikeOneKernel) {
  for (const launch_mode mode : overlapping) {
    line<> chain({}, in_mode(mode));
    chain.chain().prepare();
    const u32 count = 33 * 6 * lane_words;
    stream user;
    words kept(count);
    for (u32 run = 1; run < 20; ++run) {
      fill<<<1, 1, 0, user>>>(chain.seed(), run, 5'000'000);
      chain.launch(user);
      ok(cudaMemcpyAsync(kept.data(), chain.out(1).data(), count * sizeof(u32),
                         cudaMemcpyDeviceToDevice, user));
      fill<<<1, 1, 0, user>>>(chain.seed(), 0xdead, 0);
      for (u32 stage = 0; stage < 2; ++stage)
        overwrite_all<<<1, 256, 0, user>>>(chain.out(stage).data(), count);
      ok(cudaStreamSynchronize(user));
      ASSERT_EQ(kept.read(), chain.expected(run)) << name_of(mode) << " run " << run;
    }
  }
}

TEST(FieldCase22, BuffersOfTheStreamsOwnPool) {
  for (const launch_mode mode : overlapping) {
    line<> chain({}, in_mode(mode));
    chain.chain().prepare();
    const std::size_t bytes = 33 * 6 * lane_words * sizeof(u32);
    stream user;
    words kept(33 * 6 * lane_words);
    for (u32 run = 0; run < 50; ++run) {
      chain.set_seed(run, user);
      void *middle = nullptr, *out = nullptr;
      ok(cudaMallocAsync(&middle, bytes, user));
      ok(cudaMallocAsync(&out, bytes, user));
      chain.arguments(0).out = static_cast<u32*>(middle);
      chain.arguments(1).a = static_cast<u32*>(middle);
      chain.arguments(1).out = static_cast<u32*>(out);
      chain.launch(user);
      ok(cudaMemcpyAsync(kept.data(), out, bytes, cudaMemcpyDeviceToDevice, user));
      ok(cudaFreeAsync(middle, user));
      ok(cudaFreeAsync(out, user));
      ok(cudaStreamSynchronize(user));
      ASSERT_EQ(kept.read(), chain.expected(run)) << name_of(mode);
    }
  }
}

// --- 23: host objects ---------------------------------------------------------------------------------

TEST(FieldCase23, OneKernelWithMoreAndLessSharedMemoryFromTwoThreads) {
  const auto work = [](u32 first, u32 second) {
    for (const launch_mode mode : overlapping)
      for (const u32 kilobytes : {first, second, first}) {
        line<> chain({.shared_bytes = kilobytes * 1024}, in_mode(mode));
        expect_runs_exact(chain, 10); // synchronises the device while the other is set up
      }
  };
  const std::jthread other(work, 8, 100);
  work(100, 8);
}

TEST(FieldCase23, OnlyOneThreadAtATime) {
  line<> chain({.rows = 2, .cols = 2}, in_mode(launch_mode::pdl));
  chain.chain().prepare();
  std::atomic<u32> refused{0}, launched{0};
  const auto work = [&] {
    stream own;
    for (int i = 0; i < 2000; ++i) try {
        chain.launch(own);
        ++launched;
      } catch (const invalid_argument&) {
        ++refused;
      }
    chain.chain();
    ok(cudaStreamSynchronize(own));
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(refused + launched, 4000u);
  expect_runs_exact(chain, 3);
}

TEST(FieldCase23, WrongDeviceIsAnError) {
  int devices = 0;
  ok(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "one GPU here";
  line<> chain({}, in_mode(launch_mode::pdl));
  ok(cudaSetDevice(1));
  EXPECT_THROW(chain.launch(nullptr), invalid_argument);
}

// --- 29: what cannot run ------------------------------------------------------------------------------

TEST(FieldCase29, RefusedBeforeAnythingIsLaunched) {
  using stage_type = CuStage<RowMajor, inputs<>, outputs<>>;
  CuSync chain;
  EXPECT_THROW(chain.stage<stage_type>("large", {65536, 32768, 2}, RowMajor{}), invalid_argument);
  auto& stage = chain.stage<stage_type>("stage", {2, 2, 1}, RowMajor{});
  EXPECT_THROW(chain.kernel(stage, sum_kernel<gpu_ref<stage_type>>, dim3(2048)), invalid_argument);
  EXPECT_THROW(chain.kernel(stage, sum_kernel<gpu_ref<stage_type>>, dim3(32), 300 * 1024),
               invalid_argument);
  EXPECT_THROW(chain.launch(nullptr, std::vector<const stage_call*>{}),
               invalid_argument); // no kernel
}

TEST(FieldCase29, GridsBeyondWhatAGridDimensionHolds) {
  for (const u32 rows : {65535u, 65536u, 65537u}) {
    line<> chain({.rows = rows, .cols = 2}, in_mode(launch_mode::pdl));
    expect_runs_exact(chain, 1);
  }
}

TEST(FieldCase29, StageWithoutTilesIsNotWaitedFor) {
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using consumer_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  for (const launch_mode mode : overlapping) {
    CuSync chain(in_mode(mode));
    const row_dependence none{{3, 0}, {1, 1}, 1, 1, 2}; // K = 0: the consumer reads nothing
    auto& producer = chain.stage<producer_stage>("producer", none.producer(), RowMajor{});
    auto& consumer = chain.stage<consumer_stage>("consumer", none.consumer(), RowMajor{});
    chain.dependency<RowSync>(producer, consumer, A, none);
    auto produce = chain.kernel(producer, sum_kernel<gpu_ref<producer_stage>>, 64);
    auto consume = chain.kernel(consumer, sum_kernel<gpu_ref<consumer_stage>>, 64);
    words seed(1), out(6 * lane_words);
    stream user;
    chain.launch(user, produce({.seed = seed.data()}), consume({.out = out.data()}));
    chain.synchronize(user);
    EXPECT_EQ(out.read(), std::vector<u32>(6 * lane_words, 1));
  }
}

// --- 32: only some warps wait and post ---------------------------------------------------------------

/// Warp 1 loads, warp 2 stores and posts; the block is (32, 8, 1).
template <class Stage>
__global__ void warp_roles(const u32* seed, const u32* in, u32* out, Stage stage) {
  __shared__ u32 row, valid, value;
  const u32 warp = threadIdx.y;
  if (warp == 1) stage.start(by_warp{});
  for (;;) {
    if (warp == 1) {
      const claimed_tile tile = stage.tile(by_warp{});
      if (tile) stage.wait_all(A, *tile, by_warp{});
      if (threadIdx.x == 0) {
        valid = tile.valid;
        row = tile.coord.row;
        if (tile) value = in == nullptr ? *seed : *static_cast<const volatile u32*>(in + row) + 1;
      }
    }
    __syncthreads();
    if (!valid) return;
    if (warp == 2) {
      if (threadIdx.x == 0) out[row] = value;
      stage.post({row, 0, 0}, by_warp{});
    }
    __syncthreads();
  }
}

TEST(FieldCase32, WarpsWithRoles) {
  const u32 rows = 300;
  const row_dependence row{{rows, 1}, {1, 1}, 1, 1, 1};
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>, tile_source::counter>;
  using consumer_stage =
      CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>, tile_source::counter>;
  for (const launch_mode mode : overlapping)
    for (const u32 blocks : {rows, 20u}) {
      CuSync chain(in_mode(mode));
      auto& producer =
          chain.stage<producer_stage>("producer", {rows, 1, 1}, RowMajor{}, {.blocks = blocks});
      auto& consumer =
          chain.stage<consumer_stage>("consumer", {rows, 1, 1}, RowMajor{}, {.blocks = blocks});
      chain.dependency<RowSync>(producer, consumer, A, row);
      auto produce = chain.kernel(producer, warp_roles<gpu_ref<producer_stage>>, dim3(32, 8, 1));
      auto consume = chain.kernel(consumer, warp_roles<gpu_ref<consumer_stage>>, dim3(32, 8, 1));
      words seed(1), middle(rows), out(rows);
      stream user;
      for (u32 run = 0; run < 200; ++run) {
        middle.poison(user);
        seed.set(run, user);
        chain.launch(user, produce(seed.data(), nullptr, middle.data()),
                     consume(nullptr, middle.data(), out.data()));
        chain.synchronize(user);
        ASSERT_EQ(out.read(), std::vector<u32>(rows, run + 1)) << name_of(mode) << " run " << run;
      }
    }
}

// --- 33: waits that are never answered ---------------------------------------------------------------

/// As `sum_kernel`, but tile (5, 0) is never posted while `*silent` is set.
template <class Stage>
__global__ void silent_tile(const u32* silent, u64 sleep, u32* out, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    if constexpr (Stage::declares(A)) stage.wait_all(A, *tile);
    if (sleep != 0) sleep_ns(sleep);
    if (threadIdx.x == 0) out[tile.coord.row] = tile.coord.row;
    if (tile.coord.row == 5 && *silent != 0) continue;
    stage.post(*tile);
  }
}

struct silent_chain {
  static constexpr u32 rows = 8;
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using consumer_stage = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;

  CuSync chain;
  producer_stage& producer;
  consumer_stage& consumer;
  words silent{1}, middle{rows}, out{rows};
  u64 sleep = 0;
  stream user;

  silent_chain(launch_mode mode, milliseconds limit)
      : chain(in_mode(mode, limit)),
        producer(chain.stage<producer_stage>("producer", {rows, 1, 1}, RowMajor{})),
        consumer(chain.stage<consumer_stage>("consumer", {rows, 1, 1}, RowMajor{})),
        produce_(bind()),
        consume_(chain.kernel(consumer, silent_tile<gpu_ref<consumer_stage>>, 32)) {}

  void launch() {
    chain.launch(user, produce_(silent.data(), sleep, middle.data()),
                 consume_(silent.data(), u64{0}, out.data()));
  }

private:
  using produce_type = bound_kernel<producer_stage, const u32*, u64, u32*>;
  using consume_type = bound_kernel<consumer_stage, const u32*, u64, u32*>;
  produce_type bind() {
    chain.dependency<RowSync>(producer, consumer, A, row_dependence{{rows, 1}, {1, 1}, 1, 1, 1});
    return chain.kernel(producer, silent_tile<gpu_ref<producer_stage>>, 32);
  }
  produce_type produce_;
  consume_type consume_;
};

TEST(FieldCase33, ProducerThatNeverPostsIsReportedAndTheChainRunsAgain) {
  for (const launch_mode mode : overlapping) {
    silent_chain test(mode, milliseconds(500));
    test.silent.set(1, test.user);
    const auto begin = std::chrono::steady_clock::now();
    test.launch();
    try {
      test.chain.synchronize(test.user);
      FAIL() << "the wait was answered";
    } catch (const wait_timeout& late) {
      const std::string text = late.what();
      for (const char* part : {"'consumer'", "(5, 0, 0)", "semaphore 5", "saw 0", "wanted 1"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1500));
    test.silent.set(0, test.user);
    for (int run = 0; run < 3; ++run) {
      test.out.poison(test.user);
      test.launch();
      test.chain.synchronize(test.user);
      EXPECT_EQ(test.out.read(), (std::vector<u32>{0, 1, 2, 3, 4, 5, 6, 7}));
    }
  }
}

TEST(FieldCase33, NextLaunchSaysWhatHappenedToTheLast) {
  silent_chain test(launch_mode::pdl, milliseconds(200));
  test.silent.set(1, test.user);
  test.launch();
  ok(cudaStreamSynchronize(test.user));
  EXPECT_THROW(test.launch(), wait_timeout);
  test.silent.set(0, test.user);
  test.launch();
  test.chain.synchronize(test.user);
}

TEST(FieldCase33, SlowButLiveProducerIsNotKilled) {
  // One block takes eight tiles of half a second each: the last waits far longer than the limit.
  silent_chain test(launch_mode::pdl, seconds(1));
  test.silent.set(0, test.user);
  test.sleep = 500'000'000;
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<RowSync>, tile_source::counter>;
  CuSync chain(in_mode(launch_mode::pdl, seconds(1)));
  auto& producer = chain.stage<producer_stage>("producer", {8, 1, 1}, RowMajor{}, {.blocks = 1});
  auto& consumer = chain.stage<silent_chain::consumer_stage>("consumer", {8, 1, 1}, RowMajor{});
  chain.dependency<RowSync>(producer, consumer, A, row_dependence{{8, 1}, {1, 1}, 1, 1, 1});
  auto produce = chain.kernel(producer, silent_tile<gpu_ref<producer_stage>>, 32);
  auto consume = chain.kernel(consumer, silent_tile<gpu_ref<silent_chain::consumer_stage>>, 32);
  chain.launch(test.user, produce(test.silent.data(), test.sleep, test.middle.data()),
               consume(test.silent.data(), u64{0}, test.out.data()));
  EXPECT_NO_THROW(chain.synchronize(test.user));
}

// --- failures of launches ------------------------------------------------------------------------------

/// A cluster of two: a grid of an odd number of blocks cannot be launched.
template <class Stage> __global__ void __cluster_dims__(2, 1, 1) paired(u32* out, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    stage.wait_all(A, *tile);
    out[tile.coord.row] = tile.coord.row;
  }
}

TEST(Launch, FailedConsumerLeavesTheChainUsable) {
  if (!has_pdl()) GTEST_SKIP() << "needs clusters, and code for them";
  using producer_stage = silent_chain::producer_stage;
  using consumer_stage = silent_chain::consumer_stage;
  const u32 rows = 7;
  for (const launch_mode mode : overlapping) {
    CuSync chain(in_mode(mode));
    auto& producer = chain.stage<producer_stage>("producer", {rows, 1, 1}, RowMajor{});
    auto& consumer = chain.stage<consumer_stage>("consumer", {rows, 1, 1}, RowMajor{});
    chain.dependency<RowSync>(producer, consumer, A, row_dependence{{rows, 1}, {1, 1}, 1, 1, 1});
    auto produce = chain.kernel(producer, silent_tile<gpu_ref<producer_stage>>, 32);
    auto consume = chain.kernel(consumer, paired<gpu_ref<consumer_stage>>, 32);
    words silent(1), middle(rows), out(rows);
    stream user;
    silent.set(0, user);
    for (int turn = 0; turn < 3; ++turn) {
      try {
        chain.launch(user, produce(silent.data(), u64{0}, middle.data()), consume(out.data()));
        FAIL() << "an odd grid of a cluster of two was launched";
      } catch (const cuda_error& failed) {
        EXPECT_NE(std::string(failed.what()).find("'consumer'"), std::string::npos)
            << failed.what();
      }
      ok(cudaStreamSynchronize(user)); // nothing hangs, nothing sticks
      ok(cudaGetLastError());
    }
  }
}

TEST(Launch, EveryStageIsCalledOnce) {
  line<> chain({}, in_mode(launch_mode::pdl));
  EXPECT_THROW(chain.chain().launch(nullptr, std::vector<const stage_call*>{}), invalid_argument);
  expect_runs_exact(chain, 1);
}

// --- 34: built for another architecture -------------------------------------------------------------------

TEST(FieldCase34, AutomaticTakesWhatTheBuildAllows) {
  line<> chain({}, in_mode(launch_mode::automatic));
  chain.chain().prepare();
  const bool can = has_pdl();
  EXPECT_EQ(chain.chain().mode(), can ? launch_mode::pdl : launch_mode::streams);
  EXPECT_EQ(chain.chain().mode_reason().empty(), can);
  expect_runs_exact(chain, 20);
  line<> forced({}, {.mode = launch_mode::pdl});
  if (can)
    EXPECT_NO_THROW(forced.chain().prepare());
  else
    EXPECT_THROW(forced.chain().prepare(), invalid_argument);
}

// --- 36: a GPU that is shared (tests/gpu/shared_gpu.sh runs two of these at once) ---------------------

TEST(FieldCase36, LongRunBesideAnotherProcess) {
  for (const launch_mode mode : overlapping) {
    line<> chain({.stages = 4}, in_mode(mode));
    chain.arguments(1).sleep_ns = 5'000;
    const auto end = std::chrono::steady_clock::now() + seconds(5);
    stream user;
    u32 run = 0;
    while (std::chrono::steady_clock::now() < end) {
      chain.set_seed(++run, user);
      for (int i = 0; i < 50; ++i) chain.launch(user);
      chain.chain().synchronize(user);
      chain.expect(run);
    }
  }
}

} // namespace
} // namespace cusync::test
