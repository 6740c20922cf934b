// SPDX-License-Identifier: MIT
#include "nvml.hpp"

#include <dlfcn.h> // dlopen, dlsym

namespace cusync::cli {
namespace {

/// The part of nvml.h that is used: its types and values are stable across drivers.
struct library {
  void* device = nullptr;
  int (*clock)(void*, int kind, unsigned* mhz) = nullptr;
  int (*clock_limit)(void*, int kind, unsigned* mhz) = nullptr;
  int (*power_limit)(void*, unsigned* milliwatts) = nullptr;
  int (*driver)(char* text, unsigned size) = nullptr;
};
constexpr int success = 0;
constexpr int sm_clock = 1;

library nvml;

template <class Function> bool find(void* from, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(from, name));
  return function != nullptr;
}

} // namespace

void open_nvml(const char* pci_bus_id) {
  void* file = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (file == nullptr) return;
  int (*init)() = nullptr;
  int (*by_address)(const char*, void**) = nullptr;
  library found;
  if (!find(file, "nvmlInit_v2", init) ||
      !find(file, "nvmlDeviceGetHandleByPciBusId_v2", by_address) ||
      !find(file, "nvmlDeviceGetClockInfo", found.clock) ||
      !find(file, "nvmlDeviceGetMaxClockInfo", found.clock_limit) ||
      !find(file, "nvmlDeviceGetEnforcedPowerLimit", found.power_limit) ||
      !find(file, "nvmlSystemGetDriverVersion", found.driver))
    return;
  if (init() == success && by_address(pci_bus_id, &found.device) == success) nvml = found;
}

double sm_clock_mhz() {
  unsigned mhz = 0;
  return nvml.device != nullptr && nvml.clock(nvml.device, sm_clock, &mhz) == success ? mhz : 0;
}

double sm_clock_limit_mhz() {
  unsigned mhz = 0;
  return nvml.device != nullptr && nvml.clock_limit(nvml.device, sm_clock, &mhz) == success ? mhz
                                                                                            : 0;
}

double power_limit_watts() {
  unsigned milliwatts = 0;
  return nvml.device != nullptr && nvml.power_limit(nvml.device, &milliwatts) == success
             ? 1e-3 * milliwatts
             : 0;
}

std::string driver_version() {
  char text[80] = {};
  return nvml.device != nullptr && nvml.driver(text, sizeof text) == success ? text : "";
}

} // namespace cusync::cli
