// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/launch_mode.hpp> // launch_mode
#include <cusync/tile.hpp>        // tile_coord, u32, u64

#include <string> // string
#include <vector> // vector

namespace cusync::sim {

/// In which order a GPU takes what it may take: no GPU promises one, so a correct chain runs under
/// any of them.
enum class pick {
  in_order, ///< What GPUs mostly do: the lowest block of the oldest stage first.
  reversed, ///< The highest block first, or the youngest stage.
  random,   ///< By the schedule's seed.
};

/// When a stage's blocks may start in mode `streams`.
enum class gate_kind {
  all_blocks,  ///< All blocks of all earlier stages have started: safe.
  first_block, ///< The first block of each has: the paper's, which can deadlock.
  as_needed,   ///< None where gate.hpp proves it needless (the paper's W), else all blocks.
  none,        ///< None, proved or not.
};

/// A tile that takes longer than its stage's others, for tests of what must not depend on speed.
struct slow_tile {
  std::string stage;
  tile_coord tile;
  u64 extra_ns;
};

/// splitmix64: small, fast and the same on every machine, unlike the standard distributions.
class random_source {
public:
  explicit random_source(u64 seed) : state_(seed) {}
  u64 next() {
    u64 mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  /// In [0, bound). Precondition: `bound > 0`.
  u32 below(u32 bound) { return static_cast<u32>(((next() >> 32) * bound) >> 32); }
  /// In [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  u64 state_;
};

/// How a run is executed, down to the last tie: two simulations of one schedule are the same.
struct schedule {
  launch_mode mode = launch_mode::automatic;
  gate_kind gate = gate_kind::all_blocks;
  pick blocks = pick::in_order; ///< Which block of a stage starts next.
  pick stages = pick::in_order; ///< Which of several stages gets a free place.
  pick ties = pick::in_order;   ///< Which of several events at the same time comes first.
  u64 seed = 1;
  u32 slots = 0;     ///< Blocks at once on the whole GPU, whatever they ask for; 0: as many as fit.
  double jitter = 0; ///< A tile takes between 1 - jitter and 1 + jitter times its time.
  std::vector<slow_tile> slow{};
  /// A wait gives up after this long without a post anywhere in the chain; 0: never.
  u64 spin_limit_ns = 10'000'000'000;

  /// How long a tile takes whose stage's tiles take `usual_ns`.
  u64 tile_ns(const std::string& stage, tile_coord tile, u64 usual_ns,
              random_source& random) const {
    u64 ns = usual_ns;
    if (jitter != 0)
      ns = static_cast<u64>(static_cast<double>(ns) * (1 + jitter * (2 * random.fraction() - 1)));
    for (const slow_tile& candidate : slow)
      if (candidate.tile == tile && candidate.stage == stage) ns += candidate.extra_ns;
    return ns;
  }
};

} // namespace cusync::sim
