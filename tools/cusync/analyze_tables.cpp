// SPDX-License-Identifier: MIT
#include "analyze_tables.hpp"
#include "analyze/kernel_name.hpp"
#include "format.hpp"

#include <algorithm> // min
#include <utility>   // forward

namespace cusync::cli {
namespace {

using namespace analyze;

constexpr std::size_t name_width = 32;

cell us(double ns) { return {ns * 1e-3, 1}; }

std::string text_of(const extent3& extent) {
  return formatted("{}x{}x{}", extent.x, extent.y, extent.z);
}

std::string waves_text(const kernel_shape& shape) {
  const std::string waves = shape.waves < 0.005 ? "<0.01" : formatted("{:.2f}", shape.waves);
  return waves + (shape.may_be_persistent ? "?" : "");
}

using cells = std::vector<cell>;

/// One by one: GCC 12 takes the temporary array of a list for uninitialised.
template <class... Values> void append(cells& row, Values&&... values) {
  (row.push_back(cell(std::forward<Values>(values))), ...);
}
void append_all(cells& row, const cells& more) { row.insert(row.end(), more.begin(), more.end()); }

cells stream_cells(const analysis& found, u32 lane) {
  cells row;
  append(row, static_cast<u64>(found.gpus[found.gpu_of_lane[lane]].id),
         static_cast<u64>(found.lanes[lane].stream));
  return row;
}

cells win_cells(const analysis& found, const pair_group& group) {
  cells row;
  append(row, us(group.most), cell(found.percent(group.most), 2), us(group.realistic),
         cell(found.percent(group.realistic), 2));
  return row;
}

/// Names with the numbers that the kernels have in their own table.
table pairs_for_person(const analysis& found, const selection& of) {
  std::vector<std::string> columns = {
      "#",    "first kernel", "second kernel", "times", "waves",        "idle", "gap",
      "host", "call",         "at most us",    "%",     "realistic us", "%"};
  const bool several = found.streams > 1;
  if (several) columns.insert(columns.begin() + 1, {"GPU", "stream"});
  table rows(columns);
  for (const pair_group& group : of.groups) {
    const auto average = [&](double sum) { return us(sum / static_cast<double>(group.count)); };
    const auto name = [&](u32 shape) {
      return formatted("{} {}", of.number_of[shape],
                       short_name(found.names[found.shapes[shape].name], name_width));
    };
    cells row;
    append(row, rows.rows.size() + 1);
    if (several) append_all(row, stream_cells(found, group.lane));
    append(row, name(group.first), name(group.second), group.count,
           waves_text(found.shapes[group.first]) + " " + waves_text(found.shapes[group.second]),
           average(group.idle), average(group.gap), average(group.host), average(group.call));
    append_all(row, win_cells(found, group));
    rows.add(row);
  }
  return rows;
}

table pairs_for_program(const analysis& found, const selection& of) {
  table rows({"GPU", "stream", "first", "second", "first kernel", "second kernel", "times",
              "first us", "second us", "idle us", "gap us", "host us", "call us", "other gap us",
              "at most us", "at most %", "realistic us", "realistic %"});
  for (const pair_group& group : of.groups) {
    const auto average = [&](double sum) {
      return cell(sum / static_cast<double>(group.count) * 1e-3, 3);
    };
    const auto name = [&](u32 shape) {
      return short_name(found.names[found.shapes[shape].name], 2 * name_width);
    };
    cells row = stream_cells(found, group.lane);
    append(row, of.number_of[group.first], of.number_of[group.second], name(group.first),
           name(group.second), group.count, average(group.first_duration),
           average(group.second_duration), average(group.idle), average(group.gap),
           average(group.host), average(group.call), average(group.gap - group.host - group.call));
    append_all(row, win_cells(found, group));
    rows.add(row);
  }
  return rows;
}

cells total_row(const analysis& found, const cell& gpu, const gpu_total& total, bool all) {
  const auto percent = [&](double ns) {
    return cell(all ? found.total_percent(ns) : found.percent(ns), 2);
  };
  cells row;
  append(row, gpu, total.kernels, total.pairs);
  for (const double ns : {total.busy, total.host, total.call, total.rest, total.idle})
    row.push_back(us(ns));
  append(row, us(total.most), percent(total.most), us(total.realistic), percent(total.realistic));
  return row;
}

} // namespace

selection select(const analysis& found, u64 top) {
  const std::size_t count =
      top == 0 ? found.groups.size() : std::min<std::size_t>(top, found.groups.size());
  selection made;
  made.groups.assign(found.groups.begin(),
                     found.groups.begin() + static_cast<std::ptrdiff_t>(count));
  made.number_of.assign(found.shapes.size(), 0);
  for (const pair_group& group : made.groups)
    for (const u32 shape : {group.first, group.second}) {
      if (made.number_of[shape] != 0) continue;
      made.shapes.push_back(shape);
      made.number_of[shape] = made.shapes.size();
    }
  return made;
}

table pair_table(const analysis& found, const selection& of, reader who) {
  return who == reader::person ? pairs_for_person(found, of) : pairs_for_program(found, of);
}

table launch_table(const analysis& found, const selection& of, reader who) {
  table rows(
      {"number", "kernel", "grid", "block", "registers", "shared bytes", "blocks/SM", "waves"});
  if (who == reader::program) {
    rows.columns.emplace_back("may be persistent");
    rows.columns.emplace_back("full name");
  }
  for (const u32 index : of.shapes) {
    const kernel_shape& shape = found.shapes[index];
    const std::string& name = found.names[shape.name];
    cells row;
    append(row, of.number_of[index], short_name(name, 2 * name_width));
    append(row, text_of(shape.launch.grid), text_of(shape.launch.block), shape.launch.registers,
           shape.launch.shared_bytes, shape.per_sm);
    if (who == reader::person)
      append(row, waves_text(shape));
    else
      append(row, cell(shape.waves, 3), shape.may_be_persistent ? "yes" : "no", full_name(name));
    rows.add(row);
  }
  return rows;
}

table total_table(const analysis& found) {
  table rows({"GPU", "kernels", "pairs", "busy us", "host us", "call us", "other gaps us",
              "idle us", "at most us", "at most %", "realistic us", "realistic %"});
  for (const gpu_total& total : found.totals)
    rows.add(total_row(found, static_cast<u64>(found.gpus[total.gpu].id), total, false));
  if (found.totals.size() > 1) rows.add(total_row(found, "all", found.total(), true));
  return rows;
}

} // namespace cusync::cli
