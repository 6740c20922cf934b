// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/timeline.hpp> // shown_run

#include <string> // string
#include <vector> // vector

namespace cusync::cli {

/// Where to write what; empty: not at all.
struct timeline_paths {
  std::string trace, svg, html;

  bool any() const { return !trace.empty() || !svg.empty() || !html.empty(); }
};

struct timeline_picture {
  std::string heading;
  std::vector<sim::shown_run> runs;
};

/// Throws `invalid_argument` for files that cannot be written, and for more tiles than a person, or a
/// browser, can look at. Ahead of the simulation.
void require_drawable(const timeline_paths& paths, u64 tiles, std::size_t runs);

void write_timelines(const timeline_paths& paths, const timeline_picture& picture);

} // namespace cusync::cli
