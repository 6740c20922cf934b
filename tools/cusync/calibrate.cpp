// SPDX-License-Identifier: MIT
#include "calibrate.hpp"
#include "progress.hpp"
#include "synthetic_cpu.hpp"

#include <algorithm> // max
#include <cmath>     // abs, sqrt
#include <utility>   // swap

namespace cusync::cli {

/// One wave shows what waits cost, a second wave what the next block in a place costs, and 265 = 2 *
/// 132 + 1 tiles what it takes until the next stage starts: all SMs but one are idle by then. Streams
/// only where the GPU has more to do than the host.
std::vector<synthetic_request> calibration_requests() {
  const auto problems = [](const std::vector<u32>& rows_of_grids,
                           const std::vector<double>& tiles_us) {
    std::vector<synthetic_problem> made;
    for (const u32 rows : rows_of_grids)
      for (const double tile_us : tiles_us)
        for (const u32 stages : {2u, 3u}) {
          synthetic_problem problem;
          problem.rows = rows;
          problem.cols = rows == 53 ? 5 : 6;
          problem.stages = stages;
          problem.tile_us = tile_us;
          made.push_back(problem);
        }
    return made;
  };
  synthetic_request graphs;
  graphs.problems = problems({11, 22, 53}, {2, 7});
  graphs.variants = {
      {sync_kind::stream, launch_mode::serial},
      {sync_kind::grid, launch_mode::pdl},
      {sync_kind::row, launch_mode::pdl},
      {sync_kind::tile, launch_mode::pdl},
      {sync_kind::row, launch_mode::pdl, false, true},
  };
  graphs.eager = false;
  synthetic_request streams;
  streams.problems = problems({53}, {7});
  streams.variants = {{sync_kind::row, launch_mode::streams}};
  return {graphs, streams};
}

namespace {

using vector = std::vector<double>;

/// Relative errors, an entry a measurement.
vector errors_of(const sim::gpu& gpu, const std::vector<synthetic_row>& measured) {
  vector errors;
  for (const synthetic_row& row : measured)
    errors.push_back(predicted_us(row.problem, row.variant, gpu) / row.us - 1);
  return errors;
}

double sum_of_squares(const vector& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

sim::gpu moved(sim::gpu gpu, std::size_t constant, double ns) {
  u64& value = gpu.*gpu_constants[constant].field;
  value = static_cast<u64>(std::max(0.0, static_cast<double>(value) + ns));
  return gpu;
}

/// The errors' change a nanosecond of one constant, over a span that smooths the model's corners.
vector slope_of(const sim::gpu& gpu, std::size_t constant,
                const std::vector<synthetic_row>& measured) {
  constexpr double span = 100;
  const sim::gpu below = moved(gpu, constant, -span), above = moved(gpu, constant, span);
  const auto field = gpu_constants[constant].field;
  const double width = static_cast<double>(above.*field - below.*field);
  vector slope = errors_of(above, measured);
  const vector low = errors_of(below, measured);
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = (slope[i] - low[i]) / width;
  return slope;
}

double dot(const vector& a, const vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Solves a x = b by elimination with row exchange; `a` is square and regular.
vector solve(std::vector<vector> a, vector b) {
  const std::size_t n = b.size();
  for (std::size_t col = 0; col < n; ++col) {
    std::size_t best = col;
    for (std::size_t row = col; row < n; ++row)
      if (std::abs(a[row][col]) > std::abs(a[best][col])) best = row;
    std::swap(a[col], a[best]);
    std::swap(b[col], b[best]);
    for (std::size_t row = col + 1; row < n; ++row) {
      const double factor = a[row][col] / a[col][col];
      for (std::size_t k = col; k < n; ++k) a[row][k] -= factor * a[col][k];
      b[row] -= factor * b[col];
    }
  }
  for (std::size_t row = n; row-- > 0;) {
    for (std::size_t k = row + 1; k < n; ++k) b[row] -= a[row][k] * b[k];
    b[row] /= a[row][row];
  }
  return b;
}

/// The slopes of those constants that the times depend on.
struct linearised {
  std::vector<std::size_t> constants;
  std::vector<vector> slopes;

  linearised(const sim::gpu& gpu, const std::vector<synthetic_row>& measured) {
    for (std::size_t i = 0; i < std::size(gpu_constants); ++i) {
      if (!gpu_constants[i].fitted) continue;
      vector slope = slope_of(gpu, i, measured);
      if (sum_of_squares(slope) == 0) continue;
      constants.push_back(i);
      slopes.push_back(std::move(slope));
    }
  }
  /// The normal equations, damped: each constant's own entry grows.
  std::vector<vector> normal(double damping) const {
    std::vector<vector> matrix(slopes.size(), vector(slopes.size()));
    for (std::size_t i = 0; i < slopes.size(); ++i)
      for (std::size_t j = 0; j < slopes.size(); ++j)
        matrix[i][j] = dot(slopes[i], slopes[j]) * (i == j ? 1 + damping : 1);
    return matrix;
  }
};

/// One step of Levenberg and Marquardt. False where no step makes the errors smaller.
bool improve(sim::gpu& gpu, vector& errors, const std::vector<synthetic_row>& measured) {
  const linearised model(gpu, measured);
  vector right;
  for (const vector& slope : model.slopes) right.push_back(-dot(slope, errors));
  for (double damping = 1e-3; damping < 1e3; damping *= 10) {
    const vector step = solve(model.normal(damping), right);
    sim::gpu tried = gpu;
    for (std::size_t i = 0; i < step.size(); ++i)
      tried = moved(tried, model.constants[i], std::round(step[i]));
    const vector tried_errors = errors_of(tried, measured);
    if (sum_of_squares(tried_errors) >= sum_of_squares(errors) * 0.9999) continue;
    gpu = tried;
    errors = tried_errors;
    return true;
  }
  return false;
}

/// How far each constant can be off, were the errors noise.
vector deviations(const sim::gpu& gpu, const vector& errors,
                  const std::vector<synthetic_row>& measured) {
  vector deviation(std::size(gpu_constants), -1.0);
  const linearised model(gpu, measured);
  const std::size_t n = model.slopes.size();
  if (errors.size() <= n) return deviation;
  const double variance = sum_of_squares(errors) / static_cast<double>(errors.size() - n);
  for (std::size_t i = 0; i < n; ++i) {
    vector unit(n);
    unit[i] = 1;
    deviation[model.constants[i]] =
        std::sqrt(std::abs(solve(model.normal(1e-9), unit)[i]) * variance);
  }
  return deviation;
}

} // namespace

gpu_fit fit_constants(const sim::gpu& start, const std::vector<synthetic_row>& measured) {
  constexpr u32 most = 30;
  progress bar(most);
  gpu_fit fit{start, {}, 0};
  vector errors = errors_of(start, measured);
  for (u32 i = 0; i < most; ++i) {
    bar.step("fit");
    if (!improve(fit.gpu, errors, measured)) break;
  }
  fit.deviation = deviations(fit.gpu, errors, measured);
  fit.error = std::sqrt(sum_of_squares(errors) / static_cast<double>(errors.size()));
  return fit;
}

} // namespace cusync::cli
