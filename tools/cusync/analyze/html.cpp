// SPDX-License-Identifier: MIT
#include "html.hpp"
#include "../format.hpp"
#include "kernel_name.hpp"
#include "timeline.hpp"

#include <algorithm> // find, max, min, stable_sort
#include <cmath>     // abs, ceil
#include <map>       // map

namespace cusync::analyze {
namespace {

using cli::formatted;

constexpr const char* style = R"(<style>
body{font:15px/1.45 system-ui,sans-serif;color:#1c2430;background:#fff;max-width:1200px;margin:24px auto;padding:0 20px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:30px 0 6px}p{margin:4px 0;color:#4a5566}
.cards{display:flex;gap:14px;margin:18px 0}.card{flex:1;border:1px solid #dde3ea;border-radius:8px;padding:12px 14px}
.card b{display:block;font-size:23px}.card span{color:#4a5566}
.real{border-top:5px solid #e8590c}.most{border-top:5px solid #ffc078}.host{border-top:5px solid #adb5bd}.busy{border-top:5px solid #3b6fb6}
svg{display:block;width:100%;height:auto;margin:6px 0}svg text{font:11px system-ui,sans-serif;fill:#4a5566}
svg .in{fill:#fff}svg .rank{font-weight:700;fill:#b03a00}
table{border-collapse:collapse;width:100%;font-size:13.5px}th{text-align:right;font-weight:600;color:#4a5566;border-bottom:2px solid #dde3ea;padding:5px 6px}
td{text-align:right;border-bottom:1px solid #edf0f4;padding:5px 6px;vertical-align:top}th.l,td.l{text-align:left}
td code{font-size:12.5px;overflow-wrap:anywhere}.bar{display:inline-block;height:11px;vertical-align:middle}
.key i{display:inline-block;width:16px;height:11px;margin:0 5px 0 14px;vertical-align:baseline;border-radius:2px}
li{margin:3px 0;color:#4a5566}
</style>)";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else if (c == '\'')
      safe += "&#39;";
    else
      safe += c;
  }
  return safe;
}

/// A time for a person: "12.3 us", "4.56 ms".
std::string time_text(double ns) {
  if (std::abs(ns) < 1e6) return formatted("{:.1f} us", ns * 1e-3);
  if (std::abs(ns) < 1e9) return formatted("{:.2f} ms", ns * 1e-6);
  return formatted("{:.2f} s", ns * 1e-9);
}

// --- the picture ----------------------------------------------------------------------------------

constexpr double width = 1160;
constexpr double lane_height = 30, strip_height = 46, row_gap = 26;
constexpr std::size_t most_kernels = 240, most_lanes = 4, most_gpus = 8, kernels_a_row = 18;

/// One GPU's kernels, in rows as a text is.
class picture {
public:
  picture(const analysis& found, u32 gpu) : found_(found), gpu_(gpu) {
    choose_lanes();
    choose_kernels();
  }

  bool empty() const { return shown_.empty(); }

  std::string html() {
    const timeline axis(found_, shown_);
    axis_ = &axis;
    rows_ = std::max<std::size_t>(1, (shown_.size() + kernels_a_row - 1) / kernels_a_row);
    row_length_ = axis.length() / static_cast<double>(rows_);
    const double height = static_cast<double>(rows_) * row_height();
    svg_ = formatted(R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="timeline">)",
                     width + 20, height);
    svg_ +=
        R"~(<defs><pattern id="cut" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7" fill="#f1f3f5"/><rect width="3" height="7" fill="#d5dae0"/></pattern></defs>)~";
    draw_rows();
    draw_cuts();
    for (const u32 kernel : shown_) draw_kernel(kernel);
    draw_wins();
    svg_ += "</svg>\n";
    return caption() + svg_;
  }

private:
  void choose_lanes() {
    std::map<u32, u64> kernels;
    for (const kernel_record& kernel : found_.kernels)
      if (found_.gpu_of_lane[kernel.lane] == gpu_) ++kernels[kernel.lane];
    for (const auto& [lane, _] : kernels) lanes_.push_back(lane);
    std::stable_sort(lanes_.begin(), lanes_.end(),
                     [&](u32 a, u32 b) { return kernels[a] > kernels[b]; });
    for (const u32 lane : lanes_) total_ += kernels[lane];
    if (lanes_.size() > most_lanes) lanes_.resize(most_lanes);
  }

  /// Some of the kernels where there are many: those around the best pair.
  void choose_kernels() {
    for (u32 i = 0; i < found_.kernels.size(); ++i)
      if (place_of(found_.kernels[i].lane) < lanes_.size()) shown_.push_back(i);
    std::stable_sort(shown_.begin(), shown_.end(), [this](u32 a, u32 b) {
      return found_.kernels[a].start < found_.kernels[b].start;
    });
    if (shown_.size() <= most_kernels) return;
    const auto best = std::find(shown_.begin(), shown_.end(), best_kernel());
    const std::size_t at =
        best == shown_.end() ? 0 : static_cast<std::size_t>(best - shown_.begin());
    const std::size_t first =
        std::min(at - std::min(at, most_kernels / 4), shown_.size() - most_kernels);
    shown_ = {shown_.begin() + static_cast<std::ptrdiff_t>(first),
              shown_.begin() + static_cast<std::ptrdiff_t>(first + most_kernels)};
  }

  u32 best_kernel() const {
    for (const kernel_pair& pair : found_.pairs)
      if (pair.group == 0) return pair.first;
    return 0;
  }

  std::size_t place_of(u32 lane) const {
    return static_cast<std::size_t>(std::find(lanes_.begin(), lanes_.end(), lane) - lanes_.begin());
  }

  std::string caption() const {
    const gpu_limits& gpu = found_.gpus[gpu_];
    std::string text = formatted("<h2>GPU {}{}</h2>\n<p>", gpu.id,
                                 gpu.name.empty() ? "" : ": " + escaped(gpu.name));
    text += shown_.size() == total_
                ? formatted("All {} kernels", total_)
                : formatted("{} of {} kernels, around the best pair", shown_.size(), total_);
    text += ", left to right and row by row. A kernel is as high as the share of the GPU that its "
            "blocks fill: what is missing above it is idle.</p>\n";
    return text +
           R"~(<p class="key"><i style="background:#3b6fb6"></i>kernel<i style="background:#dbe6f4"></i>idle SMs while it runs<i style="background:repeating-linear-gradient(45deg,#d5dae0 0 3px,#f1f3f5 3px 7px)"></i>a longer wait, cut short<i style="background:#e8590c"></i>realistic win<i style="background:#ffc078"></i>at most (numbers: the table below)</p>)~" +
           "\n";
  }

  // --- places -------------------------------------------------------------------------------------

  double row_height() const {
    return strip_height + static_cast<double>(lanes_.size()) * (lane_height + 4) + row_gap;
  }
  double top_of(std::size_t row) const { return static_cast<double>(row) * row_height(); }
  double lane_top(std::size_t row, std::size_t place) const {
    return top_of(row) + strip_height + static_cast<double>(place) * (lane_height + 4);
  }
  std::size_t row_of(double position) const {
    return std::min(rows_ - 1, static_cast<std::size_t>(std::max(0.0, position / row_length_)));
  }
  double x_of(double position, std::size_t row) const {
    return 10 + width * (position - static_cast<double>(row) * row_length_) / row_length_;
  }

  /// Calls `draw(row, x, width)` for each row that the stretch [from, to) of the axis lies in.
  template <class Draw> void for_each_part(double from, double to, const Draw& draw) const {
    for (std::size_t row = row_of(from); row < rows_; ++row) {
      const double begin = std::max(from, static_cast<double>(row) * row_length_);
      const double end = std::min(to, static_cast<double>(row + 1) * row_length_);
      if (begin >= to) break;
      draw(row, x_of(begin, row), width * (end - begin) / row_length_);
    }
  }

  // --- drawing ------------------------------------------------------------------------------------

  void rectangle(double x, double y, double w, double h, const char* fill) {
    svg_ += formatted(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}"/>)",
                      x, y, w, h, fill);
  }
  void text(double x, double y, std::string_view kind, std::string_view words) {
    svg_ += formatted(R"(<text x="{:.1f}" y="{:.1f}"{}>{}</text>)", x, y, kind, escaped(words));
  }

  void draw_rows() {
    const i64 begin = found_.span.start;
    for (std::size_t row = 0; row < rows_; ++row) {
      const double bottom = lane_top(row, lanes_.size());
      for (std::size_t i = 0; i < lanes_.size(); ++i)
        rectangle(10, lane_top(row, i), width, lane_height, "#f8f9fb");
      rectangle(10, bottom, width, 1, "#ced4da");
      const auto label = [&](double position) {
        return time_text(static_cast<double>(axis_->time(position) - begin));
      };
      text(10, bottom + 14, "", label(static_cast<double>(row) * row_length_));
      text(10 + width, bottom + 14, R"( text-anchor="end")",
           label(static_cast<double>(row + 1) * row_length_));
    }
  }

  void draw_cuts() {
    for (const timeline::cut& cut : axis_->cuts())
      for_each_part(cut.at, cut.at + cut.length, [&](std::size_t row, double x, double w) {
        svg_ += "<g><title>" + time_text(static_cast<double>(cut.ns)) + " without a kernel</title>";
        rectangle(x, lane_top(row, 0), w, lane_top(row, lanes_.size()) - lane_top(row, 0) - 4,
                  "url(#cut)");
        svg_ += "</g>";
        const std::string words = time_text(static_cast<double>(cut.ns));
        if (w > 6.2 * static_cast<double>(words.size()))
          text(x + w / 2, lane_top(row, 0) + 19, R"( text-anchor="middle")", words);
      });
  }

  void draw_kernel(u32 index) {
    const kernel_record& kernel = found_.kernels[index];
    const kernel_shape& shape = found_.shapes[found_.shape_of[index]];
    const std::size_t place = place_of(kernel.lane);
    const double from = axis_->position(kernel.start);
    const double to = std::max(from + row_length_ / width / 2, axis_->position(kernel.end()));
    svg_ += "<g><title>" + escaped(tooltip(kernel, shape)) + "</title>";
    for_each_part(from, to, [&](std::size_t row, double x, double w) {
      rectangle(x, lane_top(row, place), w, lane_height, shape.usable() ? "#dbe6f4" : "#ced4da");
    });
    if (shape.usable()) draw_waves(from, to, shape, place);
    draw_name(from, to, shape, place);
    svg_ += "</g>";
  }

  /// Whole waves at full height, the last one as high as it is full.
  void draw_waves(double from, double to, const kernel_shape& shape, std::size_t place) {
    const double whole = std::max(1.0, std::ceil(shape.waves));
    const double last = std::max(0.04, shape.waves - (whole - 1));
    const double last_begin = from + (to - from) * (whole - 1) / whole;
    const auto fill = [&](double begin, double end, double share) {
      for_each_part(begin, end, [&](std::size_t row, double x, double w) {
        rectangle(x, lane_top(row, place) + lane_height * (1 - share), w, lane_height * share,
                  "#3b6fb6");
      });
    };
    if (last_begin > from) fill(from, last_begin, 1);
    fill(last_begin, to, last);
  }

  /// Where it stands on blue, or the kernel is pale all over.
  void draw_name(double from, double to, const kernel_shape& shape, std::size_t place) {
    const double whole = std::max(1.0, std::ceil(shape.waves));
    const bool filled = shape.usable() && (whole > 1 || shape.waves > 0.45);
    const bool full_end = shape.waves - (whole - 1) > 0.45;
    const double end = filled && !full_end ? from + (to - from) * (whole - 1) / whole : to;
    const std::size_t row = row_of(from);
    constexpr double letter = 6.6;
    const double room = (width * (end - from) / row_length_ - 8) / letter;
    if (room < 8 || row != row_of(end)) return;
    text(x_of(from, row) + 4, lane_top(row, place) + (filled ? 24 : 12),
         filled ? R"( class="in")" : "",
         short_name(found_.names[shape.name], static_cast<std::size_t>(room)));
  }

  std::string tooltip(const kernel_record& kernel, const kernel_shape& shape) const {
    const launch& how = shape.launch;
    std::string words = short_name(found_.names[shape.name], 90) + "\n" +
                        time_text(static_cast<double>(kernel.duration));
    if (how.has_shape())
      words += formatted(", grid {}x{}x{}, block {}x{}x{}, {} registers, {} B shared", how.grid.x,
                         how.grid.y, how.grid.z, how.block.x, how.block.y, how.block.z,
                         how.registers, how.shared_bytes);
    if (shape.usable())
      words += formatted("\n{} blocks an SM, {:.2f} waves{}", shape.per_sm, shape.waves,
                         shape.may_be_persistent ? "; may be persistent" : "");
    return words;
  }

  /// Over the end of each pair's first kernel a bar, the highest one for the largest win.
  void draw_wins() {
    double largest = 0;
    for_each_win([&](const kernel_pair& pair) { largest = std::max(largest, pair.most); });
    if (largest <= 0) return;
    double label_free[64] = {};
    for_each_win([&](const kernel_pair& pair) {
      const double position = axis_->position(found_.kernels[pair.first].end());
      const std::size_t row = row_of(position);
      const double x = x_of(position, row), bottom = lane_top(row, place_of_pair(pair)) - 1;
      constexpr double bar = 5, room = strip_height - 14;
      svg_ += "<g><title>" + escaped(win_text(pair)) + "</title>";
      rectangle(x - bar / 2, bottom - room * pair.most / largest, bar, room * pair.most / largest,
                "#ffc078");
      rectangle(x - bar / 2, bottom - room * pair.realistic / largest, bar,
                room * pair.realistic / largest, "#e8590c");
      svg_ += "</g>";
      double& free = label_free[std::min<std::size_t>(row, 63)];
      if (pair.group < 10 && pair.most > largest / 5 && x > free) {
        text(x, bottom - room * pair.most / largest - 3, R"( class="rank" text-anchor="middle")",
             formatted("{}", pair.group + 1));
        free = x + 14;
      }
    });
  }

  std::size_t place_of_pair(const kernel_pair& pair) const {
    return place_of(found_.kernels[pair.first].lane);
  }

  std::string win_text(const kernel_pair& pair) const {
    return formatted(
        "pair {}: {} realistic, {} at most\n{} between the two, of which {} for the host",
        pair.group + 1, time_text(pair.realistic), time_text(pair.most),
        time_text(static_cast<double>(pair.gap)),
        time_text(static_cast<double>(pair.host + pair.call)));
  }

  template <class Visit> void for_each_win(const Visit& visit) const {
    std::vector<bool> is_shown(found_.kernels.size());
    for (const u32 kernel : shown_) is_shown[kernel] = true;
    for (const kernel_pair& pair : found_.pairs)
      if (pair.most > 0 && is_shown[pair.first] && is_shown[pair.first + 1]) visit(pair);
  }

  const analysis& found_;
  u32 gpu_;
  std::vector<u32> lanes_; ///< Most kernels first.
  std::vector<u32> shown_; ///< Kernels, by start.
  u64 total_ = 0;
  const timeline* axis_ = nullptr;
  std::size_t rows_ = 1;
  double row_length_ = 1;
  std::string svg_;
};

// --- the rest of the page ---------------------------------------------------------------------------

std::string card(const char* kind, const char* what, double ns, double percent) {
  return formatted(R"(<div class="card {}"><span>{}</span><b>{}</b><span>{:.2f}%</span></div>)",
                   kind, what, time_text(ns), percent);
}

std::string cards(const analysis& found) {
  const gpu_total total = found.total();
  const auto percent = [&](double ns) { return found.total_percent(ns); };
  const double host = total.host + total.call;
  return "<div class=\"cards\">" +
         card("real", "Overlap would win, realistic", total.realistic, percent(total.realistic)) +
         card("most", "Overlap would win, at most", total.most, percent(total.most)) +
         card("host", "Waiting for the host, no win", host, percent(host)) +
         card("busy", "Kernels run", total.busy, percent(total.busy)) + "</div>\n";
}

std::string pair_rows(const analysis& found) {
  constexpr std::size_t most_rows = 10;
  double largest = 0;
  for (const pair_group& group : found.groups) largest = std::max(largest, group.most);
  std::string rows;
  for (std::size_t i = 0; i < std::min(most_rows, found.groups.size()); ++i) {
    const pair_group& group = found.groups[i];
    const auto name = [&](u32 shape) {
      return escaped(short_name(found.names[found.shapes[shape].name], 64));
    };
    const auto waves = [&](u32 shape) {
      return formatted("{:.2f}{}", found.shapes[shape].waves,
                       found.shapes[shape].may_be_persistent ? "?" : "");
    };
    const auto bar = [&](double ns, const char* fill) {
      return formatted(R"(<i class="bar" style="width:{:.0f}px;background:{}"></i>)",
                       largest > 0 ? 120 * ns / largest : 0, fill);
    };
    rows += formatted(
        R"(<tr><td>{}</td><td class="l"><code>{}</code><br><code>{}</code></td><td>{}</td><td>{}<br>{}</td><td>{}</td><td>{}<br>{:.2f}%</td><td>{}<br>{:.2f}%</td><td class="l">{}<br>{}</td></tr>)",
        i + 1, name(group.first), name(group.second), group.count, waves(group.first),
        waves(group.second), time_text(group.gap / static_cast<double>(group.count)),
        time_text(group.realistic), found.percent(group.realistic), time_text(group.most),
        found.percent(group.most), bar(group.realistic, "#e8590c"), bar(group.most, "#ffc078"));
    rows += "\n";
  }
  return rows;
}

std::string pair_section(const analysis& found) {
  if (found.groups.empty()) return "<h2>Pairs</h2><p>No kernel follows another one directly.</p>\n";
  return R"(<h2>Which pairs</h2>
<table><tr><th>#</th><th class="l">first kernel, second kernel</th><th>times</th><th>waves</th><th>gap</th><th>realistic</th><th>at most</th><th class="l"></th></tr>
)" + pair_rows(found) +
         "</table>\n";
}

std::string notes(const analysis& found) {
  std::string list = "<h2>What to know</h2>\n<ul>";
  for (const std::string& note : found.notes) list += "<li>" + escaped(note) + "</li>\n";
  return list + "</ul>\n";
}

} // namespace

std::string html_of(const analysis& found, const std::string& title) {
  const std::string name = escaped(printable(title.substr(title.rfind('/') + 1)));
  std::string page = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     name + "</title>\n" + style + "</head><body>\n<h1>What overlap would win in " +
                     name + "</h1>\n<p>" + escaped(found.summary) + "</p>\n" + cards(found);
  std::size_t drawn = 0;
  for (const gpu_total& total : found.totals) {
    picture of(found, total.gpu);
    if (of.empty()) continue;
    if (drawn++ < most_gpus) page += of.html();
  }
  if (drawn > most_gpus)
    page += formatted("<p>{} more GPUs are not drawn.</p>\n", drawn - most_gpus);
  return page + pair_section(found) + notes(found) + "</body></html>\n";
}

} // namespace cusync::analyze
