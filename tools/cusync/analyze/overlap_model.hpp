// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/gpu.hpp> // gpu, block_resources

#include <map>   // map
#include <tuple> // tuple

namespace cusync::analyze {

/// A kernel as a row of waves: all that a trace tells of what its blocks do.
struct wave_shape {
  u64 blocks = 0;
  u32 columns = 1; ///< Blocks that lie side by side in x, which are handed out first.
  sim::block_resources block;
  u32 per_sm = 1;      ///< Its occupancy.
  u64 duration_ns = 0; ///< Measured.

  u64 places(const sim::gpu& gpu) const { return u64{per_sm} * gpu.sms; }
  double waves(const sim::gpu& gpu) const {
    return static_cast<double>(blocks) / static_cast<double>(places(gpu));
  }
  u64 whole_waves(const sim::gpu& gpu) const { return (blocks - 1) / places(gpu) + 1; }
  /// Of the whole GPU, in the last wave.
  double idle_ns(const sim::gpu& gpu) const {
    const double whole = static_cast<double>(whole_waves(gpu));
    return static_cast<double>(duration_ns) * (whole - waves(gpu)) / whole;
  }
};

/// What two kernels would take if the second one's blocks waited for rows of the first one's, by the
/// wave simulator, against the same two in stream order.
class overlap_model {
public:
  /// Nanoseconds that overlap saves; less than 0 where waits and posts cost more than it wins. The
  /// gap between the two is the simulator's own, `gpu.stream_gap_ns`.
  double saved_ns(const sim::gpu& gpu, const wave_shape& first, const wave_shape& second);

private:
  using side = std::tuple<u64, u32, u32, u32, u32, u64>;
  std::map<std::tuple<u32, u32, side, side>, double> known_; ///< Traces repeat themselves.
};

} // namespace cusync::analyze
