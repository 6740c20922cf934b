// SPDX-License-Identifier: MIT
#pragma once

#include "trace.hpp"

#include <map>      // map
#include <optional> // optional
#include <string>   // string
#include <vector>   // vector

namespace cusync::analyze {

/// What was read, and what could not be known: counts of kernels unless the name says otherwise.
struct trace_facts {
  std::string source;
  std::optional<i64> rank;
  u64 kernels = 0, streams = 0, gpus = 0, events = 0;
  std::map<std::string, u64> gpu_names;
  double span_us = 0;
  bool hip = false;
  std::string unknown; ///< Why a GPU's limits are not known.

  u64 usable = 0;   ///< Whose waves can be counted.
  u64 unusable = 0; ///< Without a name, a start or a duration: not read at all.
  u64 no_launch = 0, no_limits = 0, do_not_fit = 0, communication = 0;
  u64 persistent = 0, clusters = 0, in_graphs = 0, without_call = 0;
  bool may_have_clusters = false;
  u64 hidden_graphs = 0; ///< Launches of graphs.
  u64 outside = 0;       ///< Of the marked steps.
  double concurrent_us = 0;
  u64 copies = 0, sets = 0, waits = 0, unshaped = 0; ///< Pairs that they part.
  u64 not_simulated = 0;                             ///< Pairs.
};

/// "33 kernels in 1 stream on 1 GPU (NVIDIA H200), 4601.6 us from ..."
std::string summary_of(const trace_facts& facts);

/// What a reader must know to judge the numbers, a line each.
std::vector<std::string> notes_of(const trace_facts& facts);

/// Why no kernel is usable, in one line.
std::string reason_of(const trace_facts& facts);

} // namespace cusync::analyze
