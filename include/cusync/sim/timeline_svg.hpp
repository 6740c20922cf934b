// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/timeline.hpp> // shown_run, slots_of, append

#include <algorithm> // clamp, max, min
#include <cmath>     // floor, log10, pow
#include <ostream>   // ostream
#include <string>    // string
#include <vector>    // vector

namespace cusync::sim {

/// Simulations as a picture without references to anything else: below each other on one time axis, a
/// row an SM, a colour a stage, waits hatched. The first one is what the others are compared with: where
/// it ends, a line goes through all of them.
///
///     std::ofstream file("timeline.svg");
///     timeline_svg(file).write("GPT-3's MLP on an H200", {{"stream order", &a, 132}, ...});
class timeline_svg {
public:
  explicit timeline_svg(std::ostream& to) : to_(to) {}

  void write(const std::string& heading, const std::vector<shown_run>& runs) {
    begin(heading, runs);
    for (const shown_run& run : runs) panel(run);
    to_ << "</svg>\n";
  }

  /// Text as it stands between tags.
  static std::string escaped(const std::string& words) {
    std::string safe;
    for (const char c : words) {
      if (c == '<')
        safe += "&lt;";
      else if (c == '&')
        safe += "&amp;";
      else if (static_cast<unsigned char>(c) >= 0x20) // XML has no others
        safe += c;
    }
    return safe;
  }

private:
  static constexpr double width = 1320, left = 70, right = 30, plot = width - left - right;
  static constexpr double top = 84; ///< Below heading and legend.
  static constexpr double title = 30, axis = 26, gap = 14;

  // Told apart by people who see fewer colours, and in grey (Okabe and Ito).
  static constexpr const char* colours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                            "#56b4e9", "#d55e00", "#7f6000", "#5f4b8b"};
  static constexpr const char* empty_place = "#e9ecef";

  static const char* colour_of(u32 stage) { return colours[stage % std::size(colours)]; }

  double x(u64 ns) const {
    return left + plot * static_cast<double>(ns) / static_cast<double>(end_ns_);
  }

  /// Where a panel's rows lie. The places of an SM stand together as long as they can be told apart;
  /// thin stripes of two colours would look like a third one, so that otherwise each place has a band of
  /// all SMs.
  struct rows {
    rows(u32 sms, u32 slots) {
      const double room = std::clamp(420.0 / sms, 2.0, 28.0);
      together = slots == 1 || room / slots >= 5;
      height = together ? room / slots : std::max(0.5, std::min(2.0, 900.0 / sms / slots));
      of_sm = together ? room : height;
      of_slot = together ? height : height * sms + band_gap;
      labels = together ? 1 : slots;
      panel = together ? room * sms : of_slot * slots - band_gap;
    }
    double y(u32 sm, u32 slot) const { return of_sm * sm + of_slot * slot; }

    static constexpr double band_gap = 12;
    bool together;
    double height, of_sm, of_slot, panel;
    u32 labels; ///< Bands.
  };
  static rows rows_of(const shown_run& run, const tile_slots& slots) {
    return {run.sms, slots.count};
  }

  // --- frame ------------------------------------------------------------------------------------

  void begin(const std::string& heading, const std::vector<shown_run>& runs) {
    double height = top;
    end_ns_ = 1;
    for (const shown_run& run : runs) {
      height += title + rows_of(run, slots_of(run.found->timeline, run.sms)).panel + axis + gap;
      end_ns_ = std::max(end_ns_, run.found->makespan_ns);
    }
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" "
        "fill=\"#222\">\n",
        width, height, width, height);
    const std::vector<std::string> names =
        runs.empty() ? std::vector<std::string>{} : stage_names(*runs.front().found);
    patterns(names.size());
    put("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height);
    const double size = std::min(20.0, 1.65 * plot / static_cast<double>(heading.size() + 1));
    std::string attributes;
    detail::append(attributes, "font-size=\"%.1f\" font-weight=\"bold\"", size);
    text(left, 30, heading, attributes.c_str());
    reference_ns_ = runs.size() > 1 ? runs.front().found->makespan_ns : 0;
    legend(names, runs);
    at_ = top;
  }

  void patterns(std::size_t stages) {
    to_ << "<defs>\n";
    for (u32 i = 0; i < stages; ++i)
      put("<pattern id=\"wait%u\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
          "<rect width=\"2.4\" height=\"6\" fill=\"%s\"/></pattern>\n",
          i, colour_of(i));
    to_ << "</defs>\n";
  }

  void legend(const std::vector<std::string>& names, const std::vector<shown_run>& runs) {
    double at = left;
    const auto entry = [&](const std::string& fill, const std::string& name) {
      put("<rect x=\"%.1f\" y=\"48\" width=\"26\" height=\"14\" fill=\"%s\" stroke=\"#888\" "
          "stroke-width=\"0.5\"/>",
          at, fill.c_str());
      text(at + 32, 60, name, "");
      at += 52 + 7.2 * static_cast<double>(name.size());
    };
    for (u32 i = 0; i < names.size(); ++i) entry(colour_of(i), names[i]);
    for (u32 i = 0; i < names.size() && names.size() > 1; ++i)
      if (i > 0) entry("url(#wait" + std::to_string(i) + ")", names[i] + " waits");
    entry(empty_place, "empty place");
    if (reference_ns_ == 0) return;
    dashed(at + 13, 46, 64);
    text(at + 22, 60, runs.front().title + " ends", "");
  }

  // --- panels -----------------------------------------------------------------------------------

  void panel(const shown_run& run) {
    const tile_slots slots = slots_of(run.found->timeline, run.sms);
    const rows place = rows_of(run, slots);
    text(left, at_ + 19, run.title, "font-size=\"15\" font-weight=\"bold\"");
    text(left + plot, at_ + 19, run.note, "text-anchor=\"end\"");
    at_ += title;
    for (u32 band = 0; band < place.labels; ++band) {
      put("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", left,
          at_ + place.y(0, band), plot, place.of_sm * run.sms, empty_place);
      row_labels(run.sms, place, band);
    }
    tiles(run, slots, place);
    put("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#222\" "
        "stroke-width=\"1.5\"/>\n",
        x(run.found->makespan_ns), x(run.found->makespan_ns), at_ - 4, at_ + place.panel + 4);
    if (reference_ns_ != 0) dashed(x(reference_ns_), at_ - 4, at_ + place.panel + 4);
    at_ += place.panel;
    time_axis();
    at_ += axis + gap;
  }

  void row_labels(u32 sms, const rows& place, u32 band) {
    u32 step = 1;
    for (const u32 rounder : {1u, 2u, 5u, 10u, 20u, 50u, 100u})
      if (step * place.of_sm < 18) step = rounder;
    for (u32 sm = 0; sm < sms; sm += step)
      put("<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" text-anchor=\"end\" fill=\"#555\">SM "
          "%u</text>\n",
          left - 6, at_ + place.y(sm, band) + std::min(place.of_sm, 11.0), sm);
    if (place.labels > 1)
      put("<text transform=\"translate(%.1f %.1f) rotate(90)\" font-size=\"11\" "
          "text-anchor=\"middle\" fill=\"#555\">place %u</text>\n",
          left + plot + 8, at_ + place.y(sms / 2, band), band + 1);
  }

  void tiles(const shown_run& run, const tile_slots& slots, const rows& where) {
    const report& found = *run.found;
    const std::vector<std::string> names = stage_names(found);

    const double space = where.height >= 6 ? 1 : where.height >= 2.5 ? 0.4 : 0; // between rows
    const auto place = [&](std::size_t tile, u64 start, u64 end) {
      put("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", x(start),
          at_ + where.y(found.timeline[tile].sm, slots.of[tile]), x(end) - x(start),
          where.height - space);
    };
    for (u32 stage = 0; stage < names.size(); ++stage) {
      put("<g fill=\"%s\">\n", colour_of(stage));
      for (std::size_t i = 0; i < found.timeline.size(); ++i) {
        const tile_record& tile = found.timeline[i];
        if (tile.stage != stage) continue;
        place(i, tile.start_ns, tile.end_ns);
        put("><title>%s, SM %u, block %u: %.2f to %.2f us, waits %.2f us</title></rect>\n",
            escaped(names[stage] + " " + to_string(tile.tile)).c_str(), tile.sm, tile.block,
            detail::us(tile.start_ns), detail::us(tile.end_ns), detail::us(tile.wait_ns));
      }
      to_ << "</g>\n";
    }
    for (const wait_record& wait : found.waits) {
      place(wait.tile, wait.start_ns, wait.end_ns);
      put(" fill=\"url(#wait%u)\"><title>%s waits: %.2f to %.2f us</title></rect>\n",
          found.timeline[wait.tile].stage,
          escaped(names[found.timeline[wait.tile].stage] + " " +
                  to_string(found.timeline[wait.tile].tile))
              .c_str(),
          detail::us(wait.start_ns), detail::us(wait.end_ns));
    }
  }

  /// Ticks at 1, 2 or 5 times a power of ten, at most a dozen.
  void time_axis() {
    const double end = detail::us(end_ns_);
    const double power = std::pow(10, std::floor(std::log10(end / 12)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0})
      if (end / step > 12) step = power * factor;
    for (u32 tick = 0; tick * step <= end * 1.0001; ++tick) {
      const double time = tick * step;
      const double place = left + plot * time / end;
      put("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#888\"/>"
          "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" text-anchor=\"middle\" "
          "fill=\"#555\">%g%s</text>\n",
          place, place, at_, at_ + 5, place, at_ + 17, time, time == 0 ? " us" : "");
    }
  }

  void dashed(double at_x, double from, double to) {
    put("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#c00\" "
        "stroke-dasharray=\"5 3\" stroke-width=\"1.4\"/>\n",
        at_x, at_x, from, to);
  }

  // --- text -------------------------------------------------------------------------------------

  template <class... Values> void put(const char* format, Values... values) {
    line_.clear();
    detail::append(line_, format, values...);
    to_ << line_;
  }

  void text(double at_x, double at_y, const std::string& words, const char* attributes) {
    put("<text x=\"%.1f\" y=\"%.1f\" %s>", at_x, at_y, attributes);
    to_ << escaped(words) << "</text>\n";
  }

  std::ostream& to_;
  std::string line_;
  u64 end_ns_ = 1;
  u64 reference_ns_ = 0; ///< Where the first of several ends.
  double at_ = 0;
};

} // namespace cusync::sim
