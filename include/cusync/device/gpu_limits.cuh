// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/device/cuda_error.cuh> // check
#include <cusync/device/stage_call.cuh> // kernel_binding
#include <cusync/errors.hpp>            // invalid_argument
#include <cusync/gate.hpp>              // block_footprint, sm_capacity, single_wave

#include <cuda_runtime_api.h>

#include <algorithm> // min
#include <string>    // string, to_string

namespace cusync::detail {

/// The GPU that is current at construction: what it holds, and what a kernel's block takes of it.
class gpu_limits {
public:
  gpu_limits() {
    check(cudaGetDevice(&device_), "find the current device");
    check(cudaGetDeviceProperties(&gpu_, device_), "read the device's properties");
  }

  std::string name() const { return gpu_.name; }
  bool has_dependent_launch() const { return gpu_.major >= 9; }

  void require_current() const {
    int current = 0;
    check(cudaGetDevice(&current), "find the current device");
    if (current != device_)
      throw invalid_argument("chain belongs to device " + std::to_string(device_) + ", device " +
                             std::to_string(current) + " is current; call cudaSetDevice(" +
                             std::to_string(device_) + ") first");
  }

  /// Throws `invalid_argument` where no SM can hold a block of the kernel.
  void require_block(const kernel_binding& kernel) const {
    const std::string stage = "stage '" + kernel.stage->name() + "': ";
    const u32 most = static_cast<u32>(kernel.attributes.maxThreadsPerBlock);
    if (threads_of(kernel) == 0 || threads_of(kernel) > most)
      throw invalid_argument(stage + std::to_string(threads_of(kernel)) +
                             " threads a block; its kernel takes 1 to " + std::to_string(most));
    const u64 shared = kernel.shared_bytes + kernel.attributes.sharedSizeBytes;
    if (shared > gpu_.sharedMemPerBlockOptin)
      throw invalid_argument(stage + std::to_string(shared) + " bytes of shared memory a block; " +
                             name() + " has " + std::to_string(gpu_.sharedMemPerBlockOptin) +
                             "; use a smaller tile or fewer pipeline stages");
  }

  int most_dynamic_shared_bytes(const kernel_binding& kernel) const {
    return static_cast<int>(gpu_.sharedMemPerBlockOptin - kernel.attributes.sharedSizeBytes);
  }

  /// Blocks of the kernel that an SM holds at once.
  u32 occupancy(const kernel_binding& kernel) const {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, kernel.function, static_cast<int>(threads_of(kernel)), kernel.shared_bytes),
          "read the occupancy of stage '" + kernel.stage->name() + "'");
    return static_cast<u32>(blocks);
  }

  /// The part of an SM's shared memory, in percent, that the kernel needs for its full occupancy.
  u32 shared_percent(const kernel_binding& kernel) const {
    const u64 bytes = u64{footprint(kernel).shared_bytes} * occupancy(kernel) * 100;
    const u64 all = gpu_.sharedMemPerMultiprocessor;
    return static_cast<u32>(std::min<u64>(100, (bytes + all - 1) / all));
  }

  /// A gate that takes a producer block's place could keep it out on a GPU of few SMs.
  bool gate_fits_beside(const kernel_binding& kernel) const {
    return fit_together(capacity(), footprint(kernel), 1, footprint(1, 64, 0));
  }

  /// gate.hpp's proof, from the very kernels.
  bool gate_needless(const kernel_binding& producer, const kernel_binding& consumer) const {
    const u32 sms = static_cast<u32>(gpu_.multiProcessorCount);
    const u64 waiting = consumer.stage->blocks();
    return single_wave(sms, occupancy(producer), occupancy(consumer), producer.stage->blocks(),
                       waiting) &&
           live_without_gate(sms, capacity(), footprint(producer), footprint(consumer), waiting);
  }

private:
  static u32 threads_of(const kernel_binding& kernel) {
    const u64 threads = u64{kernel.block.x} * kernel.block.y * kernel.block.z;
    return static_cast<u32>(std::min<u64>(threads, 0xffffffff));
  }

  sm_capacity capacity() const {
    return {static_cast<u32>(gpu_.maxBlocksPerMultiProcessor),
            static_cast<u32>(gpu_.maxThreadsPerMultiProcessor),
            static_cast<u32>(gpu_.regsPerMultiprocessor),
            static_cast<u32>(gpu_.sharedMemPerMultiprocessor)};
  }

  /// Rounded up as the SM hands it out: warps by 4, registers by 256 a warp, shared memory by 128.
  block_footprint footprint(u32 threads, u32 registers, u64 shared) const {
    const u32 warps = ceil_div(ceil_div(threads, 32), 4) * 4;
    const u64 with_reserve = (shared + gpu_.reservedSharedMemPerBlock + 127) / 128 * 128;
    return {warps * 32, warps * ceil_div(registers * 32, 256) * 256,
            static_cast<u32>(with_reserve)};
  }
  block_footprint footprint(const kernel_binding& kernel) const {
    return footprint(threads_of(kernel), static_cast<u32>(kernel.attributes.numRegs),
                     kernel.shared_bytes + kernel.attributes.sharedSizeBytes);
  }

  int device_ = 0;
  cudaDeviceProp gpu_{};
};

} // namespace cusync::detail
