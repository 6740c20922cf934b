// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/device/cuda_error.cuh>  // check
#include <cusync/device/gate_kernel.cuh> // gate_kernel

#include <cuda_runtime_api.h>

#include <optional> // optional
#include <vector>   // vector

namespace cusync::detail {

/// The streams and events of mode `streams`, made at set-up: a stream a stage, one for all gates.
///
/// All of them are forked from the user's stream at a run's beginning and joined to it at its end.
class chain_streams {
public:
  explicit chain_streams(u32 stages)
      : stages_(stages), streams_(stages + 1), events_(3 * stages + 1) {
    for (cudaStream_t& stream : streams_)
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    for (cudaEvent_t& event : events_)
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
    cudaFuncAttributes unused{};
    check(cudaFuncGetAttributes(&unused, gate_kernel<>), "load the gate kernel");
  }
  ~chain_streams() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  chain_streams(const chain_streams&) = delete; // owns CUDA handles
  chain_streams& operator=(const chain_streams&) = delete;

  cudaStream_t of(u32 stage) const { return streams_[stage]; }

  void begin(cudaStream_t user) const { record(forked(), user, "fork the chain's streams"); }
  void enter(cudaStream_t own) const { wait(own, forked(), "fork the chain's streams"); }
  void mark_end(u32 stage, cudaStream_t own) const {
    record(ended(stage), own, "mark the end of a stage");
  }
  void wait_for_end(u32 stage, cudaStream_t own) const {
    wait(own, ended(stage), "wait for a whole stage");
  }

  /// Records, as an attribute of a stage's launch, the moment when all its blocks have started.
  cudaLaunchAttribute started(u32 stage) const {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
    attribute.val.launchCompletionEvent.event = events_[2 * stages_ + stage];
    return attribute;
  }

  /// Makes `own`, the stream of stage `link.stage`, wait for a gate (`gate_kernel`). All gates are in
  /// one stream, so at most one spins. `ahead`, where given, is a stage behind whose start it stands.
  void pass_gate(cudaStream_t own, const u32* ahead, u64* runs, u32 blocks_before, u32 blocks_a_run,
                 const stage_link& link) const {
    enter(gates());
    if (ahead != nullptr)
      wait(gates(), started(*ahead).val.launchCompletionEvent.event,
           "order a gate behind a stage's start");
    gate_kernel<><<<1, 1, 0, gates()>>>(runs, blocks_before, blocks_a_run, link);
    check(cudaGetLastError(), "launch a gate");
    const cudaEvent_t opened = events_[stages_ + link.stage];
    record(opened, gates(), "mark a gate");
    wait(own, opened, "wait for a gate");
  }

  /// In a graph a stage and the gate behind it are unordered branches, and a gate that runs first could
  /// keep the stage out. What orders them is the edge that `started` makes. Whether this driver captures
  /// it: tried once, with two gates that never run, and not before a capture asks, since a device-wide
  /// call of another thread fails while any stream is captured.
  bool starts_are_captured() const {
    if (!starts_are_captured_) starts_are_captured_ = probe_capture();
    return *starts_are_captured_;
  }

private:
  bool probe_capture() const {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(of(0), cudaStreamCaptureModeThreadLocal), "probe a capture");
    const cudaLaunchAttribute attribute = started(0);
    bool captured =
        probe(of(0), &attribute) &&
        cudaStreamWaitEvent(gates(), attribute.val.launchCompletionEvent.event) == cudaSuccess &&
        probe(gates(), nullptr) && cudaEventRecord(forked(), gates()) == cudaSuccess &&
        cudaStreamWaitEvent(of(0), forked()) == cudaSuccess;
    captured =
        cudaStreamEndCapture(of(0), &graph) == cudaSuccess && captured && has_start_edge(graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError(); // a driver without it has said so
    return captured;
  }

  cudaStream_t gates() const { return streams_.back(); }
  cudaEvent_t forked() const { return events_.back(); }
  cudaEvent_t ended(u32 stage) const { return events_[stage]; }

  static void record(cudaEvent_t event, cudaStream_t stream, const char* what) {
    check(cudaEventRecord(event, stream), what);
  }
  static void wait(cudaStream_t stream, cudaEvent_t event, const char* what) {
    check(cudaStreamWaitEvent(stream, event), what);
  }

  static bool probe(cudaStream_t stream, const cudaLaunchAttribute* attribute) {
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = const_cast<cudaLaunchAttribute*>(attribute);
    config.numAttrs = attribute != nullptr ? 1 : 0;
    u64* runs = nullptr;
    return cudaLaunchKernelEx(&config, gate_kernel<>, runs, u32{0}, u32{0}, stage_link{}) ==
           cudaSuccess;
  }

  static bool has_start_edge(cudaGraph_t graph) {
    std::size_t count = 1;
    cudaGraphNode_t from = nullptr;
    cudaGraphNode_t to = nullptr;
    cudaGraphEdgeData edge{};
#if CUDART_VERSION >= 13000
    const cudaError_t got = cudaGraphGetEdges(graph, &from, &to, &edge, &count);
#else
    const cudaError_t got = cudaGraphGetEdges_v2(graph, &from, &to, &edge, &count);
#endif
    return got == cudaSuccess && count == 1 &&
           edge.from_port == cudaGraphKernelNodePortLaunchCompletion;
  }

  u32 stages_;
  std::vector<cudaStream_t> streams_; ///< By stage; the gates' is last.
  std::vector<cudaEvent_t> events_;   ///< Ends, gates and starts by stage; the fork is last.
  mutable std::optional<bool> starts_are_captured_;
};

} // namespace cusync::detail
