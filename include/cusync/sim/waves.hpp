// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u64

#include <cmath>  // ceil
#include <vector> // vector

namespace cusync::sim {

/// A stage's blocks and how many of them run at once: all that the wave model knows.
struct wave_load {
  u64 blocks = 0;
  u64 per_wave = 1; ///< At least 1.

  constexpr double waves() const {
    return static_cast<double>(blocks) / static_cast<double>(per_wave);
  }
  constexpr u64 whole_waves() const { return blocks / per_wave + (blocks % per_wave != 0 ? 1 : 0); }
  /// The part of the places in whole waves that holds a block; 1 for no blocks.
  constexpr double utilisation() const {
    return blocks == 0 ? 1 : waves() / static_cast<double>(whole_waves());
  }
};

/// The waves of a chain, a stage an entry.
struct chain_waves {
  u64 in_stream_order = 0; ///< Every stage ends its last wave before the next one begins.
  double overlapped = 0;   ///< The next stage fills up the last wave.

  /// Overlapped waves, the last one of them partial. A sum of fractions misses a whole number by a
  /// few bits, which would count as one more wave.
  u64 whole_overlapped() const { return static_cast<u64>(std::ceil(overlapped - 1e-9)); }
};

inline chain_waves waves_of(const std::vector<wave_load>& stages) {
  chain_waves sum;
  for (const wave_load& stage : stages) {
    sum.in_stream_order += stage.whole_waves();
    sum.overlapped += stage.waves();
  }
  return sum;
}

} // namespace cusync::sim
