// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/timeline.hpp> // shown_run, slots_of, append

#include <ostream> // ostream
#include <string>  // string
#include <vector>  // vector

namespace cusync::sim {

/// Simulations in the trace event format of Chrome, which Perfetto opens: a process a simulation, a
/// thread a place on an SM, a complete event a tile, and inside of it one a wait.
///
///     std::ofstream file("trace.json");
///     chrome_trace(file).write({{"RowSync", &report, device.sms}});
class chrome_trace {
public:
  explicit chrome_trace(std::ostream& to) : to_(to) {}

  void write(const std::vector<shown_run>& runs) {
    to_ << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
    for (std::size_t i = 0; i < runs.size(); ++i) write(runs[i], static_cast<u32>(i + 1));
    to_ << "\n]}\n";
  }

private:
  void write(const shown_run& run, u32 process) {
    const tile_slots slots = slots_of(run.found->timeline, run.sms);
    const std::vector<std::string> names = stage_names(*run.found);
    name_threads(run, process, slots.count);
    const auto thread_of = [&](std::size_t tile) {
      return run.found->timeline[tile].sm * slots.count + slots.of[tile] + 1;
    };
    for (std::size_t i = 0; i < run.found->timeline.size(); ++i) {
      const tile_record& tile = run.found->timeline[i];
      const std::string name = json_string(names[tile.stage] + " " + to_string(tile.tile));
      begin(name, json_string(names[tile.stage]), process, thread_of(i), tile.start_ns,
            tile.end_ns);
      std::string arguments;
      detail::append(arguments,
                     ", \"args\": {\"run\": %u, \"block\": %u, \"SM\": %u, \"work us\": %.3f, "
                     "\"wait us\": %.3f}}",
                     tile.run, tile.block, tile.sm, detail::us(tile.work_ns),
                     detail::us(tile.wait_ns));
      to_ << arguments;
    }
    for (const wait_record& wait : run.found->waits) {
      const tile_record& tile = run.found->timeline[wait.tile];
      begin(json_string("wait: " + names[tile.stage]), "\"wait\"", process, thread_of(wait.tile),
            wait.start_ns, wait.end_ns);
      to_ << "}";
    }
  }

  void name_threads(const shown_run& run, u32 process, u32 slots) {
    metadata("process_name", process, 0, "\"name\": " + json_string(run.title));
    metadata("process_sort_index", process, 0, "\"sort_index\": " + std::to_string(process));
    for (u32 sm = 0; sm < run.sms; ++sm)
      for (u32 slot = 0; slot < slots; ++slot) {
        const u32 thread = sm * slots + slot + 1;
        const std::string place =
            "SM " + std::to_string(sm) + (slots > 1 ? ", place " + std::to_string(slot) : "");
        metadata("thread_name", process, thread, "\"name\": " + json_string(place));
        metadata("thread_sort_index", process, thread, "\"sort_index\": " + std::to_string(thread));
      }
  }

  void metadata(const char* what, u32 process, u32 thread, const std::string& argument) {
    to_ << separator() << "{\"name\": \"" << what << "\", \"ph\": \"M\", \"pid\": " << process
        << ", \"tid\": " << thread << ", \"args\": {" << argument << "}}";
  }

  /// All of a complete event but its arguments and the closing brace.
  void begin(const std::string& name, const std::string& category, u32 process, u32 thread,
             u64 start_ns, u64 end_ns) {
    std::string times;
    detail::append(times, "\"ts\": %.3f, \"dur\": %.3f, \"pid\": %u, \"tid\": %u",
                   detail::us(start_ns), detail::us(end_ns - start_ns), process, thread);
    to_ << separator() << "{\"name\": " << name << ", \"cat\": " << category << ", \"ph\": \"X\", "
        << times;
  }

  const char* separator() {
    const char* text = first_ ? "\n" : ",\n";
    first_ = false;
    return text;
  }

  static std::string json_string(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      if (static_cast<unsigned char>(c) < 0x20)
        detail::append(quoted, "\\u%04x", static_cast<unsigned>(c));
      else
        quoted += c;
    }
    return quoted + "\"";
  }

  std::ostream& to_;
  bool first_ = true;
};

} // namespace cusync::sim
