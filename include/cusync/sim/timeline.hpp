// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/report.hpp> // report, tile_record

#include <algorithm> // max, sort
#include <cstdarg>   // va_list
#include <cstdio>    // vsnprintf
#include <numeric>   // iota
#include <string>    // string
#include <vector>    // vector

namespace cusync::sim {

/// One simulation of several that are shown together. The report has a timeline, and outlives this.
struct shown_run {
  std::string title;
  const report* found = nullptr;
  u32 sms = 0;
  std::string note{}; ///< One line beside the title.
};

/// Which place of its SM each tile of a timeline had: an SM holds several blocks at once, and a tile is
/// drawn, and traced, beside those that it shared its SM with.
struct tile_slots {
  std::vector<u32> of; ///< By tile.
  u32 count = 1;       ///< The most that any SM has used.
};

/// The first place of the SM that is free when the tile begins.
inline tile_slots slots_of(const std::vector<tile_record>& timeline, u32 sms) {
  std::vector<std::size_t> by_start(timeline.size());
  std::iota(by_start.begin(), by_start.end(), std::size_t{0});
  std::stable_sort(by_start.begin(), by_start.end(), [&](std::size_t a, std::size_t b) {
    return timeline[a].start_ns < timeline[b].start_ns;
  });
  tile_slots slots{std::vector<u32>(timeline.size(), 0)};
  std::vector<std::vector<u64>> busy_until(sms); // by SM and slot
  for (const std::size_t tile : by_start) {
    std::vector<u64>& places = busy_until[timeline[tile].sm];
    u32 slot = 0;
    while (slot < places.size() && places[slot] > timeline[tile].start_ns) ++slot;
    if (slot == places.size()) places.push_back(0);
    places[slot] = timeline[tile].end_ns;
    slots.of[tile] = slot;
    slots.count = std::max(slots.count, slot + 1);
  }
  return slots;
}

/// The names of a report's stages, by their index in the chain.
inline std::vector<std::string> stage_names(const report& found) {
  std::vector<std::string> names;
  for (const stage_record& stage : found.stages) {
    if (names.size() <= stage.stage) names.resize(stage.stage + 1);
    names[stage.stage] = stage.name;
  }
  return names;
}

namespace detail {

/// Appends as printf does; what is longer than a line is cut.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
inline void
append(std::string& to, const char* format, ...) {
  char text[512];
  std::va_list values;
  va_start(values, format);
  const int length = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  if (length > 0)
    to.append(text, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof text - 1));
}

inline double us(u64 ns) { return static_cast<double>(ns) * 1e-3; }

} // namespace detail
} // namespace cusync::sim
