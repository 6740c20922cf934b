// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/config.hpp> // CUSYNC_HOST_DEVICE
#include <cusync/tile.hpp>   // u64

#include <cmath> // cos, log, sqrt

namespace cusync::cli {

/// The `index`-th normal value of a stream: of the index alone, so that threads need no order.
/// splitmix64 gives the two uniform values of Box and Muller.
CUSYNC_HOST_DEVICE inline float normal_at(u64 seed, u64 index) {
  u64 mixed = (seed * 0xd1342543de82ef95 + index) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  const float radius = static_cast<float>(static_cast<unsigned>(mixed >> 40) + 1) * 0x1p-24f;
  const float angle = static_cast<float>(static_cast<unsigned>(mixed & 0xffffff)) * 0x1p-24f;
  return sqrtf(-2.0f * logf(radius)) * cosf(6.28318531f * angle);
}

} // namespace cusync::cli
