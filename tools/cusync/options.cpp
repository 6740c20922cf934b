// SPDX-License-Identifier: MIT
#include "options.hpp"
#include "format.hpp"
#include "gpu_constants.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <algorithm> // clamp, min
#include <charconv>  // from_chars

namespace cusync::cli {

void add_common(command& to, common_options& options) {
  to.option("--device", options.device,
            "auto: the GPU if one works here; gpu; cpu: the virtual GPU")
      .option("--gpu", options.gpu,
              "Virtual GPU: a name, numbers or both: H200 | A100,sms=27 | "
              "sms=16,smem=100,tflops=120,gbs=600")
      .option("--samples", options.samples, "Samples of each time on a GPU")
      .option("--seed", options.seed, "Of the data");
  add_output(to, options);
}

void add_output(command& to, common_options& options) {
  to.flag("--json", options.json, "Print JSON instead of a table")
      .option("--markdown", options.markdown, "Also write the results to this file")
      .option("--commit", options.commit, "Commit to record, instead of the one built from");
}

// --- values -------------------------------------------------------------------------------------

namespace {

template <class Number> bool parse(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size();
}

} // namespace

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

u32 count_of(std::string_view option, std::string_view text, u32 most) {
  u32 number = 0;
  if (parse(text, number) && number >= 1 && number <= most) return number;
  throw invalid_argument(
      formatted("{}: '{}' is not a whole number from 1 to {}", option, text, most));
}

std::vector<u32> counts_of(std::string_view option, std::string_view list, u32 most) {
  std::vector<u32> numbers;
  for (const std::string& part : split(list)) numbers.push_back(count_of(option, part, most));
  return numbers;
}

std::vector<double> times_of(std::string_view option, std::string_view list) {
  std::vector<double> numbers;
  for (const std::string& part : split(list)) {
    double number = 0;
    if (!parse(part, number) || !(number > 0) || number > 1e6)
      throw invalid_argument(formatted(
          "{}: '{}' is not a number of microseconds above 0, up to 1000000", option, part));
    numbers.push_back(number);
  }
  return numbers;
}

launch_mode mode_of(std::string_view text) {
  for (const launch_mode mode :
       {launch_mode::serial, launch_mode::pdl, launch_mode::streams, launch_mode::automatic})
    if (text == cusync::name_of(mode)) return mode;
  throw invalid_argument(
      formatted("--mode: '{}' is none; choose serial, pdl, streams or automatic", text));
}

std::vector<sync_kind> policies_of(std::string_view list) {
  std::vector<sync_kind> policies;
  for (const std::string& part : split(list)) {
    const std::size_t before = policies.size();
    for (const sync_kind kind : {sync_kind::stream, sync_kind::tile, sync_kind::row})
      if (part == name_of(kind)) policies.push_back(kind);
    if (policies.size() == before)
      throw invalid_argument(
          formatted("--policy: '{}' is none; choose from StreamSync, TileSync, RowSync", part));
  }
  return policies;
}

u32 samples_of(const common_options& options) {
  return count_of("--samples", options.samples, 100000);
}

// --- the virtual GPU ----------------------------------------------------------------------------

void virtual_gpu::resize(u32 sms) {
  const double share = static_cast<double>(sms) / gpu.sms;
  gpu.fp16_tflops *= share;
  gpu.hbm_gb_s *= share;
  gpu.sms = sms;
}

std::string virtual_gpu::text() const {
  const std::string name = std::string(gpu.name) + (altered ? ", altered," : "");
  if (gpu.sms == full_sms) return formatted("{} with {} SMs", name, gpu.sms);
  return formatted("{} with {} SMs (of {}, and their share of its bandwidth)", name, gpu.sms,
                   full_sms);
}

namespace {

void set_shared(sim::gpu& gpu, u32 bytes) {
  gpu.shared_per_sm = bytes;
  gpu.shared_per_block = bytes - std::min(bytes, gpu.shared_reserved);
}

/// Sets a number of the description by its name. False where there is none of that name.
bool set_number(sim::gpu& gpu, std::string_view name, double value) {
  const u32 whole = static_cast<u32>(std::clamp(value, 0.0, 4e6));
  const std::pair<std::string_view, u32 sim::gpu::*> counts[] = {
      {"threads", &sim::gpu::threads_per_sm},
      {"blocks", &sim::gpu::blocks_per_sm},
      {"registers", &sim::gpu::registers_per_sm},
      {"mhz", &sim::gpu::boost_mhz},
      {"cc", &sim::gpu::compute_capability}};
  for (const auto& [known, field] : counts)
    if (name == known) return gpu.*field = whole, true;
  for (const gpu_constant& constant : gpu_constants)
    if (name == constant.name) return gpu.*constant.field = whole, true;
  if (name == "tflops") return gpu.fp16_tflops = value, true;
  if (name == "gbs") return gpu.hbm_gb_s = value, true;
  if (name == "smem") return set_shared(gpu, whole * 1024), true;
  return false;
}

void set_number(virtual_gpu& made, std::string_view part) {
  const std::size_t equals = part.find('=');
  double value = 0;
  if (equals == std::string_view::npos || !parse(part.substr(equals + 1), value) || !(value >= 0))
    throw invalid_argument(
        formatted("--gpu: '{}' is not a number of a GPU; write e.g. sms=16", part));
  const std::string_view name = part.substr(0, equals);
  if (name == "sms") return;
  made.altered = true;
  if (!set_number(made.gpu, name, value))
    throw invalid_argument(formatted(
        "--gpu: '{}' is no number of a GPU; choose from sms, smem (KB an SM), threads, blocks and "
        "registers (an SM), mhz, tflops, gbs, cc, and the ..._ns of sim/gpu.hpp",
        name));
}

void set_name(virtual_gpu& made, const std::string& name) {
  try {
    made.gpu = sim::find_gpu(name);
  } catch (const invalid_argument& refusal) {
    throw invalid_argument("--gpu: " + std::string(refusal.what()) + ", or give numbers: sms=16");
  }
  made.full_sms = made.gpu.sms;
}

} // namespace

virtual_gpu virtual_gpu_of(const std::string& text, const sim::gpu& otherwise) {
  virtual_gpu made{otherwise, otherwise.sms};
  if (text.empty()) return made;
  std::vector<std::string> parts = split(text);
  if (parts.front().find('=') == std::string::npos) {
    set_name(made, parts.front());
    parts.erase(parts.begin());
  }
  for (const std::string& part : parts)
    if (part.starts_with("sms=")) {
      made.resize(count_of("--gpu sms", part.substr(4), 100000));
      made.sms_given = true;
    }
  for (const std::string& part : parts) set_number(made, part);
  return made;
}

} // namespace cusync::cli
