// SPDX-License-Identifier: MIT
#include "device_memory.cuh"
#include "gpu_part.hpp"
#include "nvml.hpp"

#include <string> // string, to_string

namespace cusync::cli {
namespace {

__global__ void works(u32* answer) { *answer = 42; }

cudaDeviceProp properties() {
  int device = 0;
  cudaDeviceProp found{};
  check(cudaGetDevice(&device), "find the current GPU");
  check(cudaGetDeviceProperties(&found, device), "read the GPU's properties");
  return found;
}

/// The address by which CUDA and NVML both know the GPU.
std::string pci_address() {
  int device = 0;
  char address[32] = {};
  check(cudaGetDevice(&device), "find the current GPU");
  check(cudaDeviceGetPCIBusId(address, sizeof address, device), "read the GPU's address");
  return address;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string value_or_dash(double value, const char* unit) {
  return value > 0 ? std::to_string(static_cast<int>(value)) + unit : "-";
}

/// The built-in GPU that the device's name contains ("NVIDIA A100-SXM4-80GB": "A100"), else an H200.
sim::gpu costs_of(const std::string& name) {
  for (const sim::gpu& known : sim::built_in_gpus) {
    const std::string model(known.name.substr(0, known.name.find(' ')));
    if (name.find(model) != std::string::npos) return known;
  }
  return sim::find_gpu("H200");
}

} // namespace

/// Not what CUDA counts but what works: a program without code for the GPU finds one, too.
std::string why_no_gpu() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(counted);
  if (count == 0) return "no GPU is here";
  try {
    const device_memory<u32> answer(1);
    works<<<1, 1>>>(answer.get());
    check(cudaGetLastError(), "launch a kernel");
    if (answer.read(nullptr).front() != 42) return "a kernel's result is wrong";
  } catch (const cuda_error& failure) {
    return std::string("the GPU does not work with this program: ") + failure.what();
  }
  return {};
}

facts gpu_facts() {
  const cudaDeviceProp gpu = properties();
  open_nvml(pci_address().c_str());
  int driver = 0, runtime = 0, khz = 0, device = 0;
  check(cudaGetDevice(&device), "find the current GPU");
  check(cudaDriverGetVersion(&driver), "read the driver's version");
  check(cudaRuntimeGetVersion(&runtime), "read CUDA's version");
  check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device), "read the GPU's clock");
  return {
      {"card", std::string(gpu.name) + ", " + std::to_string(gpu.multiProcessorCount) +
                   " SMs, sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor)},
      {"driver", driver_version() + " for CUDA " + version_text(driver) + "; built with CUDA " +
                     version_text(runtime)},
      {"clocks", value_or_dash(khz * 1e-3, " MHz") + " nominal, SM limit " +
                     value_or_dash(sm_clock_limit_mhz(), " MHz") + ", now " +
                     value_or_dash(sm_clock_mhz(), " MHz") + ", power limit " +
                     value_or_dash(power_limit_watts(), " W")},
  };
}

sim::gpu current_gpu() {
  const cudaDeviceProp here = properties();
  sim::gpu gpu = costs_of(here.name);
  gpu.compute_capability = static_cast<u32>(here.major * 10 + here.minor);
  gpu.sms = static_cast<u32>(here.multiProcessorCount);
  gpu.threads_per_sm = static_cast<u32>(here.maxThreadsPerMultiProcessor);
  gpu.blocks_per_sm = static_cast<u32>(here.maxBlocksPerMultiProcessor);
  gpu.registers_per_sm = static_cast<u32>(here.regsPerMultiprocessor);
  gpu.shared_per_sm = static_cast<u32>(here.sharedMemPerMultiprocessor);
  gpu.shared_per_block = static_cast<u32>(here.sharedMemPerBlockOptin);
  gpu.shared_reserved = static_cast<u32>(here.reservedSharedMemPerBlock);
  return gpu;
}

} // namespace cusync::cli
