// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/device/cuda_error.cuh> // check
#include <cusync/stage_ref.hpp>         // spin_report, u32, u64

#include <cuda_runtime_api.h>

#include <atomic>  // atomic
#include <cstddef> // size_t
#include <memory>  // shared_ptr
#include <mutex>   // mutex
#include <span>    // span
#include <vector>  // vector

namespace cusync::detail {

/// The device memory that one executable form of a chain runs on: eager launches share one state,
/// each captured graph has its own. Zeroed once; runs of one state never overlap.
struct chain_state {
  u64* words = nullptr;   ///< A (run | ticket) word a stage.
  u64* gates = nullptr;   ///< A run counter a gate.
  u32* started = nullptr; ///< Blocks started, all runs.
  u32* abort = nullptr;
  u32* semaphores = nullptr;
  spin_report* report = nullptr; ///< Mapped host memory; host and device address are the same.
  cudaEvent_t done = nullptr;    ///< After the last run that was launched on this state.
  cudaStream_t last_stream = nullptr;
  bool used = false;              ///< `done` and `last_stream` mean something.
  unsigned long long capture = 0; ///< Of a captured state: the capture that it belongs to.
  std::atomic<bool> taken{false}; ///< Cleared when the graph is destroyed, on any thread.

  bool failed() const { return *static_cast<volatile u32*>(&report->raised) != 0; }
};

/// All states of a chain in one allocation, made at set-up: nothing is allocated in a capture.
class state_pool {
public:
  state_pool(u32 states, u32 stages, u32 semaphores)
      : count_(states), states_(new chain_state[states]) {
    const std::size_t heads = 2 * stages * sizeof(u64) + 2 * sizeof(u32);
    bytes_ = (heads + semaphores * sizeof(u32) + 255) / 256 * 256;
    check(cudaMalloc(&memory_, bytes_ * states), "allocate the chain's semaphores");
    check(cudaMemset(memory_, 0, bytes_ * states), "zero the chain's semaphores");
    check(cudaHostAlloc(&reports_, sizeof(spin_report) * states, cudaHostAllocMapped),
          "allocate the chain's report");
    for (u32 i = 0; i < states; ++i) {
      chain_state& state = states_[i];
      reports_[i] = spin_report{};
      state.words = reinterpret_cast<u64*>(memory_ + bytes_ * i);
      state.gates = state.words + stages;
      state.started = reinterpret_cast<u32*>(state.gates + stages);
      state.abort = state.started + 1;
      state.semaphores = state.abort + 1;
      state.report = reports_ + i;
      check(cudaEventCreateWithFlags(&state.done, cudaEventDisableTiming), "create an event");
    }
    check(cudaDeviceSynchronize(), "zero the chain's semaphores");
  }
  ~state_pool() {
    for (u32 i = 0; i < count_; ++i)
      if (states_[i].done != nullptr) cudaEventDestroy(states_[i].done);
    cudaFreeHost(reports_);
    cudaFree(memory_);
  }
  state_pool(const state_pool&) = delete; // owns device memory that kernels point to
  state_pool& operator=(const state_pool&) = delete;

  chain_state& eager() { return states_[0]; }

  std::span<chain_state> states() { return {states_.get(), count_}; }

  /// Overwrites a state's counters. Waits for the device.
  static void write(chain_state& state, const std::vector<u64>& words,
                    const std::vector<u64>& gates, u32 started,
                    const std::vector<u32>& semaphores) {
    const auto copy = [](void* to, const void* from, std::size_t bytes) {
      check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "write the chain's counters");
    };
    copy(state.words, words.data(), words.size() * sizeof(u64));
    copy(state.gates, gates.data(), gates.size() * sizeof(u64));
    copy(state.started, &started, sizeof started);
    copy(state.semaphores, semaphores.data(), semaphores.size() * sizeof(u32));
  }

  /// The state of this capture, or a free one; null where all are taken.
  chain_state* for_capture(unsigned long long capture) {
    for (u32 i = 1; i < count_; ++i)
      if (states_[i].taken && states_[i].capture == capture) return &states_[i];
    for (u32 i = 1; i < count_; ++i)
      if (!states_[i].taken && !states_[i].failed()) return &states_[i];
    return nullptr;
  }

  /// Zeroes a state behind everything in `stream`: after a run that failed.
  void reset(chain_state& state, cudaStream_t stream) {
    *state.report = spin_report{};
    check(cudaMemsetAsync(state.words, 0, bytes_, stream), "reset the chain's semaphores");
  }

  /// Lets `graph` keep the pool, and `state` taken, until it and its executables are destroyed.
  static void retain(cudaGraph_t graph, chain_state& state,
                     const std::shared_ptr<state_pool>& pool) {
    auto* lease = new lease_type{pool, &state};
    cudaUserObject_t object = nullptr;
    check(cudaUserObjectCreate(&object, lease, end_lease, 1, cudaUserObjectNoDestructorSync),
          "keep the chain's state alive");
    check(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove),
          "keep the chain's state alive");
    state.taken = true;
  }

  /// Frees pools whose last owner was a graph: CUDA forbids it in the callback that said so.
  static void free_retired() {
    std::vector<std::shared_ptr<state_pool>> dead;
    const std::lock_guard lock(retired_mutex());
    dead.swap(retired());
  }

private:
  struct lease_type {
    std::shared_ptr<state_pool> pool;
    chain_state* state;
  };

  static void CUDART_CB end_lease(void* pointer) {
    auto* lease = static_cast<lease_type*>(pointer);
    lease->state->taken = false;
    {
      const std::lock_guard lock(retired_mutex());
      retired().push_back(std::move(lease->pool));
    }
    delete lease;
  }
  static std::mutex& retired_mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::vector<std::shared_ptr<state_pool>>& retired() {
    static auto* pools = new std::vector<std::shared_ptr<state_pool>>; // outlives CUDA's own exit
    return *pools;
  }

  u32 count_;
  std::unique_ptr<chain_state[]> states_;
  std::size_t bytes_ = 0;
  char* memory_ = nullptr;
  spin_report* reports_ = nullptr;
};

} // namespace cusync::detail
