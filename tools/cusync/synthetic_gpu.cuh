// SPDX-License-Identifier: MIT
#pragma once

#include "device_memory.cuh"
#include "gpu_chain.cuh"
#include "synthetic.hpp"

namespace cusync::cli {

/// The chain's words on the device, a row of `tiles` words a stage, and the seed.
class synthetic_data {
public:
  explicit synthetic_data(const synthetic_problem& problem)
      : problem_(problem), words_(std::size_t{problem.stages} * problem.tiles()), seed_(1) {}

  /// What a stage writes.
  u32* words_of(u32 stage) const { return words_.get() + std::size_t{stage} * problem_.tiles(); }
  const u32* seed() const { return seed_.get(); }

  /// Overwrites all words with what no stage writes, and sets the seed, which a replayed graph reads.
  void poison(u32 seed, cudaStream_t stream) const {
    words_.fill_bytes(0xff, stream);
    seed_.write(seed, stream);
  }
  /// Whether the last stage's words are right; waits for `stream`.
  bool right(u32 seed, cudaStream_t stream) const;

private:
  synthetic_problem problem_;
  device_memory<u32> words_;
  device_memory<u32> seed_;
};

/// The variant's kernels on `data`, which outlives them.
gpu_launch make_synthetic(const synthetic_problem& problem, const synthetic_variant& variant,
                          const synthetic_data& data);

} // namespace cusync::cli
