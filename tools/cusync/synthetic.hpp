// SPDX-License-Identifier: MIT
#pragma once

#include "policies.hpp"
#include "synthetic_operand.hpp"

#include <cusync/chain.hpp>                     // chain, CuStage
#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/order/row_major.hpp>           // RowMajor

#include <string>      // string
#include <type_traits> // integral_constant
#include <vector>      // vector

namespace cusync::cli {

/// A chain of equal stages whose tiles spend time on the clock and nothing else. Each tile reads a row
/// of the stage before and writes one word.
struct synthetic_problem {
  u32 rows = 33;
  u32 cols = 6;
  u32 stages = 2;
  double tile_us = 20;
  u32 blocks_per_sm = 1; ///< Held to by the shared memory that a block asks for.
  u32 threads = 128;

  tile_extent grid() const { return {rows, cols, 1}; }
  u32 tiles() const { return rows * cols; }
  /// The whole row in one step.
  row_dependence row() const { return {{rows, cols}, {1, 1}, 1, cols, cols}; }

  /// 7/8 of a block's share: one more block does not fit, while a gate still does.
  u32 shared_bytes(u32 shared_per_sm) const {
    return shared_per_sm / 8 * 7 / blocks_per_sm / 1024 * 1024;
  }
};

/// One way to run the chain.
struct synthetic_variant {
  sync_kind policy = sync_kind::stream; ///< `stream`: kernels without any stage code.
  launch_mode mode = launch_mode::serial;
  bool w = false;       ///< No gate, where that is proved safe.
  bool counter = false; ///< Tiles are claimed from the stage's counter.

  std::string name() const {
    if (policy == sync_kind::stream) return "stream order";
    return std::string(cusync::name_of(mode)) + " " + name_of(policy) + (w ? "+W" : "") +
           (counter ? ", claimed" : "");
  }
  /// Mode `streams` is the one for older GPUs and drivers, whose captured runs are in mode `serial`.
  bool in_graph() const { return mode != launch_mode::streams; }
};

inline const std::vector<synthetic_variant> synthetic_variants = {
    {sync_kind::stream, launch_mode::serial},     {sync_kind::row, launch_mode::serial},
    {sync_kind::grid, launch_mode::pdl},          {sync_kind::row, launch_mode::pdl},
    {sync_kind::tile, launch_mode::pdl},          {sync_kind::row, launch_mode::streams},
    {sync_kind::row, launch_mode::streams, true},
};

// --- the chain ----------------------------------------------------------------------------------

/// The first stage declares no producer, and nobody looks at the last one's posts.
template <class Policy, tile_source Source>
using synthetic_stage =
    CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<Policy>, Source>;

/// Declares the stages, on a GPU's chain or on the virtual one's, and hands each to `bind`.
template <class Policy, tile_source Source, class Bind>
void declare_synthetic(chain& chain, const synthetic_problem& problem, const Bind& bind) {
  using stage_type = synthetic_stage<Policy, Source>;
  stage_type* ahead = nullptr;
  for (u32 i = 0; i < problem.stages; ++i) {
    auto& stage = chain.stage<stage_type>("stage " + std::to_string(i), problem.grid(), RowMajor{});
    if (ahead != nullptr) chain.dependency<Policy>(*ahead, stage, previous, problem.row());
    bind(stage);
    ahead = &stage;
  }
}

/// Calls `visit` with the tag of the variant's policy and with where its tiles come from.
template <class Visit> void with_types(const synthetic_variant& variant, const Visit& visit) {
  with_policy(variant.policy, [&](auto policy) {
    if (variant.counter)
      visit(policy, std::integral_constant<tile_source, tile_source::counter>{});
    else
      visit(policy, std::integral_constant<tile_source, tile_source::block_index>{});
  });
}

/// What every word of a row of the last stage must be.
inline u32 synthetic_expected(const synthetic_problem& problem, u32 seed, u32 row) {
  u32 value =
      problem.cols * (seed + row * problem.cols) + problem.cols * (problem.cols - 1) / 2 + 1;
  for (u32 stage = 2; stage < problem.stages; ++stage) value = value * problem.cols + 1;
  return value;
}

// --- what is asked for and what is found ----------------------------------------------------------

struct synthetic_request {
  std::vector<synthetic_problem> problems;
  std::vector<synthetic_variant> variants = synthetic_variants;
  bool eager = true; ///< Each also outside of a graph.
  u32 samples = 30;
  u32 checks = 200; ///< Checked runs ahead of the timing.
};

struct synthetic_row {
  synthetic_problem problem;
  synthetic_variant variant;
  std::string form{};    ///< "eager", "graph", or empty: virtual.
  std::string refused{}; ///< Why it was not run.
  u32 wrong_runs = 0;
  double us = 0;
  double low = 0, high = 0, mhz = 0; ///< On a GPU.
};

} // namespace cusync::cli
