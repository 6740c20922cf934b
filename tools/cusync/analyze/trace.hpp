// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u32, u64

#include <cstdint>       // int64_t
#include <functional>    // equal_to, hash
#include <map>           // map
#include <optional>      // optional
#include <string>        // string
#include <string_view>   // string_view
#include <tuple>         // tuple
#include <unordered_map> // unordered_map
#include <vector>        // vector

namespace cusync::analyze {

using i64 = std::int64_t;

struct extent3 {
  u32 x = 0, y = 0, z = 0;
  /// Exact: grids are at most 2^31 x 2^16 x 2^16, which `launch::valid` has checked.
  u64 count() const { return u64{x} * y * z; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads <=>
  friend auto operator<=>(const extent3&, const extent3&) = default;
};

/// What a kernel was launched with, as far as the trace says.
struct launch {
  extent3 grid, block;
  u32 registers = 0;    ///< A thread; 0: not recorded.
  u32 shared_bytes = 0; ///< Static and dynamic.
  extent3 cluster;      ///< Zero: not recorded.
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads <=>
  friend auto operator<=>(const launch&, const launch&) = default;

  bool has_shape() const { return grid.count() != 0 && block.count() != 0; }
  bool has_cluster() const { return cluster.count() > 1; }
};

/// A kernel on a GPU. Times are nanoseconds on the trace's own clock.
struct kernel_record {
  i64 start = 0;
  i64 duration = 0;
  u32 lane = 0; ///< In `trace::lanes`.
  u32 name = 0; ///< In `trace::names`.
  analyze::launch launch;
  u64 correlation = 0; ///< Of the call that launched it; 0: not recorded.
  bool in_graph = false;

  i64 end() const { return start + duration; }
};

/// The host's call that launched something.
struct launch_call {
  u64 process = 0;
  u64 correlation = 0;
  i64 start = 0;
  i64 duration = 0;
  bool graph = false;
};

/// Something in a stream, other than a kernel, that orders the kernels around it.
struct other_work {
  enum class kind { copy, set, event_wait };
  kind what = kind::copy;
  u32 lane = 0;
  i64 start = 0;
};

/// A stream: kernels in it run one behind the other.
struct lane_id {
  u64 process = 0;
  i64 device = 0;
  i64 context = 0;
  i64 stream = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads <=>
  friend auto operator<=>(const lane_id&, const lane_id&) = default;
};

/// A GPU's limits; 0 and empty: not recorded.
struct device_properties {
  i64 id = 0;
  std::string name;
  u32 major = 0, minor = 0;
  u32 sms = 0;
  u32 threads_per_sm = 0, blocks_per_sm = 0;
  u32 registers_per_sm = 0;
  u32 shared_per_sm = 0, shared_per_block = 0;
  u32 warp = 0;
};

struct time_span {
  i64 start = 0, end = 0;
};

/// All that the analysis needs of a trace. Its size follows from the number of kernels, copies and
/// launch calls, not from the size of the file.
struct trace {
  std::string source; ///< "PyTorch profiler trace".
  std::vector<kernel_record> kernels;
  std::vector<launch_call> calls;
  std::vector<other_work> others;
  std::vector<std::string> names;
  std::vector<lane_id> lanes;
  std::vector<device_properties> devices;
  std::vector<time_span> steps;
  std::optional<i64> rank; ///< Of a distributed job.
  u64 events = 0;          ///< All that were read, of whatever kind.
  u64 unusable = 0;        ///< Kernels without a name, a start or a duration.
  u64 graph_rows = 0;      ///< Graphs recorded as one row each, without their kernels.
  bool hip = false;        ///< Calls of HIP, or a GPU by AMD.

  u32 name_of(std::string_view name) {
    if (const auto known = name_index_.find(name); known != name_index_.end()) return known->second;
    names.emplace_back(name);
    return name_index_.emplace(name, u32(names.size() - 1)).first->second;
  }
  u32 lane_of(const lane_id& lane) {
    const auto [at, is_new] = lane_index_.try_emplace(lane, u32(lanes.size()));
    if (is_new) lanes.push_back(lane);
    return at->second;
  }

private:
  struct hash_of {
    using is_transparent = void; // looks up a view without a copy
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::unordered_map<std::string, u32, hash_of, std::equal_to<>> name_index_;
  std::map<lane_id, u32> lane_index_;
};

} // namespace cusync::analyze
