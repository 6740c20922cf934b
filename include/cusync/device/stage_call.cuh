// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/device/cuda_backend.cuh> // cuda_backend
#include <cusync/launch_plan.hpp>         // stage_plan

#include <cuda_runtime_api.h>

#include <tuple>       // tuple, apply
#include <type_traits> // is_same_v
#include <utility>     // move

namespace cusync {

/// A kernel as it will be launched for a stage.
struct kernel_binding {
  const any_stage* stage = nullptr;
  const void* function = nullptr;
  dim3 block;
  std::size_t shared_bytes = 0; ///< Dynamic shared memory.
  cudaFuncAttributes attributes{};
};

/// A stage's kernel with its arguments, for one launch.
class stage_call {
public:
  explicit stage_call(const kernel_binding& binding) : binding_(&binding) {}
  virtual ~stage_call() = default;
  const kernel_binding& binding() const { return *binding_; }

  /// Launches with the stage's view made for this launch.
  virtual cudaError_t launch(const cudaLaunchConfig_t& config, const stage_plan& plan,
                             const stage_link& link, u32* semaphores) const = 0;

private:
  const kernel_binding* binding_;
};

template <class Stage, class... Args> class call_of final : public stage_call {
public:
  using ref = typename Stage::template ref<cuda_backend>;

  call_of(const kernel_binding& binding, Args... args)
      : stage_call(binding), args_(std::move(args)...) {}

  cudaError_t launch(const cudaLaunchConfig_t& config, const stage_plan& plan,
                     const stage_link& link, u32* semaphores) const override {
    const auto& stage = static_cast<const Stage&>(*binding().stage);
    ref view = stage.template view<cuda_backend>(link, semaphores, plan.waits, plan.posted);
    std::tuple<Args...> args =
        args_; // CUDA takes pointers to non-const and copies before it returns
    return std::apply(
        [&](Args&... each) {
          void* pointers[] = {&each..., &view};
          return cudaLaunchKernelExC(&config, binding().function, pointers);
        },
        args);
  }

private:
  std::tuple<Args...> args_;
};

/// A stage's kernel; called with the kernel's arguments less the last, it gives a `stage_call`.
template <class Stage, class... Args> class bound_kernel {
public:
  explicit bound_kernel(const kernel_binding& binding) : binding_(&binding) {}
  call_of<Stage, Args...> operator()(Args... args) const { return {*binding_, std::move(args)...}; }

private:
  const kernel_binding* binding_;
};

namespace detail {

/// Splits a kernel's parameters into arguments and the stage's view behind them.
template <class Stage, class Done, class... Params> struct split_params;

template <class Stage, class... Args, class Last>
struct split_params<Stage, std::tuple<Args...>, Last> {
  static_assert(std::is_same_v<Last, typename Stage::template ref<cuda_backend>>,
                "a stage's kernel takes Stage::ref<cuda_backend>, by value, as its last parameter");
  using type = bound_kernel<Stage, Args...>;
};

template <class Stage, class... Args, class First, class Second, class... Rest>
struct split_params<Stage, std::tuple<Args...>, First, Second, Rest...>
    : split_params<Stage, std::tuple<Args..., First>, Second, Rest...> {};

} // namespace detail
} // namespace cusync
