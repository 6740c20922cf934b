// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <gtest/gtest.h>

namespace cusync::cli {
namespace {

using nlohmann::json;

/// What the paper prints, beside what the program computes.
class PaperWaves : public testing::Test {
protected:
  const json printed = test_data("paper_waves.json");
  const json computed = json_of("waves --paper");

  const json& rows(std::size_t table) const { return computed.at("tables").at(table).at("rows"); }

  void expect_near(const json& ours, const json& theirs, const std::string& what) {
    // What it prints as 4.3 is 4.2875: the tolerance itself, give or take a bit.
    const double tolerance = printed.at("tolerance").get<double>() + 1e-12;
    EXPECT_NEAR(ours.get<double>(), theirs.get<double>(), tolerance) << what;
    ++compared;
  }
  void expect_equal(const json& ours, const json& theirs, const std::string& what) {
    EXPECT_EQ(ours, theirs) << what;
    ++compared;
  }
  void expect_stage(const json& row, const json& theirs, const std::string& number) {
    const std::string what = "batch " + theirs.dump() + ", stage " + number;
    expect_equal(row.at("grid " + number), theirs.at("grid"), what);
    expect_near(row.at("waves " + number), theirs.at("waves"), what);
    if (!theirs.contains("utilisation")) return;
    expect_near(row.at("used % " + number).get<double>() / 100, theirs.at("utilisation"), what);
  }
  void expect_chain(const json& row, const json& theirs) {
    expect_equal(row.at("stream waves"), theirs.at("stream_waves"), theirs.dump());
    expect_near(row.at("overlapped waves"), theirs.at("fine_waves"), theirs.dump());
  }

  int compared = 0;
};

TEST_F(PaperWaves, UtilisationOfTwoGemmsIsAsPrinted) {
  const json& table = printed.at("utilisation");
  ASSERT_EQ(rows(0).size(), table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    expect_equal(rows(0)[i].at("batch"), table[i].at("batch"), "batch");
    expect_stage(rows(0)[i], table[i].at("first"), "1");
    expect_stage(rows(0)[i], table[i].at("second"), "2");
  }
  EXPECT_EQ(compared, 3 * 7);
}

TEST_F(PaperWaves, WavesOfTheMlpAreAsPrinted) {
  const json& table = printed.at("mlp");
  ASSERT_EQ(rows(1).size(), table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    expect_equal(rows(1)[i].at("batch"), table[i].at("batch"), "batch");
    expect_stage(rows(1)[i], table[i].at("first"), "1");
    expect_stage(rows(1)[i], table[i].at("second"), "2");
    expect_chain(rows(1)[i], table[i]);
  }
  EXPECT_EQ(compared, 6 * 7);
}

TEST_F(PaperWaves, WavesOfTheConvolutionsAreAsPrinted) {
  const json& table = printed.at("conv2d");
  ASSERT_EQ(rows(2).size(), table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const json& row = rows(2)[i];
    expect_equal(row.at("batch"), table[i].at("batch"), "batch");
    for (const std::string number : {"1", "2"}) {
      const std::string grid = row.at("grid " + number);
      expect_equal(std::stoi(grid.substr(0, grid.find('x'))), table[i].at("grid_x"), grid);
      expect_near(row.at("waves " + number), table[i].at("conv_waves"), table[i].dump());
    }
    expect_chain(row, table[i]);
  }
  EXPECT_EQ(compared, 9 * 7);
}

/// Another of its tables states the blocks of both kernels together.
TEST_F(PaperWaves, BlocksAreThoseOfTheTableOfOptimisations) {
  for (const auto& [name, table] : {std::pair{"mlp", 1u}, std::pair{"conv2d", 2u}})
    for (const auto& [batch, blocks] : printed.at("blocks_of_both").at(name).items())
      for (const json& row : rows(table))
        if (row.at("batch") == batch) expect_equal(row.at("blocks"), blocks, batch);
  EXPECT_EQ(compared, 3);
}

TEST_F(PaperWaves, ErratumIsNotReproduced) {
  for (const json& erratum : printed.at("errata"))
    for (const json& row : rows(2))
      if (row.at("batch") == erratum.at("batch")) {
        const double fewer = row.at("fewer %");
        EXPECT_NEAR(fewer, erratum.at("fewer_percent").get<double>(), 0.01);
        EXPECT_GT(std::abs(fewer - erratum.at("fewer_percent_printed").get<double>()), 5);
        ++compared;
      }
  EXPECT_EQ(compared, 1);
}

TEST(Waves, CountBlocksThatFitOnTheGpu) {
  const json rows = json_of("waves 4x48,4x96 --gpu V100 --threads 256 --registers 128")
                        .at("tables")
                        .at(0)
                        .at("rows");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("blocks per wave"), "160");
  EXPECT_DOUBLE_EQ(rows[0].at("overlapped waves"), 3.6);
  EXPECT_EQ(rows[0].at("whole"), 4);
}

TEST(Waves, AddStagesOfDifferentKernels) {
  const json rows =
      json_of("waves 99,33x4 66 --gpu sms=33 --blocks-per-sm 2").at("tables").at(0).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0].at("overlapped waves"), 3.5);
  EXPECT_EQ(rows[0].at("stream waves"), 4);
  EXPECT_TRUE(rows[1].at("grid 2").is_null());
  const json mixed =
      json_of("waves 99,33x4 --gpu sms=33 --blocks-per-sm 2,4").at("tables").at(0).at("rows").at(0);
  EXPECT_EQ(mixed.at("blocks per wave"), "66, 132");
  EXPECT_DOUBLE_EQ(mixed.at("overlapped waves"), 2.5);
}

} // namespace
} // namespace cusync::cli
