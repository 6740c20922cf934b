// SPDX-License-Identifier: MIT
#pragma once

#include "synthetic_kernel.cuh"

#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cusync::cli {

/// A chain of equal stages, one block an SM.
struct synthetic_problem {
  u32 rows = 33;
  u32 cols = 6;
  u32 stages = 2;
  double tile_us = 20;
  u32 threads = 128;
  u32 shared_bytes =
      200 * 1024; ///< A block's: 200 KB leaves room for one block an SM, 100 KB for two.

  tile_extent grid() const { return {rows, cols, 1}; }
  u32 tiles() const { return rows * cols; }
};

/// The chain's words on the device, a row of `tiles` words a stage, and the seed.
class synthetic_data {
public:
  explicit synthetic_data(const synthetic_problem& problem) : problem_(problem) {
    detail::check(cudaMalloc(&words_, bytes()), "allocate the synthetic chain's words");
    detail::check(cudaMalloc(&seed_, sizeof(u32)), "allocate the synthetic chain's seed");
  }
  ~synthetic_data() {
    cudaFree(words_);
    cudaFree(seed_);
  }
  synthetic_data(const synthetic_data&) = delete;
  synthetic_data& operator=(const synthetic_data&) = delete;

  synthetic_arguments arguments(u32 stage, long long cycles) const {
    const u32* in = stage == 0 ? nullptr : words_ + (stage - 1) * problem_.tiles();
    return {in, seed_, words_ + stage * problem_.tiles(), problem_.cols, cycles};
  }

  /// Overwrites all words with what no stage writes, and sets the seed.
  void poison(u32 seed, cudaStream_t stream) {
    detail::check(cudaMemsetAsync(words_, 0xff, bytes(), stream), "poison the words");
    detail::check(cudaMemcpyAsync(seed_, &seed, sizeof seed, cudaMemcpyHostToDevice, stream),
                  "set the seed");
  }

  /// Words of the last stage that differ from what they must be; waits for `stream`.
  u32 wrong_words(u32 seed, cudaStream_t stream) const {
    std::vector<u32> got(problem_.tiles());
    detail::check(cudaMemcpyAsync(got.data(), words_ + (problem_.stages - 1) * problem_.tiles(),
                                  got.size() * sizeof(u32), cudaMemcpyDeviceToHost, stream),
                  "read the words");
    detail::check(cudaStreamSynchronize(stream), "wait for the synthetic chain");
    u32 wrong = 0;
    for (u32 row = 0; row < problem_.rows; ++row) {
      u32 sum = 0; // of the row in the stage before
      for (u32 col = 0; col < problem_.cols; ++col) sum += seed + row * problem_.cols + col;
      u32 value = sum + 1;
      for (u32 stage = 2; stage < problem_.stages; ++stage) value = value * problem_.cols + 1;
      for (u32 col = 0; col < problem_.cols; ++col)
        wrong += got[row * problem_.cols + col] != value;
    }
    return wrong;
  }

private:
  std::size_t bytes() const {
    return std::size_t{problem_.stages} * problem_.tiles() * sizeof(u32);
  }

  synthetic_problem problem_;
  u32* words_ = nullptr;
  u32* seed_ = nullptr;
};

/// The chain on the GPU, every edge with the same policy.
template <class Policy> class synthetic_chain {
public:
  synthetic_chain(const synthetic_problem& problem, const synthetic_data& data, long long cycles,
                  chain_options options)
      : chain_(options) {
    const row_dependence row{{problem.rows, problem.cols}, {1, 1}, 1, 1, problem.cols};
    first& head = chain_.stage<first>("stage 0", problem.grid(), RowMajor{});
    bind(head, problem, data, cycles);
    middle* ahead = nullptr;
    for (u32 i = 1; i + 1 < problem.stages; ++i) {
      middle& next = chain_.stage<middle>("stage " + std::to_string(i), problem.grid(), RowMajor{});
      if (ahead == nullptr)
        chain_.dependency<Policy>(head, next, previous, row);
      else
        chain_.dependency<Policy>(*ahead, next, previous, row);
      bind(next, problem, data, cycles);
      ahead = &next;
    }
    last& tail = chain_.stage<last>("stage " + std::to_string(problem.stages - 1), problem.grid(),
                                    RowMajor{});
    if (ahead == nullptr)
      chain_.dependency<Policy>(head, tail, previous, row);
    else
      chain_.dependency<Policy>(*ahead, tail, previous, row);
    bind(tail, problem, data, cycles);
    chain_.prepare();
  }

  void launch(cudaStream_t stream) {
    std::vector<const stage_call*> calls;
    for (const auto& call : calls_) calls.push_back(call.get());
    chain_.launch(stream, calls);
  }
  CuSync& chain() { return chain_; }

private:
  using row_read = inputs<reads<0, Policy, row_dependence>>;
  using first = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using middle = CuStage<RowMajor, row_read, outputs<Policy>>;
  using last = CuStage<RowMajor, row_read, outputs<>>;

  template <class Stage>
  void bind(Stage& stage, const synthetic_problem& problem, const synthetic_data& data,
            long long cycles) {
    auto kernel = chain_.kernel(stage, synthetic<typename Stage::template ref<cuda_backend>>,
                                dim3(problem.threads), problem.shared_bytes);
    using call = decltype(kernel(synthetic_arguments{}));
    calls_.push_back(std::make_unique<call>(kernel(data.arguments(stage.index(), cycles))));
  }

  CuSync chain_;
  std::vector<std::unique_ptr<stage_call>> calls_;
};

/// The same kernels without stage code, in stream order.
class synthetic_plain_chain {
public:
  synthetic_plain_chain(const synthetic_problem& problem, const synthetic_data& data,
                        long long cycles)
      : problem_(problem), data_(data), cycles_(cycles) {
    detail::check(cudaFuncSetAttribute(synthetic_plain, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(problem.shared_bytes)),
                  "set the plain kernel's shared memory");
  }
  void launch(cudaStream_t stream) {
    for (u32 stage = 0; stage < problem_.stages; ++stage)
      synthetic_plain<<<problem_.tiles(), problem_.threads, problem_.shared_bytes, stream>>>(
          data_.arguments(stage, cycles_), problem_.grid());
    detail::check(cudaGetLastError(), "launch the plain synthetic kernel");
  }

private:
  synthetic_problem problem_;
  const synthetic_data& data_;
  long long cycles_;
};

} // namespace cusync::cli
