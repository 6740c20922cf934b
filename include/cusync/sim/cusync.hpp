// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/chain.hpp>            // chain, any_stage
#include <cusync/launch_plan.hpp>      // stage_plan, link_of
#include <cusync/overwrite.hpp>        // require_no_overwrite
#include <cusync/sim/execution.hpp>    // execution, kernel_launch
#include <cusync/sim/gpu.hpp>          // gpu, find_gpu, block_resources
#include <cusync/sim/host_backend.hpp> // host_backend
#include <cusync/sim/launch_shape.hpp> // launch_shape, stage_load
#include <cusync/sim/report.hpp>       // report
#include <cusync/sim/schedule.hpp>     // schedule
#include <cusync/sim/tile_cost.hpp>    // tile_cost, tile_time
#include <cusync/sim/timing.hpp>       // timing

#include <concepts>   // same_as
#include <functional> // function
#include <optional>   // optional
#include <string>     // string
#include <tuple>      // tuple, apply
#include <utility>    // move
#include <vector>     // vector

namespace cusync::sim {

/// A stage's kernel and its arguments for one run.
struct stage_call {
  const any_stage* stage;
  /// Makes the function that executes one block.
  std::function<std::function<void()>(const stage_plan&, const stage_link&, u32*)> bind;
};

/// A stage's kernel; called with its arguments, it gives a `stage_call`.
template <class Stage, class Function> class bound_kernel {
public:
  bound_kernel(const Stage& stage, Function function)
      : stage_(&stage), function_(std::move(function)) {}

  template <class... Args> stage_call operator()(Args... args) const {
    const auto bind = [stage = stage_, function = function_,
                       arguments = std::tuple<Args...>(args...)](
                          const stage_plan& plan, const stage_link& link, u32* semaphores) {
      const auto view =
          stage->template view<host_backend>(link, semaphores, plan.waits, plan.posted);
      return std::function<void()>([function, arguments, view] {
        std::apply([&](const Args&... each) { function(each..., view); }, arguments);
      });
    };
    return {stage_, bind};
  }

private:
  const Stage* stage_;
  Function function_;
};

/// A chain on the virtual GPU: the twin of the `CuSync` of cusync.cuh.
///
///     sim::CuSync chain(sim::find_gpu("H200"));
///     auto& first = chain.stage<Producer>("first", grid1, RowMajor{});
///     auto& second = chain.stage<Consumer>("second", grid2, RowMajor{});
///     chain.dependency<RowSync>(first, second, A, reads);
///     auto gemm1 = chain.kernel(first, [](const float* X, float* Y, auto stage) { ... });
///     auto gemm2 = chain.kernel(second, ...);
///     sim::report report = chain.launch(gemm1(X, Y), gemm2(Y, Z));
///
/// A kernel is any host function that takes the stage's view last. Results are real, times virtual:
/// those of the GPU described, for tiles that cost what `kernel` was told. One thread at a time.
class CuSync : public chain {
public:
  explicit CuSync(const gpu& device = find_gpu("H200"), schedule how = {})
      : device_(device), how_(std::move(how)) {}

  /// Binds a stage to its kernel. A block runs on one host thread, whatever `block.threads` says.
  template <class Stage, class Function>
  bound_kernel<Stage, Function> kernel(Stage& stage, Function function, block_resources block = {},
                                       tile_cost tile = {.ns = 1000}) {
    if (shape_) throw invalid_argument("chain was launched already; bind its kernels before");
    bound_.resize(stages().size(), false);
    if (bound_[stage.index()])
      throw invalid_argument("stage '" + stage.name() + "' has a kernel already");
    bound_[stage.index()] = true;
    loads_.resize(stages().size());
    loads_[stage.index()] = {block, tile};
    return {stage, std::move(function)};
  }

  /// What a launch needs: the mode, the plan, memory. Throws `invalid_argument`.
  void prepare() {
    if (shape_) return;
    seal();
    loads_.resize(stages().size());
    shape_.emplace(*this, device_, how_, loads_);
    if (!keeps_faults()) require_no_overwrite(*this, shape_->plan());
    words_.assign(stages().size(), 0);
    semaphores_.assign(semaphore_total(), 0);
  }

  /// One run: each stage's call once, in any order. Returns when it is complete.
  ///
  /// Throws `invalid_argument` before anything runs; what a kernel throws, `deadlock`, `wait_timeout`
  /// or `kernel_fault` while it does. The output is then invalid, and the chain can run again.
  template <std::same_as<stage_call>... Calls> report launch(const Calls&... calls) {
    enqueue(calls...);
    return synchronize();
  }

  /// Queues a run behind those queued before, as an asynchronous launch does.
  template <std::same_as<stage_call>... Calls> void enqueue(const Calls&... calls) {
    enqueue(std::vector<stage_call>{calls...});
  }
  void enqueue(const std::vector<stage_call>& calls) {
    std::vector<const stage_call*> by_stage(stages().size(), nullptr);
    for (const stage_call& call : calls) place(by_stage, *call.stage, call);
    prepare();
    require_all_placed(by_stage);
    for (const stage_plan& plan : shape_->plan().stages)
      queue_.push_back(*by_stage[plan.stage->index()]);
  }

  /// Executes all runs that are queued.
  report synchronize() {
    prepare();
    const std::vector<stage_call> queue = std::exchange(queue_, {});
    execution gpu(device_, how_, semaphores_.data(), semaphore_total());
    const u32 stages = static_cast<u32>(shape_->plan().stages.size());
    for (u32 i = 0; i < queue.size(); ++i) {
      const u32 position = i % stages;
      gpu.add(shape_->launch_at(position, i - position, how_),
              kernel_of(queue[i], position, i / stages));
    }
    try {
      report result = gpu.run();
      shape_->summarise(result);
      return result;
    } catch (...) {
      start_at_run(0); // blocks that are gone have, or have not, posted for a run that has no end
      throw;
    }
  }

  /// How long runs would take, without executing anything.
  report predict(u32 runs = 1, timing_options options = {}) {
    prepare();
    return timing(*shape_, how_, semaphore_total(), options).run(runs);
  }

  /// The mode in force, and why it is not the one asked for (empty where it is).
  launch_mode mode() { return shape().mode(); }
  const std::string& mode_reason() { return shape().mode_reason(); }
  /// Whether a chain of two stages needs no gate in front of the second.
  bool gate_needless() { return shape().gate_needless(); }
  /// How long a tile of `stage` takes, and why (`explain`).
  tile_time time_of(const any_stage& stage) { return shape().time_of(stage); }
  const launch_shape& shape() {
    prepare();
    return *shape_;
  }
  const gpu& device() const { return device_; }
  const std::vector<stage_load>& loads() const { return loads_; } ///< Of stages bound so far.

  /// Another order, seed or speed for the runs to come; mode and slots stay.
  void reschedule(schedule how) {
    if (shape_ && (how.mode != how_.mode || how.slots != how_.slots))
      throw invalid_argument("chain was launched already; its mode and slots cannot change");
    how_ = std::move(how);
  }

  /// For tests: as if that many runs had been launched before. All counters wrap at 2^32.
  void start_at_run(u32 run) {
    prepare();
    for (u64& word : words_) word = u64{run} << 32;
    semaphores_ = semaphores_after(run);
  }

private:
  kernel_launch kernel_of(const stage_call& call, u32 position, u32 run) {
    const stage_plan& plan = shape_->plan().stages[position];
    stage_link link = link_of(plan, words_.data(), semaphores_.data(), semaphore_total());
    link.spin_limit_ns = how_.spin_limit_ns;
    link.started = &started_;
    if (shape_->mode() == launch_mode::streams) link.duties |= duty::starts;
    return {shape_->record_of(*plan.stage, run), shape_->time_of(*plan.stage).ns,
            call.bind(plan, link, semaphores_.data())};
  }

  gpu device_;
  schedule how_;
  std::vector<stage_load> loads_; ///< By stage.
  std::vector<bool> bound_;       ///< By stage: it has its kernel.
  std::optional<launch_shape> shape_;
  std::vector<u64> words_; ///< By stage.
  std::vector<u32> semaphores_;
  u32 started_ = 0;
  std::vector<stage_call> queue_; ///< In launch order, run after run.
};

} // namespace cusync::sim
