// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"
#include "trace_text.hpp"

#include "analyze/html.hpp"
#include "analyze/overlap_model.hpp"

#include <gmock/gmock.h>

namespace cusync::analyze {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const kernel_shape& shape_of(const analysis& found, const std::string& name, extent3 grid) {
  for (const kernel_shape& shape : found.shapes)
    if (shape.launch.grid == grid && found.names[shape.name].find(name) != std::string::npos)
      return shape;
  throw std::runtime_error("no kernel " + name);
}

// --- waves, worked out by hand ----------------------------------------------------------------------

TEST(Waves, OfATransformerOnAnH200) {
  const analysis found = analyse(read_trace(traces + "gpt3_tp8_3layers_b512_h200.json.gz"));
  // 34 registers x 32 = 1088 a warp, handed out as 1280: 12 warps in each quarter of 16384, 48 an SM,
  // 12 blocks of 4 warps. 12 x 132 SMs = 1584 places for 6144 blocks.
  const kernel_shape& add = shape_of(found, "CUDAFunctor_add", {6144, 1, 1});
  EXPECT_EQ(add.per_sm, 12u);
  EXPECT_DOUBLE_EQ(add.waves, 6144 / 1584.0);
  // 512 threads: four blocks fill the SM's 2048 threads, with 32 registers each its 65536. 576 blocks.
  const kernel_shape& reduce = shape_of(found, "splitKreduce", {144, 4, 1});
  EXPECT_EQ(reduce.per_sm, 4u);
  EXPECT_DOUBLE_EQ(reduce.waves, 576 / 528.0);
  // 188556 bytes and the system's 1024: one block an SM.
  const kernel_shape& gemm = shape_of(found, "nvjet_sm90_hsh_320x128", {4, 30, 1});
  EXPECT_EQ(gemm.per_sm, 1u);
  EXPECT_DOUBLE_EQ(gemm.waves, 120 / 132.0);
  EXPECT_FALSE(gemm.may_be_persistent);
  EXPECT_TRUE(shape_of(found, "nvjet_sm90_hsh_192x128", {2, 66, 1}).may_be_persistent);
  EXPECT_FALSE(shape_of(found, "nvjet_sm90_hsh_192x128", {2, 64, 1}).may_be_persistent);
}

TEST(Waves, OfAConvolutionOnAnH200) {
  const analysis found = analyse(read_trace(traces + "resnet34_b4_h200.json.gz"));
  // 104 registers x 32 = 3328 a warp: 4 warps a quarter, 4 blocks of 4 warps; but 81920 + 1024 bytes
  // fit twice into 233472.
  const kernel_shape& gemm = shape_of(found, "cutlass__5x_cudnn::Kernel", {196, 1, 1});
  EXPECT_EQ(gemm.per_sm, 2u);
  EXPECT_DOUBLE_EQ(gemm.waves, 196 / 264.0);
  // 106 registers round up to 3584 a warp: 4 a quarter, 4 blocks. 784 blocks on 528 places.
  EXPECT_DOUBLE_EQ(shape_of(found, "wo_smem", {2, 392, 1}).waves, 784 / 528.0);
}

TEST(Waves, OnAnA100) {
  const analysis found = analyse(read_trace(traces + "alexnet_a100.json.gz"));
  // 160 registers x 32 = 5120 a warp: 3 a quarter, 3 blocks of 4 warps. 3 x 108 SMs = 324 places.
  EXPECT_DOUBLE_EQ(shape_of(found, "cudnn_ampere_scudnn", {3025, 1, 1}).waves, 3025 / 324.0);
  // 64 registers: 8 warps a quarter, 2 blocks of 16 warps; 35904 bytes would allow 4.
  EXPECT_DOUBLE_EQ(shape_of(found, "fft2d_c2r", {1536, 1, 1}).waves, 1536 / 216.0);
}

// --- gaps and wins ----------------------------------------------------------------------------------

/// Two kernels of 1.5 waves of 10 us each: 198 blocks, one an SM by their shared memory. The second
/// starts 2 us after the end of the first, which is at 120.
std::string two_kernels(const std::string& start = "122", double call = 50, double call_takes = 5) {
  text_kernel first, second;
  first.name = "first";
  second.name = "second";
  for (text_kernel* each : {&first, &second}) {
    each->grid = "[6, 33, 1]";
    each->shared = 200000;
    each->duration = "20";
  }
  second.start = start;
  second.correlation = 2;
  return first.json() + "," + second.json() + "," + call_json(2, call, call_takes);
}

TEST(Analysis, MeasuresIdleTimeInTheLastWave) {
  const analysis found = analyse_events(two_kernels());
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_DOUBLE_EQ(found.shapes[0].waves, 1.5);
  EXPECT_DOUBLE_EQ(found.pairs[0].idle, 5000); // half of the GPU for the second 10 us
}

TEST(Analysis, SplitsTheGapByTheLaunchCall) {
  const auto pair = [](double call, double takes) {
    return analyse_events(two_kernels("160", call, takes)).pairs.at(0);
  };
  const kernel_pair in_time = pair(50, 5); // the gap is 40 us, from 120 to 160
  EXPECT_EQ(in_time.gap, 40'000);
  EXPECT_EQ(in_time.host + in_time.call, 0);
  const kernel_pair late = pair(140, 5);
  EXPECT_EQ(late.host, 20'000);
  EXPECT_EQ(late.call, 5'000);
  EXPECT_EQ(late.rest(), 15'000);
  const kernel_pair running = pair(110, 15);
  EXPECT_EQ(running.host, 0);
  EXPECT_EQ(running.call, 5'000);
  const kernel_pair long_call = pair(130, 500); // returned after the kernel began
  EXPECT_EQ(long_call.host, 10'000);
  EXPECT_EQ(long_call.rest(), 0);
}

TEST(Analysis, CountsNoWaitForTheHostAsAWin) {
  const analysis late = analyse_events(two_kernels("1120", 1105, 10)); // a gap of 1000 us
  const analysis in_time = analyse_events(two_kernels("125", 50, 5));  // a gap of 5 us
  EXPECT_LT(late.pairs[0].most, in_time.pairs[0].most);
  EXPECT_GT(late.pairs[0].most, 0);
  EXPECT_DOUBLE_EQ(late.total().host + late.total().call, 995'000);
  EXPECT_EQ(late.total().realistic_late, late.total().realistic);
  EXPECT_EQ(in_time.total().realistic_late, 0);
}

TEST(Analysis, WinsAtMostTheIdleWavesAndTheGap) {
  const analysis found = analyse_events(two_kernels());
  // 1.5 + 1.5 waves of 10 us fill 30 us instead of 40, and the gap of 2 us goes.
  EXPECT_DOUBLE_EQ(found.pairs[0].most, 12'000);
  EXPECT_GT(found.pairs[0].realistic, 6'000);
  EXPECT_LE(found.pairs[0].realistic, found.pairs[0].most);
  EXPECT_DOUBLE_EQ(found.base, 42'000);
  EXPECT_NEAR(found.percent(found.pairs[0].most), 28.57, 0.01);
}

TEST(Analysis, WinsOnlyTheGapBehindASingleWave) {
  text_kernel first, second; // no block of the first is done before its only wave is
  first.grid = second.grid = "[100, 1, 1]";
  second.start = "112";
  const analysis found = analyse_events(first.json() + "," + second.json());
  EXPECT_GT(found.pairs[0].idle, 0);
  EXPECT_DOUBLE_EQ(found.pairs[0].most, 2'000);
}

TEST(Analysis, AllowsNegativeGaps) {
  const analysis found = analyse_events(two_kernels("115"));
  EXPECT_EQ(found.pairs[0].gap, -5'000);
  EXPECT_EQ(found.pairs[0].host, 0);
  EXPECT_DOUBLE_EQ(found.pairs[0].most, 5'000); // half of what could overlap does already
}

TEST(Analysis, CountsEachLastWaveOnceInTheTotal) {
  std::string events;
  for (int i = 0; i < 9; ++i) {
    text_kernel kernel;
    kernel.grid = "[6, 33, 1]";
    kernel.shared = 200000;
    kernel.start = std::to_string(100 + 20 * i);
    kernel.duration = "20";
    events += (i > 0 ? "," : "") + kernel.json();
  }
  const analysis found = analyse_events(events);
  ASSERT_EQ(found.pairs.size(), 8u);
  double most = 0, realistic = 0;
  for (const kernel_pair& pair : found.pairs) most += pair.most, realistic += pair.realistic;
  EXPECT_DOUBLE_EQ(most, 80'000);                           // nearly half of the step: too good
  EXPECT_DOUBLE_EQ(found.total().most, 45'000);             // nine idle half waves of 10 us
  EXPECT_DOUBLE_EQ(found.total().realistic, realistic / 2); // four of eight pairs share no kernel
  EXPECT_LE(found.total().realistic, found.total().most);
}

TEST(Analysis, WinsAQuarterOfAChainOfPartialWaves) {
  std::string events;
  for (int i = 0; i < 12; ++i) {
    text_kernel gemm;
    gemm.grid = "[6, 33, 1]";
    gemm.shared = 200000;
    gemm.start = std::to_string(100 + 201 * i);
    gemm.duration = "200";
    events += (i > 0 ? "," : "") + gemm.json();
  }
  const analysis found = analyse_events(events);
  EXPECT_NEAR(found.total_percent(found.total().realistic), 24, 2);
  EXPECT_NEAR(found.total_percent(found.total().most), 25, 1);
}

TEST(Analysis, NeverWinsMoreThanItCould) {
  for (const char* name : {"gpt3_tp8_3layers_b512_h200", "gpt3_tp8_3layers_b1_h200",
                           "llama8b_2layers_b256_h200", "resnet34_b4_h200", "alexnet_a100"}) {
    const analysis found = analyse(read_trace(traces + name + ".json.gz"));
    for (const kernel_pair& pair : found.pairs) {
      EXPECT_GE(pair.realistic, 0);
      EXPECT_LE(pair.realistic, pair.most);
      EXPECT_EQ(pair.host + pair.call + pair.rest(), pair.gap);
    }
    const gpu_total total = found.total();
    EXPECT_LE(total.realistic, total.most + 1e-6) << name;
    EXPECT_LE(total.most, total.busy + total.rest) << name;
  }
}

TEST(Analysis, FindsTheOverlapsThatAreThereAlready) {
  const analysis found = analyse(read_trace(traces + "gpt3_tp8_3layers_b1_h200.json.gz"));
  const auto negative = std::count_if(found.pairs.begin(), found.pairs.end(),
                                      [](const kernel_pair& pair) { return pair.gap < 0; });
  EXPECT_EQ(negative, 6);
}

// --- what parts pairs -------------------------------------------------------------------------------

TEST(Analysis, PairsNoKernelsOfDifferentStreamsOrGpus) {
  text_kernel a, b;
  b.start = "120";
  b.stream = 8;
  EXPECT_EQ(analyse_events(a.json() + "," + b.json()).pairs.size(), 0u);
  b.stream = 7;
  b.device = 1;
  const analysis found = analyse(read_text(trace_json(a.json() + "," + b.json(), R"([
      {"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "NVIDIA A100-SXM4-40GB"}])")));
  EXPECT_EQ(found.pairs.size(), 0u);
  EXPECT_EQ(found.totals.size(), 2u);
  EXPECT_EQ(found.gpus[1].gpu.sms, 108u);
  EXPECT_THAT(found.summary, HasSubstr("2 kernels in 2 streams on 2 GPUs"));
}

TEST(Analysis, LeavesOutGpusWithoutKernels) {
  const std::string copy = R"(,{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "ts": 1, "dur": 1,
      "args": {"device": 5, "context": 1, "stream": 7}})";
  const analysis found = analyse_events(two_kernels() + copy);
  EXPECT_EQ(found.totals.size(), 1u);
  EXPECT_DOUBLE_EQ(found.total_percent(found.base), 100);
}

TEST(Analysis, LetsCopiesAndWaitsForEventsPartPairs) {
  const auto other = [](const std::string& category, const std::string& name, int start) {
    return R"(,{"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "ts": )" +
           std::to_string(start) +
           R"(, "dur": 1, "args": {"device": 0, "context": 1, "stream": 7}})";
  };
  const auto pairs = [&](const std::string& category, const std::string& name, int start) {
    return analyse_events(two_kernels() + other(category, name, start)).pairs.size();
  };
  EXPECT_EQ(pairs("gpu_memcpy", "Memcpy DtoD", 121), 0u);
  EXPECT_EQ(pairs("gpu_memset", "Memset (Device)", 121), 0u);
  EXPECT_EQ(pairs("gpu_memcpy", "Memcpy DtoD", 143), 1u);
  EXPECT_EQ(pairs("cuda_sync", "Stream Wait Event", 121), 0u);
  EXPECT_EQ(pairs("cuda_sync", "Stream Sync", 121), 1u);
  const analysis found = analyse_events(two_kernels() + other("gpu_memcpy", "Memcpy", 121));
  EXPECT_THAT(found.notes, Contains("Pairs left out: 1 by a copy."));
}

TEST(Analysis, SortsEventsThatAreOutOfOrder) {
  text_kernel a, b, c;
  a.name = "a", b.name = "b", c.name = "c";
  a.start = "300", b.start = "100", c.start = "200";
  const analysis found = analyse_events(a.json() + "," + b.json() + "," + c.json());
  ASSERT_EQ(found.pairs.size(), 2u);
  EXPECT_EQ(found.names[found.kernels[0].name], "b");
  EXPECT_EQ(found.pairs[0].gap, 90'000);
  EXPECT_DOUBLE_EQ(found.base, 210'000);
}

TEST(Analysis, TakesTheLastCallOfARecurringNumber) {
  const analysis found = analyse_events(two_kernels("160", 10, 5) + "," + call_json(2, 130, 5) +
                                        "," + call_json(2, 900, 5));
  EXPECT_EQ(found.pairs[0].host, 10'000); // the call at 130: at 900 the kernel had run
}

TEST(Analysis, SurvivesKernelsWithoutDuration) {
  text_kernel a, b;
  a.duration = b.duration = "0";
  b.start = "100";
  const analysis found = analyse_events(a.json() + "," + b.json());
  EXPECT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.percent(found.total().most), 0);
  EXPECT_THAT(html_of(found, "x"), HasSubstr("</html>"));
}

TEST(Analysis, SurvivesTheLargestGrids) {
  text_kernel a, b;
  a.grid = b.grid = "[2147483647, 65535, 65535]";
  a.block = b.block = "[1, 1, 1]";
  b.start = "120";
  const analysis found = analyse_events(a.json() + "," + b.json());
  EXPECT_GT(found.shapes[0].waves, 1e14);
  EXPECT_GE(found.pairs[0].realistic, 0);
}

// --- steps ------------------------------------------------------------------------------------------

TEST(Analysis, RefersToMarkedSteps) {
  const std::string mark = R"(,{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3",
      "pid": 9, "tid": 9, "ts": 40, "dur": 200})";
  text_kernel outside;
  outside.start = "5000";
  const analysis found = analyse_events(two_kernels() + mark + "," + outside.json());
  EXPECT_EQ(found.steps, 1u);
  EXPECT_DOUBLE_EQ(found.base, 200'000);
  EXPECT_EQ(found.pairs.size(), 1u);
  EXPECT_THAT(found.notes, Contains(HasSubstr("1 kernel were launched outside")));
}

// --- what cannot be known ---------------------------------------------------------------------------

TEST(Analysis, SaysInOneLineWhyThereIsNothing) {
  const std::string cpu = R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1})";
  text_kernel shapeless;
  shapeless.grid = "[]";
  text_kernel nccl;
  nccl.name = "ncclDevKernel_AllReduce_Sum_f16_RING_LL";
  const std::string hip = "," + call_json(1, 1, 1, "hipLaunchKernel");
  const std::pair<std::string, const char*> cases[] = {
      {trace_json(cpu), "ProfilerActivity.CUDA"},
      {trace_json(""), "none among 0 events"},
      {trace_json(shapeless.json()), "without a grid and block"},
      {trace_json(nccl.json()), "wait for other GPUs"},
      {trace_json(cpu + hip), "AMD GPU"},
      {trace_json(text_kernel{}.json() + hip), "AMD GPU"},
      {trace_json(text_kernel{}.json(), R"([{"id": 0, "name": "AMD Instinct MI300X"}])"),
       "AMD GPU"},
      {trace_json(text_kernel{}.json(), "[]"), "--gpu"},
      {trace_json(text_kernel{}.json(), R"([{"id": 0, "name": "H200", "numSms": 4000000000}])"),
       "--gpu"},
      {trace_json(cpu + "," + call_json(1, 1, 1, "cudaGraphLaunch")), "cuda-graph-trace=node"},
  };
  for (const auto& [text, why] : cases) {
    const std::string refusal = refusal_of([&, &content = text] { analyse(read_text(content)); });
    EXPECT_THAT(refusal, AllOf(HasSubstr("no kernel that can be analysed"), HasSubstr(why)));
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  }
}

TEST(Analysis, SaysWhatItCannotKnow) {
  text_kernel fills, nccl;
  fills.grid = "[264, 1, 1]"; // two blocks of 1024 threads on each SM
  nccl.name = "ncclDevKernel_AllReduce";
  nccl.start = "200";
  const analysis found = analyse_events(fills.json() + "," + nccl.json() + "," +
                                        call_json(77, 1, 1, "cudaGraphLaunch"));
  EXPECT_THAT(found.notes, Contains(HasSubstr("Persistent kernels: 1 launch ")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("Communication: 1 kernel")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("CUDA graphs: 1 launch of a graph")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("Clusters: the trace does not record them")));
}

TEST(Analysis, TakesWhatATraceLacksFromTheDescriptions) {
  const analysis named = analyse(read_text(trace_json(
      text_kernel{}.json(), R"([{"id": 0, "name": "NVIDIA H100 PCIe", "numSms": 114}])")));
  EXPECT_EQ(named.gpus[0].gpu.sms, 114u);
  EXPECT_EQ(named.gpus[0].gpu.shared_per_sm, 233472u);
  EXPECT_THAT(named.gpus[0].from, HasSubstr("built-in H100"));
  const analysis given =
      analyse(read_text(trace_json(text_kernel{}.json(), "[]")), sim::find_gpu("V100"));
  EXPECT_EQ(given.gpus[0].gpu.sms, 80u);
  EXPECT_EQ(analyse_events(text_kernel{}.json()).gpus[0].gpu.blocks_per_sm, 32u);
}

// --- the simulation ---------------------------------------------------------------------------------

wave_shape long_waves(u64 blocks, u64 duration_ns) {
  return {blocks, 6, {1024, 32, 200000}, 1, duration_ns};
}

TEST(OverlapModel, WinsWithPartialWavesAndNotWithFullOnes) {
  overlap_model model;
  const sim::gpu gpu = sim::find_gpu("H200");
  const double partial = model.saved_ns(gpu, long_waves(198, 200'000), long_waves(198, 200'000));
  EXPECT_GT(partial, 80'000);
  EXPECT_LT(partial, 102'000);
  EXPECT_LT(model.saved_ns(gpu, long_waves(264, 200'000), long_waves(264, 200'000)), 3'000);
}

// Merged blocks of the first kernel once hid that its last wave was half empty.
TEST(OverlapModel, LeavesOutWavesWithoutChangingMuch) {
  overlap_model model;
  const sim::gpu gpu = sim::find_gpu("H200");
  const auto saved = [&](u64 first_waves, u64 second_waves) {
    return model.saved_ns(gpu, long_waves(132 * first_waves + 66, 100'000 * (first_waves + 1)),
                          long_waves(132 * second_waves + 66, 100'000 * (second_waves + 1)));
  };
  EXPECT_NEAR(saved(31, 1), saved(14, 1), 10'000);
  EXPECT_NEAR(saved(14, 31), saved(14, 14), 35'000); // 17 more waves pay 1.1 us each for waits
  EXPECT_GT(saved(14, 1), 80'000);
}

TEST(OverlapModel, LetsManyShortBlocksPayForTheirWaits) {
  overlap_model model;
  const sim::gpu gpu = sim::find_gpu("H200");
  const wave_shape shorts{132 * 1000, 6, {1024, 32, 200000}, 1, 2'000'000}; // 2 us each
  EXPECT_LT(model.saved_ns(gpu, long_waves(198, 200'000), shorts), 0);
}

// --- the picture ------------------------------------------------------------------------------------

TEST(Html, NeedsNothingElseAndEscapesNames) {
  text_kernel kernel;
  kernel.name = "<script>alert(1)</script>";
  const std::string page = html_of(analyse_events(kernel.json()), "/a/<b>.json");
  EXPECT_THAT(
      page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("http")), HasSubstr("&lt;b&gt;.json")));
}

TEST(Html, DrawsEachKernelAndWin) {
  const analysis found = analyse(read_trace(traces + "gpt3_tp8_3layers_b512_h200.json.gz"));
  const std::string page = html_of(found, "b512");
  std::size_t groups = 0;
  for (std::size_t at = page.find("<g><title>"); at != std::string::npos;
       at = page.find("<g><title>", at + 1))
    ++groups;
  const auto wins = std::count_if(found.pairs.begin(), found.pairs.end(),
                                  [](const kernel_pair& pair) { return pair.most > 0; });
  EXPECT_GE(groups, 33 + std::size_t(wins));
}

TEST(Html, StaysSmallForLongTraces) {
  std::string events;
  for (int i = 0; i < 20000; ++i) {
    text_kernel kernel;
    kernel.start = std::to_string(100 + 20 * i);
    events += (i > 0 ? "," : "") + kernel.json();
  }
  EXPECT_LT(html_of(analyse_events(events), "long").size(), 500'000u);
}

} // namespace
} // namespace cusync::analyze
