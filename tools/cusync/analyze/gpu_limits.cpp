// SPDX-License-Identifier: MIT
#include "gpu_limits.hpp"
#include "kernel_name.hpp" // printable

#include <cctype>      // isdigit
#include <string_view> // string_view
#include <vector>      // vector

namespace cusync::analyze {
namespace {

/// "A100" of "A100 SXM4 80GB", "4090" of "RTX 4090": what tells GPUs apart.
std::string_view model_of(std::string_view name) {
  const std::size_t blank = name.find(' ');
  const std::string_view first = name.substr(0, blank);
  return first == "RTX" ? name.substr(blank + 1) : first;
}

/// Whether `name` has `model` as a word, or behind letters: GH200 is an H200.
bool names_model(std::string_view name, std::string_view model) {
  const std::size_t at = name.find(model);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + model.size();
  return end == name.size() || std::isalnum(static_cast<unsigned char>(name[end])) == 0;
}

const sim::gpu* built_in_named(std::string_view name) {
  for (const sim::gpu& candidate : sim::built_in_gpus)
    if (names_model(name, model_of(candidate.name))) return &candidate;
  return nullptr;
}

const sim::gpu* built_in_for(u32 capability) {
  for (const sim::gpu& candidate : sim::built_in_gpus)
    if (candidate.compute_capability == capability) return &candidate;
  return nullptr;
}

/// The CUDA programming guide's table; 0 for a capability that is not in it.
u32 blocks_per_sm_of(u32 capability) {
  switch (capability) {
  case 75:
  case 86:
  case 87:
    return 16;
  case 89:
  case 110:
  case 120:
  case 121:
    return 24;
  case 70:
  case 72:
  case 80:
  case 90:
  case 100:
  case 103:
    return 32;
  default:
    return 0;
  }
}

bool is_amd(std::string_view name) {
  return name.find("AMD") != std::string_view::npos || name.starts_with("gfx") ||
         name.find("Instinct") != std::string_view::npos;
}

/// Takes a number of the trace, or names what it lacks.
void take(u32& number, u32 recorded, const char* what, std::string& lacking) {
  if (recorded != 0)
    number = recorded;
  else
    lacking += (lacking.empty() ? "" : ", ") + std::string(what);
}

/// What no GPU has: a damaged trace.
bool is_possible(const sim::gpu& gpu) {
  return gpu.sms >= 1 && gpu.sms <= 400 && gpu.threads_per_sm >= 32 && gpu.threads_per_sm <= 4096 &&
         gpu.blocks_per_sm >= 1 && gpu.blocks_per_sm <= 32 && gpu.registers_per_sm <= 1 << 20 &&
         gpu.shared_per_sm <= 1 << 24 && gpu.shared_per_block <= 1 << 24;
}

} // namespace

gpu_limits limits_of(i64 id, const device_properties* device,
                     const std::optional<sim::gpu>& described) {
  gpu_limits made;
  made.id = id;
  const device_properties recorded = device != nullptr ? *device : device_properties{};
  made.name = printable(recorded.name);
  if (is_amd(recorded.name) || recorded.warp > sim::gpu::warp) {
    made.unknown = "it is an AMD GPU, whose occupancy rules are others";
    return made;
  }
  const u32 capability =
      recorded.major < 100 && recorded.minor < 10 ? recorded.major * 10 + recorded.minor : 0;
  const sim::gpu* base = described ? &*described : built_in_named(recorded.name);
  if (base == nullptr) base = built_in_for(capability);
  const bool complete = recorded.sms != 0 && recorded.threads_per_sm != 0 &&
                        recorded.registers_per_sm != 0 && recorded.shared_per_sm != 0 &&
                        recorded.shared_per_block != 0 && blocks_per_sm_of(capability) != 0;
  if (base == nullptr && !complete) {
    made.unknown = "the trace does not say what it can hold; name a GPU with --gpu";
    return made;
  }
  made.gpu = base != nullptr ? *base : sim::built_in_gpus[0];
  if (described) {
    made.from = "limits as given by --gpu";
    return made;
  }
  std::string lacking;
  if (capability != 0) made.gpu.compute_capability = capability;
  take(made.gpu.sms, recorded.sms, "SMs", lacking);
  take(made.gpu.threads_per_sm, recorded.threads_per_sm, "threads", lacking);
  take(made.gpu.registers_per_sm, recorded.registers_per_sm, "registers", lacking);
  take(made.gpu.shared_per_sm, recorded.shared_per_sm, "shared memory", lacking);
  take(made.gpu.shared_per_block, recorded.shared_per_block, "shared memory a block", lacking);
  const u32 blocks =
      recorded.blocks_per_sm != 0 ? recorded.blocks_per_sm : blocks_per_sm_of(capability);
  if (recorded.blocks_per_sm == 0) lacking += (lacking.empty() ? "" : ", ") + std::string("blocks");
  if (blocks != 0) made.gpu.blocks_per_sm = blocks;
  made.from = lacking.empty()   ? "limits from the trace"
              : base == nullptr ? "limits from the trace, blocks an SM by compute capability"
                                : "limits from the trace, those that it lacks (" + lacking +
                                      ") of the built-in " + std::string(base->name);
  if (!is_possible(made.gpu))
    made.unknown = "the trace's limits are not those of a GPU; name one with --gpu";
  return made;
}

} // namespace cusync::analyze
