// SPDX-License-Identifier: MIT
#include "timeline_files.hpp"
#include "format.hpp"
#include "results.hpp"

#include <cusync/errors.hpp>           // invalid_argument
#include <cusync/sim/chrome_trace.hpp> // chrome_trace
#include <cusync/sim/timeline_svg.hpp> // timeline_svg

#include <fstream> // ofstream

namespace cusync::cli {
namespace {

constexpr u64 most_in_a_picture = 50'000;
constexpr u64 most_in_a_trace = 2'000'000;

void require(const char* option, const std::string& path, u64 tiles, u64 most) {
  if (path.empty()) return;
  require_writable(option, path);
  if (tiles > most)
    throw invalid_argument(
        formatted("{}: {} tiles are more than the {} that can be shown; simulate "
                  "smaller grids, or fewer policies with --policy",
                  option, tiles, most));
}

/// The picture needs nothing but itself; the page gives it a title and lets it scroll.
void write_page(std::ostream& to, const timeline_picture& picture) {
  to << "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>"
     << sim::timeline_svg::escaped(picture.heading)
     << "</title>\n<style>body { margin: 0; background: #fff } svg { display: block; margin: auto; "
        "max-width: 100%; height: auto }</style>\n";
  sim::timeline_svg(to).write(picture.heading, picture.runs);
  to << "</html>\n";
}

} // namespace

void require_drawable(const timeline_paths& paths, u64 tiles, std::size_t runs) {
  require("--trace", paths.trace, tiles * runs, most_in_a_trace);
  require("--svg", paths.svg, tiles * runs, most_in_a_picture);
  require("--html", paths.html, tiles * runs, most_in_a_picture);
}

void write_timelines(const timeline_paths& paths, const timeline_picture& picture) {
  if (!paths.trace.empty()) {
    std::ofstream file(paths.trace);
    sim::chrome_trace(file).write(picture.runs);
  }
  if (!paths.svg.empty()) {
    std::ofstream file(paths.svg);
    sim::timeline_svg(file).write(picture.heading, picture.runs);
  }
  if (!paths.html.empty()) {
    std::ofstream file(paths.html);
    write_page(file, picture);
  }
}

} // namespace cusync::cli
