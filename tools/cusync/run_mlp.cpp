// SPDX-License-Identifier: MIT
#include "format.hpp"
#include "gpu_part.hpp"
#include "mlp_cpu.hpp"
#include "workloads.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <algorithm> // max
#include <cmath>     // ceil
#include <memory>    // make_shared

namespace cusync::cli {
namespace {

struct mlp_options : common_options {
  std::string model = "gpt3";
  std::string batches;
  std::string policies = "StreamSync,TileSync,RowSync";
  std::string mode = "automatic";
  std::string tiles = "auto";
  std::string scale;
};

constexpr const char* examples = R"(Examples:
  cusync run mlp                                 on the GPU, else an 8th of it on a virtual one
  cusync run mlp --batch 256,512 --mode streams  the paper's way, with and without its wait kernel
  cusync run mlp --device cpu --gpu A100         what it would be on another GPU
  cusync run mlp --device gpu --tile 64x64x64,128x128x32 --json
)";

mlp_request request_of(const mlp_options& options, bool on_gpu) {
  mlp_request request;
  request.model = mlp_model_of(options.model);
  request.policies = policies_of(options.policies);
  request.mode = mode_of(options.mode);
  request.samples = samples_of(options);
  request.seed = options.seed;
  const std::string usual = on_gpu ? "1,64,128,256,512,1024,2048" : "128,256,512";
  request.batches = counts_of("--batch", options.batches.empty() ? usual : options.batches, 65536);
  const std::string usual_scale = on_gpu ? "1" : "8";
  request.scale = count_of("--scale", options.scale.empty() ? usual_scale : options.scale, 768);
  if (request.model.columns / request.scale % 8 != 0 || request.model.columns % request.scale != 0)
    throw invalid_argument(
        formatted("--scale: {} does not divide the {} columns of W1 into a multiple "
                  "of 8; use 2^i or 3 * 2^i up to 768",
                  request.scale, request.model.columns));
  if (options.tiles != "auto")
    for (const std::string& name : split(options.tiles)) request.tiles.push_back(tile_of(name));
  return request;
}

// --- the table ----------------------------------------------------------------------------------

std::string text(tile_extent grid) { return formatted("{}x{}", grid.rows, grid.cols); }

/// The part of the places in whole waves that hold a block.
std::string utilisation(double waves) {
  return formatted("{:.0f}%", 100 * waves / std::ceil(waves));
}

std::string yes_or(bool yes, const char* otherwise) { return yes ? "yes" : otherwise; }

std::vector<cell> row_of(const mlp_batch& batch, const mlp_row& row, bool on_gpu) {
  const double baseline = batch.rows.front().us;
  const sync_choice& choice = row.choice;
  std::vector<cell> cells = {
      batch.shape.batch,
      batch.tile.name(),
      text(batch.grid(0)) + " " + text(batch.grid(1)),
      formatted("{:.2f} {:.2f}", batch.waves(0), batch.waves(1)),
      utilisation(batch.waves(0)) + " " + utilisation(batch.waves(1)),
      name_of(choice.policy),
      choice.w ? (row.proved ? "yes" : "not proved") : "-",
      yes_or(choice.r, "-"),
      name_of(row.mode),
  };
  const bool ran = row.us > 0;
  cells.push_back(ran ? cell(row.us, 1) : cell());
  if (on_gpu) {
    cells.push_back(ran ? cell(row.low, 1) : cell());
    cells.push_back(ran ? cell(row.high, 1) : cell());
    cells.push_back(ran && row.mhz > 0 ? cell(row.mhz, 0) : cell());
  }
  cells.push_back(ran ? cell(baseline / row.us, 3) : cell());
  cells.push_back(!ran ? cell() : row.wrong == 0 ? "ok" : cell(formatted("{} wrong", row.wrong)));
  return cells;
}

table table_of(const std::vector<mlp_batch>& batches, bool on_gpu) {
  std::vector<std::string> columns = {
      "batch",  "tile", "grids", "waves", "utilisation",
      "policy", "W",    "R",     "mode",  on_gpu ? "us" : "virtual us"};
  if (on_gpu) columns.insert(columns.end(), {"10%", "90%", "MHz"});
  columns.insert(columns.end(), {"speed-up", "numbers"});
  table rows(columns);
  for (const mlp_batch& batch : batches)
    for (const mlp_row& row : batch.rows) rows.add(row_of(batch, row, on_gpu));
  return rows;
}

void report_numbers(results& found, const std::vector<mlp_batch>& batches, bool on_gpu) {
  for (const mlp_batch& batch : batches) {
    for (const std::string& note : batch.notes) found.note(note);
    for (const mlp_row& row : batch.rows)
      if (row.wrong != 0)
        found.wrong(
            formatted("batch {}, {}: {} of {} elements a run are not what double precision says",
                      batch.shape.batch, row.choice.name(), row.wrong, batch.checked));
  }
  found.note(
      "speed-up: over StreamSync, the same kernels in stream order, of the same batch and tile.");
  found.note(
      std::string("numbers: each element of XW1 and Y within the error bound of a double-precision "
                  "reference; both filled with NaN before each checked run") +
      (on_gpu ? " (eager and in a graph)." : "."));
}

// --- the subcommand -----------------------------------------------------------------------------

void report_virtual_gpu(results& found, const mlp_request& request, const virtual_gpu& device) {
  found.fact("time", formatted("virtual time on a simulated {}; not measured", device.text()));
  if (request.scale != 1)
    found.fact("size", formatted("hidden {} and {} columns, the model's {} and {} divided by {}",
                                 request.model.hidden / request.scale,
                                 request.model.columns / request.scale, request.model.hidden,
                                 request.model.columns, request.scale));
}

/// A small model needs a small GPU, to have waves. As many SMs as are given, else ten.
virtual_gpu device_of(const mlp_options& options) {
  virtual_gpu device = virtual_gpu_of(options.gpu, sim::find_gpu("H200"));
  if (!device.sms_given) device.resize(10);
  return device;
}

int run_mlp(const mlp_options& options) {
  const bool on_gpu = use_gpu(options);
  const mlp_request request = request_of(options, on_gpu);
  results found("GPT-3 MLP: XW1 = GeLU(X W1), Y = XW1 W2, half precision", options);
  std::vector<mlp_batch> batches;
  if (on_gpu) {
    found.fact(gpu_facts());
    found.fact("size", formatted("hidden {} and {} columns; weights of {:.0f} MB",
                                 request.model.hidden / request.scale,
                                 request.model.columns / request.scale,
                                 4e-6 * request.model.hidden / request.scale *
                                     request.model.columns / request.scale));
    batches = mlp_on_gpu(request);
  } else {
    const virtual_gpu device = device_of(options);
    report_virtual_gpu(found, request, device);
    batches = mlp_on_virtual_gpu(request, device.gpu);
  }
  found.add("", table_of(batches, on_gpu));
  report_numbers(found, batches, on_gpu);
  return found.publish();
}

void declare(command to) {
  auto options = std::make_shared<mlp_options>();
  add_common(to, *options);
  to.option("--model", options->model, "gpt3: one of 145B's eight tensor-parallel shards")
      .option("--batch", options->batches,
              "Rows of X: a list [GPU 1,64,128,256,512,1024,2048; else 128,256,512]")
      .option("--policy", options->policies, "A list; StreamSync is always there, as the baseline")
      .option("--mode", options->mode, "serial, pdl, streams or automatic")
      .option("--tile", options->tiles,
              "M x N x K of a block: a list, or auto: on a GPU the fastest in stream order")
      .option("--scale", options->scale, "Divides the model's extents [GPU 1; else 8]")
      .examples(examples)
      .runs([options] { return run_mlp(*options); });
}

} // namespace

subcommand mlp_workload() {
  return {"mlp", "GPT-3's MLP with real data: each policy against stream order", declare};
}

} // namespace cusync::cli
