// SPDX-License-Identifier: MIT
#include "calibrate.hpp"
#include "synthetic_cpu.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace cusync::cli {
namespace {

/// A GPU whose costs differ from the built-in ones by up to a third.
sim::gpu other_gpu() {
  sim::gpu gpu = sim::find_gpu("H200");
  double factor = 0.7;
  for (const gpu_constant& constant : gpu_constants)
    if (constant.fitted) {
      gpu.*constant.field = static_cast<u64>(static_cast<double>(gpu.*constant.field) * factor);
      factor = factor == 0.7 ? 1.3 : 0.7;
    }
  return gpu;
}

/// What calibration would measure if the GPU were like that.
std::vector<synthetic_row> times_on(const sim::gpu& gpu) {
  std::vector<synthetic_row> rows;
  for (const synthetic_request& request : calibration_requests())
    for (const synthetic_problem& problem : request.problems)
      for (const synthetic_variant& variant : request.variants) {
        synthetic_row row;
        row.problem = problem;
        row.variant = variant;
        row.us = predicted_us(problem, variant, gpu);
        rows.push_back(row);
      }
  return rows;
}

TEST(Calibrate, FindsTheCostsOfTheGpuThatWasMeasured) {
  const sim::gpu there = other_gpu();
  const gpu_fit fit = fit_constants(sim::find_gpu("H200"), times_on(there));
  EXPECT_LT(fit.error, 0.002);
  for (std::size_t i = 0; i < std::size(gpu_constants); ++i) {
    if (!gpu_constants[i].fitted) continue;
    EXPECT_GE(fit.deviation[i], 0) << gpu_constants[i].name << " cannot be told from these times";
    const auto field = gpu_constants[i].field;
    EXPECT_NEAR(static_cast<double>(fit.gpu.*field), static_cast<double>(there.*field), 60)
        << gpu_constants[i].name;
  }
}

TEST(Calibrate, MeasuresNothingThatTheGpuIsJudgedBy) {
  for (const synthetic_request& request : calibration_requests())
    for (const synthetic_problem& problem : request.problems) {
      EXPECT_TRUE(problem.tiles() == 66 || problem.tiles() == 132 || problem.tiles() == 265);
      EXPECT_TRUE(problem.tile_us == 2 || problem.tile_us == 7);
    }
}

TEST(Calibrate, TheBuiltInGpusHaveTheCostsThatWereMeasuredLast) {
  const std::filesystem::path results = CUSYNC_RESULTS;
  std::filesystem::path latest;
  for (const auto& entry : std::filesystem::directory_iterator(results))
    if (entry.path().filename().string().ends_with("-h200-calibration.json"))
      latest = std::max(latest, entry.path());
  ASSERT_FALSE(latest.empty()) << "no calibration in " << results;
  const auto measured = nlohmann::json::parse(std::ifstream(latest));
  const sim::gpu& gpu = sim::find_gpu("H200");
  EXPECT_EQ(std::to_string(gpu.post_ns), measured.at("post ns").get<std::string>());
  for (const auto& row : measured.at("tables").at(0).at("rows"))
    for (const gpu_constant& constant : gpu_constants)
      if (constant.fitted && row.at("constant") == constant.name) {
        EXPECT_EQ(row.at("fitted"), gpu.*constant.field) << constant.name;
      }
}

TEST(Synthetic, ExecutedAndPredictedTimesAreTheSame) {
  for (const synthetic_variant& variant : synthetic_variants) {
    synthetic_problem problem;
    problem.stages = 3;
    problem.tile_us = 4;
    const synthetic_row executed =
        synthetic_on_virtual_gpu(problem, variant, sim::find_gpu("H200"));
    EXPECT_EQ(executed.wrong_runs, 0u) << variant.name();
    if (executed.us > 0) {
      EXPECT_DOUBLE_EQ(executed.us, predicted_us(problem, variant, sim::find_gpu("H200")))
          << variant.name();
    }
  }
}

} // namespace
} // namespace cusync::cli
