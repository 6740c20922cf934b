// SPDX-License-Identifier: MIT
#pragma once

// What the GPU tests share: device buffers that are poisoned, a kernel that computes a sum over
// whatever a dependence reads, and the sum's value on the host.

#include <cusync/coverage.hpp> // for_each_tile
#include <cusync/cusync.cuh>

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace cusync::test {

inline void ok(cudaError_t result) { detail::check(result, "test"); }

/// Words on the device; every byte 0xff until written.
class words {
public:
  explicit words(std::size_t count) : count_(count) {
    ok(cudaMalloc(&data_, count * sizeof(u32)));
    poison(nullptr);
    ok(cudaDeviceSynchronize());
  }
  ~words() { cudaFree(data_); }
  words(const words&) = delete;
  words& operator=(const words&) = delete;

  u32* data() const { return data_; }
  void poison(cudaStream_t stream) {
    ok(cudaMemsetAsync(data_, 0xff, count_ * sizeof(u32), stream));
  }
  void set(u32 value, cudaStream_t stream) {
    ok(cudaMemcpyAsync(data_, &value, sizeof value, cudaMemcpyHostToDevice, stream));
    ok(cudaStreamSynchronize(stream));
  }
  /// Waits for the device.
  std::vector<u32> read() const {
    std::vector<u32> copy(count_);
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(copy.data(), data_, count_ * sizeof(u32), cudaMemcpyDeviceToHost));
    return copy;
  }

private:
  std::size_t count_;
  u32* data_ = nullptr;
};

class stream {
public:
  stream() { ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~stream() { cudaStreamDestroy(stream_); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  operator cudaStream_t() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

/// An executable graph of what `enqueue` puts into a stream.
class graph {
public:
  explicit graph(const std::function<void(cudaStream_t)>& enqueue,
                 cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    stream capture;
    ok(cudaStreamBeginCapture(capture, mode));
    enqueue(capture);
    ok(cudaStreamEndCapture(capture, &graph_));
    ok(cudaGraphInstantiate(&exec_, graph_, 0));
  }
  ~graph() {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
  }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  void launch(cudaStream_t stream) const { ok(cudaGraphLaunch(exec_, stream)); }
  cudaGraph_t get() const { return graph_; }

private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

__device__ inline void sleep_ns(u64 duration) {
  u64 begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < duration);
}

inline constexpr operand<0> A{};
inline constexpr operand<1> B{};
inline constexpr u32 lane_words = 32; ///< Words a tile and slice: one a lane of the first warp.

/// Where slice `slice` of a tile lies in the words of its stage.
CUSYNC_HOST_DEVICE inline std::size_t offset_of(tile_coord tile, tile_extent grid) {
  return ((std::size_t{tile.row} * grid.cols + tile.col) * grid.slices + tile.slice) * lane_words;
}

struct sum_arguments {
  const u32* seed; ///< Added to every tile of a stage without inputs.
  const u32* a = nullptr;
  const u32* b = nullptr;
  u32* out = nullptr;
  u32* visits = nullptr; ///< Counts each tile and slice taken, where given.
  u64 sleep_ns = 0;      ///< Every third tile sleeps this long ahead of its stores.
};

/// Sum over the producer tiles and slices that `tile` reads through an operand, lane by lane.
template <class Stage, int Operand>
__device__ u32 sum_of(const Stage& stage, operand<Operand>, const u32* in, tile_coord tile) {
  const auto& input = detail::find_input<Operand>(const_cast<Stage&>(stage));
  const tile_extent producer = input.dependence.producer();
  const tile_range range = input.dependence.reads(tile);
  u32 sum = 0;
  for (u32 row = range.row_begin; row < range.row_end; ++row)
    for (u32 col = range.col_begin; col < range.col_end; col += range.col_stride)
      for (u32 slice = 0; slice < producer.slices; ++slice)
        sum += in[offset_of({row, col, slice}, producer) + threadIdx.x];
  return sum;
}

/// out[tile] = 1 + what is read through A and B, or seed + the tile's number where nothing is.
template <class Stage> __global__ void sum_kernel(sum_arguments arguments, Stage stage) {
  stage.start();
  while (auto tile = stage.tile()) {
    const std::size_t at = offset_of(*tile, stage.grid);
    u32 value = static_cast<u32>(at / lane_words) + threadIdx.x;
    if constexpr (Stage::declares(A) || Stage::declares(B)) {
      value = 1;
    } else {
      value += *arguments.seed;
    }
    if constexpr (Stage::declares(A)) {
      stage.wait_all(A, *tile);
      if (threadIdx.x < lane_words) value += sum_of(stage, A, arguments.a, *tile);
    }
    if constexpr (Stage::declares(B)) {
      stage.wait_all(B, *tile);
      if (threadIdx.x < lane_words) value += sum_of(stage, B, arguments.b, *tile);
    }
    const bool sleepy = at / lane_words % 3 == 1;
    if (arguments.sleep_ns != 0 && sleepy) sleep_ns(arguments.sleep_ns);
    if (threadIdx.x < lane_words) arguments.out[at + threadIdx.x] = value;
    if (arguments.visits != nullptr && threadIdx.x == 0)
      atomicAdd(arguments.visits + at / lane_words, 1u);
    stage.post(*tile);
  }
}

inline std::vector<u32> first_stage_words(tile_extent grid, u32 seed) {
  std::vector<u32> out(grid.count() * lane_words);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<u32>(i / lane_words + i % lane_words) + seed;
  return out;
}

/// Adds to `out` what each tile of the dependence's consumer reads of `in`.
template <class Dependence>
void add_sums(std::vector<u32>& out, const std::vector<u32>& in, const Dependence& dependence) {
  const tile_extent consumer = dependence.consumer();
  const tile_extent producer = dependence.producer();
  detail::for_each_tile(consumer, [&](tile_coord tile) {
    detail::for_each_tile(dependence.reads(tile), producer.slices, [&](tile_coord read) {
      for (u32 lane = 0; lane < lane_words; ++lane)
        out[offset_of(tile, consumer) + lane] += in[offset_of(read, producer) + lane];
    });
  });
}

template <class Dependence>
std::vector<u32> next_stage_words(const std::vector<u32>& in, const Dependence& dependence) {
  std::vector<u32> out(dependence.consumer().count() * lane_words, 1);
  add_sums(out, in, dependence);
  return out;
}

template <class Stage> using gpu_ref = typename Stage::template ref<cuda_backend>;

/// Whether GPU and build have programmatic dependent launch.
inline bool has_pdl() {
  int device = 0, major = 0;
  ok(cudaGetDevice(&device));
  ok(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  cudaFuncAttributes attributes{};
  ok(cudaFuncGetAttributes(&attributes, detail::gate_kernel<>));
  return major >= 9 && attributes.ptxVersion >= 90;
}

/// Options of a test's chain. Where there is no mode `pdl`, a case that asks for it shows what
/// `automatic` takes instead.
inline chain_options in_mode(launch_mode mode,
                             std::chrono::milliseconds limit = std::chrono::seconds(4)) {
  if (mode == launch_mode::pdl && !has_pdl()) mode = launch_mode::automatic;
  return {.mode = mode, .spin_limit = limit};
}

} // namespace cusync::test
