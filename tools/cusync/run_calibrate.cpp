// SPDX-License-Identifier: MIT
#include "run_calibrate.hpp"
#include "calibrate.hpp"
#include "format.hpp"
#include "gpu_part.hpp"
#include "synthetic_cpu.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <nlohmann/json.hpp>

#include <cstdlib>  // strtoull
#include <fstream>  // ifstream
#include <iterator> // size

namespace cusync::cli {
namespace {

constexpr u32 checks = 20;

/// What the fit starts from, and is fitted to.
struct measurements {
  sim::gpu gpu; ///< With the cost of a post as measured.
  std::vector<synthetic_row> rows;
};

// --- on a GPU, or from a file -------------------------------------------------------------------

measurements measure(u32 samples) {
  measurements found{current_gpu(), {}};
  found.gpu.post_ns = post_ns_on_gpu(samples);
  for (synthetic_request request : calibration_requests()) {
    request.samples = samples;
    request.checks = checks;
    for (const synthetic_row& row : synthetic_on_gpu(request))
      if (row.us > 0) found.rows.push_back(row);
  }
  return found;
}

constexpr const char* rows_heading = "residuals";
constexpr const char* post_fact = "post ns";

synthetic_variant variant_of(const std::string& name) {
  for (const synthetic_request& request : calibration_requests())
    for (const synthetic_variant& variant : request.variants)
      if (variant.name() == name) return variant;
  throw invalid_argument("--from: '" + name + "' is no launch of a calibration; make a new one");
}

synthetic_row row_of(const nlohmann::json& from) {
  synthetic_row row;
  row.problem.rows = from.at("rows");
  row.problem.cols = from.at("cols");
  row.problem.stages = from.at("stages");
  row.problem.tile_us = from.at("tile us");
  row.variant = variant_of(from.at("launch"));
  row.form = from.at("form");
  row.us = from.at("us");
  return row;
}

measurements read(const std::string& path) {
  measurements found{sim::find_gpu("H200"), {}};
  const auto json = nlohmann::json::parse(std::ifstream(path), nullptr, false);
  if (json.is_object() && json.contains("tables")) {
    for (const auto& table : json.at("tables"))
      if (table.at("heading") == rows_heading)
        for (const auto& row : table.at("rows")) found.rows.push_back(row_of(row));
    if (json.contains(post_fact))
      found.gpu.post_ns = std::strtoull(json.at(post_fact).get<std::string>().c_str(), nullptr, 10);
  }
  if (found.rows.empty())
    throw invalid_argument("--from: '" + path +
                           "' is not the JSON of a calibration; make one with --calibrate --json");
  return found;
}

// --- the report -----------------------------------------------------------------------------------

table constants_of(const sim::gpu& before, const gpu_fit& fit) {
  table result({"constant", "before", "fitted", "+- ns"});
  for (std::size_t i = 0; i < std::size(gpu_constants); ++i) {
    const auto field = gpu_constants[i].field;
    const bool told = fit.deviation[i] >= 0;
    result.add({gpu_constants[i].name, before.*field, told ? cell(fit.gpu.*field) : cell(),
                told ? cell(fit.deviation[i], 0) : cell()});
  }
  return result;
}

/// For sim/gpu.hpp, to be copied.
std::string initialisers_of(const sim::gpu& gpu) {
  std::string text;
  for (const gpu_constant& constant : gpu_constants)
    text += formatted("u64 {} = {}; ", constant.name, gpu.*constant.field);
  return text;
}

table residuals_of(const std::vector<synthetic_row>& rows, const sim::gpu& fitted) {
  table result(
      {"rows", "cols", "stages", "tile us", "launch", "form", "us", "fitted us", "error %"});
  for (const synthetic_row& row : rows) {
    const double us = predicted_us(row.problem, row.variant, fitted);
    result.add({row.problem.rows, row.problem.cols, row.problem.stages,
                cell(row.problem.tile_us, 0), row.variant.name(), row.form, cell(row.us, 2),
                cell(us, 2), cell(100 * (us - row.us) / row.us, 2)});
  }
  return result;
}

} // namespace

int run_calibrate(const common_options& options, const std::string& from) {
  if (from.empty() && !use_gpu(options))
    throw invalid_argument(
        "--calibrate: " + (options.device == "cpu" ? "--device cpu" : why_no_gpu()) +
        "; give an earlier calibration's JSON with --from FILE");
  results found("Costs of launching and handing over, fitted", options);
  if (from.empty()) found.fact(gpu_facts());
  const measurements measured = from.empty() ? measure(samples_of(options)) : read(from);
  const sim::gpu before = virtual_gpu_of(options.gpu, measured.gpu).gpu;
  found.fact(post_fact, std::to_string(before.post_ns));
  const gpu_fit fit = fit_constants(before, measured.rows);
  found.add("constants", constants_of(before, fit));
  found.add(rows_heading, residuals_of(measured.rows, fit.gpu));
  found.note(formatted("root mean square error {:.2f} %", 100 * fit.error));
  found.note("'-': not fitted, or not to be told from these times; post_ns is measured alone.");
  found.note("for sim/gpu.hpp: " + initialisers_of(fit.gpu));
  for (const synthetic_row& row : measured.rows)
    if (row.wrong_runs != 0)
      found.wrong(formatted("{}: {} of {} runs gave wrong words", row.variant.name(),
                            row.wrong_runs, checks));
  return found.publish();
}

} // namespace cusync::cli
