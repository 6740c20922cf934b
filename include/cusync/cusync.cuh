// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/chain.hpp>                // chain, CuStage
#include <cusync/device/chain_state.cuh>   // chain_state, state_pool
#include <cusync/device/chain_streams.cuh> // chain_streams
#include <cusync/device/cuda_error.cuh>    // cuda_error, check
#include <cusync/device/gate_kernel.cuh>   // gate_kernel, gate_operand
#include <cusync/device/gpu_limits.cuh>    // gpu_limits
#include <cusync/device/stage_call.cuh>    // stage_call, bound_kernel, kernel_binding
#include <cusync/launch_plan.hpp>          // plan_launch, link_of
#include <cusync/overwrite.hpp>            // require_no_overwrite

#include <cuda_runtime_api.h>

#include <algorithm> // max
#include <chrono>    // nanoseconds, seconds
#include <concepts>  // derived_from
#include <map>       // map
#include <memory>    // make_shared, make_unique
#include <mutex>     // mutex, unique_lock
#include <string>    // string
#include <thread>    // sleep_for
#include <vector>    // vector

namespace cusync {

/// How a chain is launched and what happens when a wait is never answered.
struct chain_options {
  launch_mode mode = launch_mode::automatic;
  u32 captures = 4; ///< Graphs of this chain that may exist at once.
  /// A wait gives up after this long without a post anywhere in the chain; 0: never.
  std::chrono::nanoseconds spin_limit = std::chrono::seconds(10);
  on_expiry expiry = on_expiry::report;
  /// Mode `streams`: no gate where it is proved needless for this chain alone on the GPU (the
  /// paper's W). Void, and therefore not to be asked for, where another waiting chain shares the GPU.
  bool skip_gates = false;
};

/// A chain of dependent kernels on a GPU, the one current at construction.
///
///     CuSync chain;
///     auto& first = chain.stage<Producer>("first", grid1, RowMajor{});
///     auto& second = chain.stage<Consumer>("second", grid2, RowMajor{});
///     chain.dependency<RowSync>(first, second, A, reads);
///     auto gemm1 = chain.kernel(first, gemm<Producer::ref<cuda_backend>>, block);
///     auto gemm2 = chain.kernel(second, gemm<Consumer::ref<cuda_backend>>, block);
///     chain.launch(stream, gemm1(X, W1, XW1), gemm2(XW1, W2, Y));
///
/// A launch is asynchronous and ordered in `stream` like one kernel: after all before it, before all
/// behind it. Set-up happens at the first launch, or in `prepare()`, which a capture needs. One
/// thread at a time.
class CuSync : public chain {
public:
  explicit CuSync(chain_options options = {}) : options_(options) {
    detail::state_pool::free_retired();
  }

  /// Binds a stage to its kernel: block size and dynamic shared memory are those of every launch.
  /// Loads the kernel, since loading it later could wait for a kernel that waits for it.
  template <class Stage, class... Params>
  auto kernel(Stage& stage, void (*function)(Params...), dim3 block, std::size_t shared_bytes = 0) {
    return typename detail::split_params<Stage, std::tuple<>, Params...>::type(
        bind(stage, reinterpret_cast<const void*>(function), block, shared_bytes));
  }

  /// Everything a launch needs: mode, memory, streams. Outside of any capture.
  void prepare() {
    if (prepared_) return;
    gpu_.require_current();
    seal();
    require_kernels();
    choose_mode();
    plan_ = plan_launch(*this, mode_);
    require_no_overwrite(*this, plan_);
    pool_ = std::make_shared<detail::state_pool>(
        options_.captures + 1, static_cast<u32>(stages().size()), semaphore_total());
    share_carveout();
    if (mode_ == launch_mode::streams) make_streams();
    prepared_ = true;
  }

  /// One run: each stage's call once, in any order. Nothing is launched where something is wrong;
  /// where a launch fails, no later stage is launched and the chain stays usable.
  ///
  /// Throws `invalid_argument`, `cuda_error`, or `wait_timeout` for an earlier run that gave up.
  template <std::derived_from<stage_call>... Calls>
  void launch(cudaStream_t stream, const Calls&... calls) {
    launch(stream, std::vector<const stage_call*>{&calls...});
  }

  /// The same for a number of stages that is not known at compile time.
  void launch(cudaStream_t stream, const std::vector<const stage_call*>& calls) {
    std::vector<const stage_call*> by_stage(stages().size(), nullptr);
    for (const stage_call* call : calls) place(by_stage, *call->binding().stage, *call);
    launch_all(stream, by_stage);
  }

  /// Waits for `stream`, then throws `wait_timeout` where a run gave up, replayed graphs included.
  void synchronize(cudaStream_t stream) {
    detail::check(cudaStreamSynchronize(stream), "wait for the chain's stream");
    if (!prepared_) return;
    follow_last_run(pool_->eager(), stream);
    for (detail::chain_state& state : pool_->states()) throw_if_failed(state, stream);
  }

  /// For tests: as if that many eager runs had been launched before. All counters wrap at 2^32.
  void start_at_run(u32 run) {
    prepare();
    u32 blocks_a_run = 0;
    std::vector<u64> words(stages().size(), u64{run} << 32);
    std::vector<u64> gates(stages().size(), run);
    for (const auto& stage : stages()) blocks_a_run += stage->tiles() == 0 ? 0 : stage->blocks();
    pool_->write(pool_->eager(), words, gates, run * blocks_a_run, semaphores_after(run));
  }

  /// The mode in force, and why it is not the one asked for (empty where it is). After `prepare()`.
  launch_mode mode() const { return mode_; }
  const std::string& mode_reason() const { return mode_reason_; }
  /// The mode of captured runs: `serial` where the graph cannot hold what mode `streams` needs.
  launch_mode captured_mode() const {
    const bool lacks_edges = streams_ != nullptr && !streams_->starts_are_captured();
    return lacks_edges ? launch_mode::serial : mode_;
  }
  /// Whether the gate in front of this stage was proved needless and left out.
  bool gate_skipped(const any_stage& stage) const {
    return mode_ == launch_mode::streams && prepared_ && !gates_[stage.index()];
  }

private:
  // --- set-up -----------------------------------------------------------------------------------

  const kernel_binding& bind(const any_stage& stage, const void* function, dim3 block,
                             std::size_t shared_bytes) {
    if (prepared_) throw invalid_argument("chain was launched already; bind its kernels before");
    gpu_.require_current();
    kernel_binding binding{&stage, function, block, shared_bytes, {}};
    const std::string what = "load the kernel of stage '" + stage.name() + "'";
    detail::check(cudaFuncGetAttributes(&binding.attributes, function), what);
    gpu_.require_block(binding);
    // Raised to the limit once and for all: another thread may launch the same function with more.
    detail::check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       gpu_.most_dynamic_shared_bytes(binding)),
                  what);
    auto& slot = bindings_[stage.index()];
    if (slot != nullptr)
      throw invalid_argument("stage '" + stage.name() + "' has a kernel already");
    slot = std::make_unique<kernel_binding>(binding);
    return *slot;
  }

  void require_kernels() const {
    for (const auto& stage : stages())
      if (!bindings_.contains(stage->index()))
        throw invalid_argument("stage '" + stage->name() +
                               "' has no kernel; bind one with kernel(...)");
  }

  void choose_mode() {
    const std::string no_pdl = why_no_pdl();
    const std::string no_streams = why_no_streams();
    mode_ = options_.mode;
    if (mode_ == launch_mode::pdl && !no_pdl.empty())
      throw invalid_argument("mode pdl: " + no_pdl + "; use mode automatic");
    if (mode_ == launch_mode::automatic) {
      mode_ = no_pdl.empty() ? launch_mode::pdl : launch_mode::streams;
      mode_reason_ = no_pdl;
    }
    if (mode_ == launch_mode::streams && !no_streams.empty()) {
      mode_ = launch_mode::serial;
      mode_reason_ = no_streams;
    }
  }

  std::string why_no_pdl() const {
    if (!gpu_.has_dependent_launch()) return gpu_.name() + " has no programmatic dependent launch";
    for (const auto& [index, binding] : bindings_)
      if (binding->attributes.ptxVersion < 90)
        return "the kernel of stage '" + binding->stage->name() + "' is compiled for sm_" +
               std::to_string(binding->attributes.ptxVersion) +
               ", without the instructions of sm_90";
    return {};
  }

  std::string why_no_streams() const {
    for (const auto& [index, binding] : bindings_)
      if (!gpu_.gate_fits_beside(*binding))
        return "the gate does not fit beside a block of stage '" + binding->stage->name() + "'";
    return {};
  }

  /// All stages, and the gate, prefer the same split of L1 and shared memory, the largest that one of
  /// them needs: an SM changes it only when idle, which would keep stages apart.
  void share_carveout() {
    u32 percent = 0;
    for (const auto& [index, binding] : bindings_)
      percent = std::max(percent, gpu_.shared_percent(*binding));
    const auto prefer = [percent](const void* function, const std::string& whose) {
      detail::check(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                         static_cast<int>(percent)),
                    "set the shared-memory carve-out of " + whose);
    };
    for (const auto& [index, binding] : bindings_)
      prefer(binding->function, "stage '" + binding->stage->name() + "'");
    prefer(reinterpret_cast<const void*>(detail::gate_kernel<>), "the gate");
  }

  void make_streams() {
    streams_ = std::make_unique<detail::chain_streams>(static_cast<u32>(stages().size()));
    gates_.assign(stages().size(), true);
    // Proved for chains of two stages only: in longer ones, mixes of waiting stages fill an SM.
    if (options_.skip_gates && plan_.stages.size() == 2) {
      const u32 first = plan_.stages[0].stage->index(), second = plan_.stages[1].stage->index();
      gates_[second] = !gpu_.gate_needless(*bindings_.at(first), *bindings_.at(second));
    }
  }

  // --- launch -----------------------------------------------------------------------------------

  void launch_all(cudaStream_t stream, const std::vector<const stage_call*>& calls) {
    const std::unique_lock lock(launching_, std::try_to_lock);
    if (!lock)
      throw invalid_argument(
          "chain is being launched by another thread; give each thread its own chain");
    gpu_.require_current();
    cudaStreamCaptureStatus status{};
    unsigned long long capture = 0;
    cudaGraph_t graph = nullptr;
    detail::check(cudaStreamGetCaptureInfo(stream, &status, &capture, &graph),
                  "look at the stream");
    const bool capturing = status == cudaStreamCaptureStatusActive;
    if (capturing && !prepared_)
      throw invalid_argument(
          "chain is not set up, and set-up cannot be captured; call prepare() before "
          "the capture begins");
    prepare();
    require_all_placed(calls);
    detail::chain_state& state = capturing ? captured_state(capture, graph) : pool_->eager();
    follow_last_run(state, stream);
    if (!capturing) throw_if_failed(state, stream);
    run(stream, calls, state, capturing);
    detail::check(cudaEventRecord(state.done, stream), "mark the end of the run");
    state.last_stream = stream;
    state.used = true;
  }

  /// Orders what comes next in `stream`, a run or a reset, behind the state's last run.
  static void follow_last_run(const detail::chain_state& state, cudaStream_t stream) {
    if (state.used && state.last_stream != stream)
      detail::check(cudaStreamWaitEvent(stream, state.done), "order the run behind the last one");
  }

  detail::chain_state& captured_state(unsigned long long capture, cudaGraph_t graph) {
    detail::chain_state* state = pool_->for_capture(capture);
    // CUDA lets go of a destroyed graph a little later, on a thread of its own.
    for (int turn = 0; state == nullptr && turn < 100; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      state = pool_->for_capture(capture);
    }
    if (state == nullptr)
      throw invalid_argument("all " + std::to_string(options_.captures) +
                             " states for captured graphs are in use; destroy a graph or raise "
                             "chain_options::captures");
    if (state->taken) return *state;
    state->capture = capture;
    state->used = false;
    detail::state_pool::retain(graph, *state, pool_);
    return *state;
  }

  void run(cudaStream_t stream, const std::vector<const stage_call*>& calls,
           detail::chain_state& state, bool capturing) {
    const launch_plan plan = capturing ? plan_launch(*this, captured_mode()) : plan_;
    try {
      if (plan.mode == launch_mode::streams)
        run_in_streams(stream, calls, state, capturing);
      else
        for (const stage_plan& stage : plan.stages)
          launch_stage(stream, stage, calls, link(stage, state), state.semaphores);
    } catch (const cuda_error&) {
      // Earlier stages have posted for a run that their consumers will never count.
      if (!capturing) pool_->reset(state, stream);
      throw;
    }
  }

  /// `started`, where given, is recorded when all blocks of the stage have started.
  void launch_stage(cudaStream_t stream, const stage_plan& plan,
                    const std::vector<const stage_call*>& calls, const stage_link& link,
                    u32* semaphores, const cudaLaunchAttribute* started = nullptr) {
    const stage_call& call = *calls[plan.stage->index()];
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    if (started != nullptr) attribute = *started;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(plan.stage->blocks());
    config.blockDim = call.binding().block;
    config.dynamicSmemBytes = call.binding().shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = plan.early || started != nullptr ? 1 : 0;
    detail::check(call.launch(config, plan, link, semaphores),
                  "launch stage '" + plan.stage->name() + "'");
  }

  stage_link link(const stage_plan& plan, const detail::chain_state& state) const {
    stage_link link = link_of(plan, state.words, state.semaphores, semaphore_total());
    link.started = state.started;
    link.abort = state.abort;
    link.report = state.report;
    link.expiry = options_.expiry;
    link.spin_limit_ns = static_cast<u64>(options_.spin_limit.count());
    return link;
  }

  /// The first stage runs in the user's stream, the others in streams forked from it and joined to
  /// it. A gate is submitted only after all earlier stages' launches succeeded: it waits for nothing
  /// that is not on its way.
  void run_in_streams(cudaStream_t user, const std::vector<const stage_call*>& calls,
                      detail::chain_state& state, bool capturing) {
    streams_->begin(user);
    std::vector<u32> forked;
    const auto join = [&] {
      for (const u32 stage : forked) streams_->wait_for_end(stage, user);
    };
    try {
      u32 blocks_before = 0;
      const u32* ahead = nullptr;
      u32 last = 0;
      for (const stage_plan& plan : plan_.stages) {
        const u32 index = plan.stage->index();
        cudaStream_t own = ahead == nullptr ? user : streams_->of(index);
        stage_link link = this->link(plan, state);
        link.duties |= duty::starts;
        if (ahead != nullptr)
          open_stage(plan, own, capturing ? ahead : nullptr, blocks_before, state, link);
        const cudaLaunchAttribute started = streams_->started(index);
        launch_stage(own, plan, calls, link, state.semaphores, capturing ? &started : nullptr);
        streams_->mark_end(index, own);
        if (ahead != nullptr) forked.push_back(index);
        blocks_before += plan.stage->blocks();
        last = index;
        ahead = &last;
      }
    } catch (const cuda_error&) {
      join();
      throw;
    }
    join();
  }

  /// What a stage behind the first waits for before its launch. In a capture its gate stands behind the
  /// start of the stage `ahead`, and is never left out.
  void open_stage(const stage_plan& plan, cudaStream_t own, const u32* ahead, u32 blocks_before,
                  detail::chain_state& state, const stage_link& link) {
    u32 blocks_a_run = 0;
    for (const stage_plan& each : plan_.stages) blocks_a_run += each.stage->blocks();
    streams_->enter(own);
    if (gates_[link.stage] || ahead != nullptr)
      streams_->pass_gate(own, ahead, state.gates + link.stage, blocks_before, blocks_a_run, link);
    for (const any_stage* producer : plan.events) streams_->wait_for_end(producer->index(), own);
  }

  // --- failures ---------------------------------------------------------------------------------

  void throw_if_failed(detail::chain_state& state, cudaStream_t stream) {
    if (!state.failed()) return;
    const spin_report report = *state.report;
    pool_->reset(state, stream);
    throw wait_timeout(text(report));
  }

  std::string text(const spin_report& report) const {
    const std::string stage = "stage '" + stages()[report.stage]->name() + "'";
    if (report.raised == static_cast<u32>(spin_failure::ticket_out_of_range))
      return stage +
             " drew more tickets than a run has: two executables of one captured graph ran at "
             "the same time; capture once for each";
    if (report.operand == detail::gate_operand)
      return "the gate of " + stage + " gave up: saw " + std::to_string(report.seen) +
             " blocks started, wanted " + std::to_string(report.wanted);
    return stage + ", tile " + to_string(report.tile) + ": the wait for operand " +
           std::to_string(report.operand) + " gave up on semaphore " +
           std::to_string(report.semaphore) + ": saw " + std::to_string(report.seen) +
           " posts, wanted " + std::to_string(report.wanted) + "; the run's output is invalid";
  }

  chain_options options_;
  detail::gpu_limits gpu_;
  std::map<u32, std::unique_ptr<kernel_binding>> bindings_; ///< By stage.
  launch_mode mode_ = launch_mode::automatic;
  std::string mode_reason_;
  launch_plan plan_;
  std::shared_ptr<detail::state_pool> pool_;
  std::unique_ptr<detail::chain_streams> streams_; ///< In mode `streams`.
  std::vector<bool> gates_;                        ///< By stage: a gate stands in front of it.
  std::mutex launching_;
  bool prepared_ = false;
};

} // namespace cusync
