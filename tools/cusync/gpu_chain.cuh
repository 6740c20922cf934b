// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/cusync.cuh> // CuSync, chain_options, stage_call

#include <chrono>     // seconds
#include <functional> // function
#include <memory>     // unique_ptr
#include <string>     // string
#include <vector>     // vector

namespace cusync::cli {

/// A chain with its calls, to be launched again and again.
class gpu_chain {
public:
  gpu_chain(launch_mode mode, bool skip_gates)
      : chain_({.mode = mode,
                .captures = 8, // a graph to check, one to time, and those not freed yet
                .spin_limit = std::chrono::seconds(2),
                .skip_gates = skip_gates}) {}

  CuSync& chain() { return chain_; }

  template <class Call> void add(Call call) {
    calls_.push_back(std::make_unique<Call>(std::move(call)));
    pointers_.push_back(calls_.back().get());
  }
  void launch(cudaStream_t stream) { chain_.launch(stream, pointers_); }

private:
  CuSync chain_;
  std::vector<std::unique_ptr<stage_call>> calls_;
  std::vector<const stage_call*> pointers_;
};

/// Kernels that are ready to run, as a chain or plainly.
struct gpu_launch {
  std::function<void(cudaStream_t)> enqueue;
  /// Waits, and throws `wait_timeout` where an eager run gave up.
  std::function<void(cudaStream_t)> settle = [](cudaStream_t) {};
  launch_mode mode = launch_mode::serial;
  std::string reason{}; ///< Why the mode is another one than asked for.
  bool proved = true;   ///< Of W.
};

/// A prepared chain as a launch. W is proved where the gate before the last stage is left out.
inline gpu_launch launch_of(const std::shared_ptr<gpu_chain>& chain) {
  CuSync& inside = chain->chain();
  inside.prepare();
  return {[chain](cudaStream_t stream) { chain->launch(stream); },
          [chain](cudaStream_t stream) { chain->chain().synchronize(stream); }, inside.mode(),
          inside.mode_reason(), inside.gate_skipped(*inside.stages().back())};
}

} // namespace cusync::cli
