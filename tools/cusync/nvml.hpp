// SPDX-License-Identifier: MIT
#pragma once

#include <string> // string

namespace cusync::cli {

// What only the driver's management library tells: found at run time, so that the program starts
// without it. Each is 0 where it is missing or does not answer.

double sm_clock_mhz(); ///< Of the GPU that `open_nvml` named, at this moment.
double sm_clock_limit_mhz();
double power_limit_watts();
std::string driver_version(); ///< Empty where it is missing.

/// Chooses the GPU by its PCI address, as CUDA gives it.
void open_nvml(const char* pci_bus_id);

} // namespace cusync::cli
