// SPDX-License-Identifier: MIT
#include <cusync/dependence/row_dependence.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/sim/chrome_trace.hpp>
#include <cusync/sim/cusync.hpp>
#include <cusync/sim/timeline_svg.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <sstream>

namespace cusync::sim {
namespace {

using nlohmann::json;

constexpr operand<0> A;

/// Two stages of 20 tiles on three SMs, two blocks an SM, so that there are waits.
report small_report(const std::string& second_name = "second") {
  using Producer = CuStage<RowMajor, inputs<>, outputs<RowSync>>;
  using Consumer = CuStage<RowMajor, inputs<reads<0, RowSync, row_dependence>>, outputs<>>;
  const row_dependence reads{.matrix = {5, 4},
                             .producer_tile = {1, 1},
                             .consumer_rows = 1,
                             .step_cols = 1,
                             .consumer_cols = 4};
  gpu device = find_gpu("H200");
  device.sms = 3;
  CuSync chain(device);
  auto& first = chain.stage<Producer>("first", reads.producer(), RowMajor{});
  auto& second = chain.stage<Consumer>(second_name, reads.consumer(), RowMajor{});
  chain.dependency<RowSync>(first, second, A, reads);
  const block_resources block{.threads = 128, .registers = 32, .shared_bytes = 100 * 1024};
  chain.kernel(first, [](auto) {}, block, {.ns = 9000});
  chain.kernel(second, [](auto) {}, block, {.ns = 7000});
  return chain.predict(1, {.kept = keep::timeline});
}

std::string svg_of(const std::vector<shown_run>& runs) {
  std::ostringstream text;
  timeline_svg(text).write("Heading", runs);
  return text.str();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Timeline, GivesTilesOfAnSmPlacesOfTheirOwn) {
  const report found = small_report();
  const tile_slots slots = slots_of(found.timeline, 3);
  EXPECT_EQ(slots.count, 2u);
  for (std::size_t i = 0; i < found.timeline.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const tile_record &a = found.timeline[i], &b = found.timeline[j];
      if (a.sm != b.sm || slots.of[i] != slots.of[j]) continue;
      EXPECT_TRUE(a.end_ns <= b.start_ns || b.end_ns <= a.start_ns);
    }
}

TEST(ChromeTrace, HasAnEventATileAndAWaitInsideOfIt) {
  const report found = small_report("a \"quoted\" \\ name\n");
  std::ostringstream text;
  chrome_trace(text).write({{"RowSync", &found, 3}, {"again", &found, 3}});
  const json events = json::parse(text.str()).at("traceEvents");
  std::map<int, u32> tiles, waits;
  std::map<std::pair<int, int>, std::vector<json>> by_thread;
  for (const json& event : events) {
    if (event.at("ph") != "X") continue;
    ++(event.at("cat") == "wait" ? waits : tiles)[event.at("pid")];
    by_thread[{event.at("pid"), event.at("tid")}].push_back(event);
  }
  for (const int process : {1, 2}) {
    EXPECT_EQ(tiles[process], 40u);
    EXPECT_EQ(waits[process], found.waits.size());
  }
  EXPECT_GT(found.waits.size(), 0u);
  EXPECT_EQ(by_thread.size(), 2u * 3 * 2);
  // Perfetto nests events of a thread: they must lie in each other, or apart.
  for (const auto& [thread, on_it] : by_thread)
    for (const json& a : on_it)
      for (const json& b : on_it) {
        const double a_begin = a.at("ts"), b_begin = b.at("ts");
        const double a_end = a_begin + a.at("dur").get<double>();
        const double b_end = b_begin + b.at("dur").get<double>();
        const double slack = 1e-6;
        EXPECT_TRUE(a_end <= b_begin + slack || b_end <= a_begin + slack ||
                    (a_begin >= b_begin - slack && a_end <= b_end + slack) ||
                    (b_begin >= a_begin - slack && b_end <= a_end + slack))
            << a << b;
      }
}

TEST(ChromeTrace, EndsWithTheSimulation) {
  const report found = small_report();
  std::ostringstream text;
  chrome_trace(text).write({{"RowSync", &found, 3}});
  const json all = json::parse(text.str());
  double end = 0;
  for (const json& event : all.at("traceEvents"))
    if (event.at("ph") == "X")
      end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
  EXPECT_GT(end, 0);
  // The last block leaves with its last tile, or once the stage ahead is complete.
  EXPECT_NEAR(end, static_cast<double>(found.makespan_ns) * 1e-3, 2);
}

TEST(TimelineSvg, HasAShapeATileAndAWait) {
  const report found = small_report();
  const std::string svg = svg_of({{"Stream order", &found, 3, "note 1"}, {"RowSync", &found, 3}});
  EXPECT_EQ(count(svg, "<title>first ("), 2 * 20u);
  EXPECT_EQ(count(svg, "<title>second ("), 2 * (20u + found.waits.size()));
  EXPECT_EQ(count(svg, " waits: "), 2 * found.waits.size());
  for (const char* part : {"Heading", "Stream order", "note 1", "RowSync", "second waits",
                           "empty place", "SM 2", "stroke-dasharray"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

TEST(TimelineSvg, NeedsNothingElse) {
  const report found = small_report();
  const std::string svg = svg_of({{"only", &found, 3}});
  EXPECT_EQ(count(svg, "http"), 1u); // the name of the format
  EXPECT_EQ(count(svg, "href"), 0u);
  EXPECT_EQ(count(svg, "<script"), 0u);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 0u); // nothing to compare with
}

TEST(TimelineSvg, WritesNamesAsText) {
  const report found = small_report("a < b & c");
  const std::string svg = svg_of({{"only", &found, 3}});
  EXPECT_EQ(count(svg, "a < b"), 0u);
  EXPECT_GT(count(svg, "a &lt; b &amp; c"), 20u);
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "<text "), count(svg, "</text>"));
}

} // namespace
} // namespace cusync::sim
