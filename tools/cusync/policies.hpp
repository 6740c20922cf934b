// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/policy/grid_sync.hpp> // GridSync
#include <cusync/policy/row_sync.hpp>  // RowSync
#include <cusync/policy/tile_sync.hpp> // TileSync

#include <string>      // string
#include <string_view> // string_view
#include <vector>      // vector

namespace cusync::cli {

/// How one stage waits for the one before it. `stream` is no policy of an edge but stream order
/// itself: kernels one after the other, the baseline.
enum class sync_kind { stream, grid, tile, row };

constexpr const char* name_of(sync_kind kind) {
  switch (kind) {
  case sync_kind::stream:
    return "StreamSync";
  case sync_kind::grid:
    return "GridSync";
  case sync_kind::tile:
    return "TileSync";
  case sync_kind::row:
    break;
  }
  return "RowSync";
}

/// A row of a table: the policy, and the paper's two optimisations on top.
struct sync_choice {
  sync_kind policy = sync_kind::stream;
  bool w = false; ///< No gate before the consumer, where that is proved safe (mode `streams`).
  bool r = false; ///< The consumer's first weights are loaded ahead of its wait.

  bool baseline() const { return policy == sync_kind::stream; }
  std::string name() const {
    return std::string(name_of(policy)) + (w || r ? "+" : "") + (w ? "W" : "") + (r ? "R" : "");
  }
};

/// The rows of `run mlp`, the baseline first. W means something in mode `streams` only.
inline std::vector<sync_choice> choices(const std::vector<sync_kind>& policies, bool with_w) {
  std::vector<sync_choice> rows = {{}};
  for (const sync_kind policy : policies) {
    if (policy == sync_kind::stream) continue;
    for (const bool w : {false, true})
      for (const bool r : {false, true})
        if (!w || with_w) rows.push_back({policy, w, r});
  }
  return rows;
}

template <class Policy> struct policy_tag { using type = Policy; };

/// Calls `visit` with the tag of the policy's type; stream order borrows `RowSync`, whose waits mode
/// `serial` leaves out.
template <class Visit> decltype(auto) with_policy(sync_kind kind, const Visit& visit) {
  switch (kind) {
  case sync_kind::grid:
    return visit(policy_tag<GridSync>{});
  case sync_kind::tile:
    return visit(policy_tag<TileSync>{});
  case sync_kind::stream:
  case sync_kind::row:
    break;
  }
  return visit(policy_tag<RowSync>{});
}

} // namespace cusync::cli
