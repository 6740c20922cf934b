// SPDX-License-Identifier: MIT
#include "gpu_part.hpp"
#include "gpu_timing.cuh"
#include "mlp_gpu.cuh"
#include "normal.hpp"

#include <cuda_fp16.h>

#include <cmath> // sqrt

namespace cusync::cli {
namespace {

// --- kernels --------------------------------------------------------------------------------------

__global__ void fill_normal(half* out, u64 count, u64 seed, float deviation) {
  const u64 step = u64{gridDim.x} * blockDim.x;
  for (u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    reinterpret_cast<__half*>(out)[i] = __float2half_rn(deviation * normal_at(seed, i));
}

constexpr u32 side = 32; ///< Of the reference's tiles.
constexpr u32 rows_a_thread = 4;

__device__ float value_at(const half* matrix, u32 row, u32 col, u32 rows, u32 cols) {
  if (row >= rows || col >= cols) return 0;
  return __half2float(reinterpret_cast<const __half*>(matrix)[u64{row} * cols + col]);
}

/// GeLU's tanh form, in double precision and written differently from the kernel's.
__device__ double gelu_reference(double x) {
  return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/// One product in double precision, and how far a sum in float may be from it: as
/// `gemm_reference::bound` says. A product of two halves is exact in float.
__global__ void __launch_bounds__(side* side / rows_a_thread)
    reference(gemm_arguments args, double* expected, float* bound) {
  __shared__ float a[side][side + 1];
  __shared__ float b[side][side];
  const u32 x = threadIdx.x, y = threadIdx.y;
  const u32 row = blockIdx.y * side + y, col = blockIdx.x * side + x;
  constexpr u32 step = side / rows_a_thread;
  double sum[rows_a_thread] = {};
  float squares_a[rows_a_thread] = {};
  float squares_b = 0;
  for (u32 k = 0; k < args.k; k += side) {
    for (u32 i = 0; i < rows_a_thread; ++i) {
      a[y + i * step][x] = value_at(args.a, row + i * step, k + x, args.m, args.k);
      b[y + i * step][x] = value_at(args.b, k + y + i * step, col, args.k, args.n);
    }
    __syncthreads();
    for (u32 j = 0; j < side; ++j) {
      squares_b += b[j][x] * b[j][x];
      for (u32 i = 0; i < rows_a_thread; ++i) {
        const float left = a[y + i * step][j];
        squares_a[i] += left * left;
        sum[i] += static_cast<double>(left * b[j][x]);
      }
    }
    __syncthreads();
  }
  for (u32 i = 0; i < rows_a_thread; ++i) {
    if (row + i * step >= args.m || col >= args.n) continue;
    const double value = args.then == activation::gelu ? gelu_reference(sum[i]) : sum[i];
    const double norms = sqrt(static_cast<double>(squares_a[i]) * squares_b);
    const u64 at = u64{row + i * step} * args.n + col;
    expected[at] = value;
    bound[at] = static_cast<float>(1.13 * (args.k / 16.0 + 16) * 0x1p-23 * norms +
                                   0x1p-11 * fabs(value) + 0x1p-25);
  }
}

__global__ void count_wrong(const half* got, const double* expected, const float* bound, u64 count,
                            mlp_check* found) {
  const u64 step = u64{gridDim.x} * blockDim.x;
  unsigned long long wrong = 0;
  float largest = 0;
  for (u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const double error = fabs(
        static_cast<double>(__half2float(reinterpret_cast<const __half*>(got)[i])) - expected[i]);
    if (error <= bound[i])
      largest = fmaxf(largest, static_cast<float>(error));
    else // NaN, too
      ++wrong;
  }
  if (wrong != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&found->wrong), wrong);
  atomicMax(reinterpret_cast<int*>(&found->largest_error),
            __float_as_int(largest)); // the order of floats >= 0
}

constexpr u32 blocks = 1024, threads = 256; ///< Of the kernels that walk over a matrix.

void fill(const device_memory<half>& matrix, u64 seed, double deviation) {
  fill_normal<<<blocks, threads>>>(matrix.get(), matrix.count(), seed,
                                   static_cast<float>(deviation));
  check(cudaGetLastError(), "fill a matrix");
}

void refer(const gemm_arguments& args, double* expected, float* bound, cudaStream_t stream) {
  const dim3 grid(ceil_div(args.n, side), ceil_div(args.m, side));
  reference<<<grid, dim3(side, side / rows_a_thread), 0, stream>>>(args, expected, bound);
  check(cudaGetLastError(), "compute a reference");
}

std::size_t product(u32 rows, u32 cols) { return std::size_t{rows} * cols; }

} // namespace

// --- data -----------------------------------------------------------------------------------------

mlp_data::mlp_data(const mlp_shape& shape, u64 seed)
    : shape_(shape), x_(product(shape.batch, shape.hidden)),
      w1_(product(shape.hidden, shape.columns)), w2_(product(shape.columns, shape.hidden)),
      xw1_(product(shape.batch, shape.columns)), y_(product(shape.batch, shape.hidden)),
      expected1_(xw1_.count()), expected2_(y_.count()), bound1_(xw1_.count()), bound2_(y_.count()),
      found_(1) {
  fill(x_, seed * 4, 1);
  fill(w1_, seed * 4 + 1, 1 / std::sqrt(1.0 * shape.hidden));
  fill(w2_, seed * 4 + 2, 1 / std::sqrt(1.0 * shape.columns));
  check(cudaDeviceSynchronize(), "fill the matrices");
}

void mlp_data::make_references(cudaStream_t stream) const {
  refer(first(), expected1_.get(), bound1_.get(), stream);
  refer(second(), expected2_.get(), bound2_.get(), stream);
}

void mlp_data::poison(cudaStream_t stream) const {
  xw1_.fill_bytes(0xff, stream);
  y_.fill_bytes(0xff, stream);
}

mlp_check mlp_data::compare(cudaStream_t stream) const {
  found_.fill_bytes(0, stream);
  count_wrong<<<blocks, threads, 0, stream>>>(xw1_.get(), expected1_.get(), bound1_.get(),
                                              xw1_.count(), found_.get());
  count_wrong<<<blocks, threads, 0, stream>>>(y_.get(), expected2_.get(), bound2_.get(), y_.count(),
                                              found_.get());
  check(cudaGetLastError(), "compare with the references");
  return found_.read(stream).front();
}

// --- all rows of one batch and tile ----------------------------------------------------------------

namespace {

class mlp_bench {
public:
  mlp_bench(const mlp_request& request, const mlp_data& data, const tile_info& tile)
      : request_(request), data_(data) {
    found_.shape = data.shape();
    found_.tile = tile;
    found_.checked = data.results();
    const u64 places = u64{blocks_per_sm(tile)} * current_gpu().sms;
    found_.blocks_per_wave = {places, places};
  }

  /// All rows in the same form: mode `streams` can only run eagerly, and its rivals then do so, too.
  void make(const std::vector<sync_choice>& choices) {
    for (const sync_choice& choice : choices) {
      launches_.push_back(make_mlp(found_.tile, choice, request_.mode, data_));
      found_.rows.push_back({choice, launches_.back().mode, !choice.w || launches_.back().proved});
      if (launches_.back().mode == launch_mode::streams) form_ = launch_form::eager;
      note_mode(launches_.back());
    }
    if (form_ == launch_form::eager)
      found_.notes.push_back("batch " + std::to_string(found_.shape.batch) +
                             ": launched eagerly, not in graphs");
    launches_.front().enqueue(stream_);
    data_.make_references(stream_);
  }

  void verify(progress& bar) {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      mlp_row& row = found_.rows[i];
      bar.step("batch " + std::to_string(found_.shape.batch) + ", check " + row.choice.name());
      if (row.proved) verify(row, launches_[i]);
    }
    found_.notes.push_back("batch " + std::to_string(found_.shape.batch) + ", " +
                           found_.tile.name() + ": largest error " +
                           std::to_string(largest_error_));
  }

  void time(progress& bar) {
    std::vector<contender> contenders;
    std::vector<mlp_row*> timed;
    for (std::size_t i = 0; i < launches_.size(); ++i)
      if (found_.rows[i].proved && found_.rows[i].wrong < found_.checked) {
        contenders.push_back({found_.rows[i].choice.name(), launches_[i].enqueue, form_});
        timed.push_back(&found_.rows[i]);
      }
    const u32 runs = runs_a_sample(contenders.front());
    const std::vector<timing> times = time_interleaved(contenders, request_.samples, runs, &bar);
    for (std::size_t i = 0; i < times.size(); ++i) times[i].put(*timed[i]);
  }

  const mlp_batch& found() const { return found_; }

private:
  static constexpr u32 checks = 3; ///< In each form.

  void verify(mlp_row& row, const gpu_launch& launch) {
    for (const launch_form form : {launch_form::eager, launch_form::graph}) {
      if (form == launch_form::graph && form_ == launch_form::eager) continue;
      const auto look = [&](u32) {
        const mlp_check found = data_.compare(stream_);
        row.wrong = std::max(row.wrong, found.wrong);
        largest_error_ = std::max(largest_error_, found.largest_error);
        return found.wrong != 0;
      };
      try {
        wrong_runs(
            {row.choice.name(), launch.enqueue, form}, checks, stream_,
            [&](u32) { data_.poison(stream_); }, look);
        launch.settle(stream_);
      } catch (const wait_timeout& failure) { // the other rows still tell something
        found_.notes.push_back(row.choice.name() + ": " + failure.what());
        row.wrong = found_.checked;
        return;
      }
    }
  }

  void note_mode(const gpu_launch& launch) {
    if (launch.reason.empty() || noted_) return;
    noted_ = true;
    found_.notes.push_back(std::string("mode ") + name_of(request_.mode) +
                           " was asked for: " + launch.reason);
  }

  const mlp_request& request_;
  const mlp_data& data_;
  gpu_stream stream_;
  std::vector<gpu_launch> launches_; ///< By row.
  launch_form form_ = launch_form::graph;
  mlp_batch found_;
  float largest_error_ = 0;
  bool noted_ = false;
};

} // namespace

std::vector<mlp_batch> mlp_on_gpu(const mlp_request& request) {
  const std::vector<sync_choice> rows =
      choices(request.policies, request.mode == launch_mode::streams);
  const std::size_t tiles = std::max<std::size_t>(1, request.tiles.size());
  progress bar(request.batches.size() * tiles *
               (rows.size() + timing_steps(rows.size(), request.samples)));
  std::vector<mlp_batch> found;
  for (const u32 batch : request.batches) {
    const mlp_data data(request.shape(batch), request.seed + batch);
    for (const tile_info& tile :
         request.tiles.empty() ? std::vector{fastest_tile(data)} : request.tiles) {
      mlp_bench bench(request, data, tile);
      bench.make(rows);
      bench.verify(bar);
      bench.time(bar);
      found.push_back(bench.found());
    }
  }
  return found;
}

} // namespace cusync::cli
