// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace cusync::cli {
namespace {

using nlohmann::json;

json rows_of(const std::string& arguments, std::size_t table = 0) {
  return json_of("simulate " + arguments).at("tables").at(table).at("rows");
}

json row_of(const json& rows, const std::string& policy) {
  for (const json& row : rows)
    if (row.at("policy").get<std::string>().starts_with(policy)) return row;
  return {};
}

TEST(Simulate, SetsStreamOrderBesideEveryPolicy) {
  const json rows = rows_of("examples/chains/attention.json");
  ASSERT_EQ(rows.size(), 5u);
  const json stream = row_of(rows, "StreamSync");
  EXPECT_EQ(stream.at("mode"), "serial");
  EXPECT_DOUBLE_EQ(stream.at("speed-up"), 1);
  EXPECT_DOUBLE_EQ(stream.at("waiting us"), 0);
  EXPECT_DOUBLE_EQ(stream.at("waves"), 4); // 2 + 1 + 1
  for (const char* policy : {"GridSync", "RowSync", "TileSync", "own (StridedSync, TileSync)"}) {
    const json row = row_of(rows, policy);
    ASSERT_TRUE(row.is_object()) << policy;
    EXPECT_EQ(row.at("mode"), "pdl");
    EXPECT_NEAR(row.at("speed-up").get<double>() * row.at("makespan us").get<double>(),
                stream.at("makespan us"), 1e-9);
    EXPECT_GT(row.at("waiting us"), 0);
  }
  EXPECT_GT(row_of(rows, "TileSync").at("speed-up"), row_of(rows, "GridSync").at("speed-up"));
}

TEST(Simulate, ShowsTheFilesPoliciesOnce) {
  const json rows = rows_of("examples/chains/gpt3_mlp.json");
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_TRUE(row_of(rows, "RowSync (own)").is_object());
  EXPECT_EQ(rows_of("examples/chains/gpt3_mlp.json --policy own").size(), 2u);
}

TEST(Simulate, CountsWhatTheTilesTake) {
  const json rows = rows_of("examples/chains/attention.json --gpu sms=33");
  const json stages = rows_of("examples/chains/attention.json --gpu sms=33", 1);
  double work = 0;
  for (const json& stage : stages)
    work += stage.at("tiles").get<double>() * stage.at("tile us").get<double>();
  for (const json& row : rows) // one block an SM: places are SMs
    EXPECT_NEAR(row.at("used %").get<double>() / 100 * row.at("makespan us").get<double>() * 33,
                work, 1e-6 * work);
}

TEST(Simulate, RepeatsASeed) {
  const std::string jitter = "examples/chains/attention.json --jitter 20 --seed ";
  const json once = rows_of(jitter + "1"), again = rows_of(jitter + "1"),
             other = rows_of(jitter + "2");
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
}

TEST(Simulate, NamesAChoiceThatCannotRun) {
  std::ofstream("simulate_nosync.json")
      << R"({"stages": [{"name": "a", "grid": [4, 4]}, {"name": "b", "grid": [4, 4]}],
             "dependences": [{"producer": "a", "consumer": "b", "reads": {"kind": "rows"},
                              "policy": "NoSync"}]})";
  const json rows = rows_of("simulate_nosync.json");
  std::remove("simulate_nosync.json");
  const json own = row_of(rows, "own (NoSync)");
  EXPECT_TRUE(own.at("makespan us").is_null());
  EXPECT_NE(own.at("note").get<std::string>().find("NoSync"), std::string::npos);
  EXPECT_TRUE(row_of(rows, "RowSync").at("makespan us").is_number());
}

TEST(Simulate, DoubtsAChainThatIsWrong) {
  const json rows = rows_of("tests/data/chains/no_halo.json");
  EXPECT_EQ(row_of(rows, "own (table)").at("note"), "refuted: coverage; see cusync check");
  EXPECT_TRUE(row_of(rows, "TileSync").at("note").is_null());
}

/// How often a kernel looks is what tells the styles apart: the finer the policy, the more.
TEST(Simulate, KnowsHowKernelsWait) {
  const auto waiting = [](const std::string& style) {
    return row_of(rows_of("examples/chains/gpt3_mlp.json --waits " + style), "TileSync")
        .at("waiting us")
        .get<double>();
  };
  EXPECT_LT(waiting("ahead"), waiting("step"));
  EXPECT_LT(waiting("tile"), waiting("step"));
}

} // namespace
} // namespace cusync::cli
