// SPDX-License-Identifier: MIT
#pragma once

#include "device_memory.cuh"
#include "gpu_chain.cuh"
#include "mlp.hpp"

namespace cusync::cli {

/// Elements that a checked run got wrong, and the largest error of the others.
struct mlp_check {
  u64 wrong = 0;
  float largest_error = 0;
};

/// Operands, results and references of one batch on the GPU. Every value of a matrix is about 1 in
/// size. The weights of GPT-3, 302 MB, are five times an H200's L2: no run finds the last one's there.
class mlp_data {
public:
  mlp_data(const mlp_shape& shape, u64 seed);

  const mlp_shape& shape() const { return shape_; }
  gemm_arguments first() const { return shape_.first(x_.get(), w1_.get(), xw1_.get()); }
  gemm_arguments second() const { return shape_.second(xw1_.get(), w2_.get(), y_.get()); }
  u64 results() const { return xw1_.count() + y_.count(); }

  /// Computes the references: of the second product from XW1 as it is now, which must be the first
  /// one's result. That is itself compared with its reference in every check.
  void make_references(cudaStream_t stream) const;
  /// Fills the results with NaN: whoever reads what is not written yet then gets it.
  void poison(cudaStream_t stream) const;
  /// Compares all results with their references; waits for `stream`.
  mlp_check compare(cudaStream_t stream) const;

private:
  mlp_shape shape_;
  device_memory<half> x_, w1_, w2_, xw1_, y_;
  device_memory<double> expected1_, expected2_;
  device_memory<float> bound1_, bound2_;
  device_memory<mlp_check> found_;
};

/// The kernels of one row of the table on `data`, which outlives them. The baseline's have no stage
/// code at all.
gpu_launch make_mlp(const tile_info& tile, const sync_choice& choice, launch_mode mode,
                    const mlp_data& data);

/// Blocks of the baseline's kernel that an SM holds at once.
u32 blocks_per_sm(const tile_info& tile);

/// The tile whose kernels are fastest in stream order: the best baseline that these kernels offer.
tile_info fastest_tile(const mlp_data& data);

} // namespace cusync::cli
