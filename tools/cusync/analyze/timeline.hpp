// SPDX-License-Identifier: MIT
#pragma once

#include "analysis.hpp"

#include <vector> // vector

namespace cusync::analyze {

/// A part of a GPU's time as it is drawn: long waits are cut short, so that kernels of microseconds can
/// be seen beside gaps of seconds.
class timeline {
public:
  struct cut {
    double at = 0;     ///< On the axis.
    double length = 0; ///< On the axis.
    i64 ns = 0;        ///< What it stands for.
  };

  /// Of the kernels `shown` (indices, by start) of one GPU.
  timeline(const analysis& found, const std::vector<u32>& shown);

  double length() const { return length_; }
  /// Where a time lies on the axis, which counts nanoseconds outside of cuts.
  double position(i64 time) const;
  /// The time there.
  i64 time(double position) const;
  const std::vector<cut>& cuts() const { return cuts_; }

private:
  struct piece {
    i64 start = 0, end = 0;
    double at = 0, length = 0;
  };
  void add(i64 start, i64 end, double length);

  std::vector<piece> pieces_; ///< Without holes.
  std::vector<cut> cuts_;
  double length_ = 0;
};

} // namespace cusync::analyze
