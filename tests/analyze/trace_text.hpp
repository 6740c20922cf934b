// SPDX-License-Identifier: MIT
#pragma once

#include "analyze/analysis.hpp"
#include "analyze/kineto_reader.hpp"
#include "analyze/read_trace.hpp"

#include <string> // string

namespace cusync::analyze {

inline const std::string traces = CUSYNC_TEST_DATA "/traces/";

/// A trace in which only what a test is about differs from the usual. Times are microseconds.
struct text_kernel {
  std::string name = "kernel";
  std::string start = "100", duration = "10";
  std::string grid = "[132, 1, 1]", block = "[1024, 1, 1]";
  int registers = 32, shared = 0, stream = 7, device = 0, correlation = 0;

  std::string json() const {
    return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" +
           start + R"(, "dur": )" + duration + R"(, "args": {"device": )" + std::to_string(device) +
           R"(, "context": 1, "stream": )" + std::to_string(stream) + R"(, "correlation": )" +
           std::to_string(correlation) + R"(, "registers per thread": )" +
           std::to_string(registers) + R"(, "shared memory": )" + std::to_string(shared) +
           R"(, "grid": )" + grid + R"(, "block": )" + block + "}}";
  }
};

inline std::string call_json(int correlation, double start, double duration,
                             const std::string& name = "cudaLaunchKernel") {
  return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name +
         R"(", "pid": 9, "tid": 9, "ts": )" + std::to_string(start) + R"(, "dur": )" +
         std::to_string(duration) + R"(, "args": {"correlation": )" + std::to_string(correlation) +
         "}}";
}

inline constexpr const char* h200_properties =
    R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32,
    "sharedMemPerMultiprocessor": 233472, "sharedMemPerBlockOptin": 232448}])";

inline std::string trace_json(const std::string& events,
                              const std::string& properties = h200_properties) {
  return R"({"schemaVersion": 1, "deviceProperties": )" + properties + R"(, "traceEvents": [)" +
         events + "]}";
}

inline trace read_text(const std::string& text) {
  text_source source(text);
  return read_kineto(source);
}

inline analysis analyse_events(const std::string& events) {
  return analyse(read_text(trace_json(events)));
}

} // namespace cusync::analyze
