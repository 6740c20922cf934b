// SPDX-License-Identifier: MIT
// usage: analyze_perf MB PLAIN_MB_S GZIP_MB_S
// Writes a trace of that size as the PyTorch profiler lays it out, reads it as plain text and from gzip,
// and fails below those rates, or where the memory follows the file instead of the kernels. Rates are
// megabytes (10^6) of JSON text a second, the best of three runs: a busy machine makes them lower.

#include "analyze/read_trace.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

using u64 = unsigned long long; // as printf has it

/// A few events of a training loop: operators, arrows, a launch and its kernel. The numbers differ in
/// each, as they do in a trace, so that gzip finds no more in them than in a real one.
std::string events_of(u64 i) {
  static const char* names[] = {
      "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::Half>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, "
      "3ul>)",
      "nvjet_sm90_hsh_192x128_64x5_1x2_h_bz_coopB_NNT",
      "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float, "
      "false>(int, "
      "float, c10::Half const*, c10::Half const*, c10::Half const*, float*, float*, c10::Half*)"};
  const auto noise = [i](u64 salt) { return (i + salt) * 2654435761u % 1000; };
  char text[4096];
  std::string all;
  const auto add = [&](int size) { all.append(text, static_cast<std::size_t>(size)); };
  for (u64 op = 0; op < 4; ++op)
    add(std::snprintf(
        text, sizeof text,
        "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op_%llu\", \"pid\": 419, "
        "\"tid\": 419,\n    \"ts\": %llu.%03llu, \"dur\": %llu.%03llu,\n    \"args\": {\n      "
        "\"External id\": %llu,\"Record function id\": 0, \"Ev Idx\": %llu, \"Sequence number\": "
        "%llu, \"Fwd thread id\": 0\n    }\n  },\n",
        op, 5137901305022ull + i * 40 + op, noise(op), 3 + noise(op + 9) / 100, noise(op + 7),
        i * 4 + op, i * 4 + op, i));
  add(std::snprintf(
      text, sizeof text,
      "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": "
      "419, \"tid\": 419,\n    \"ts\": %llu.%03llu, \"dur\": 5.%03llu,\n    \"args\": {\n      "
      "\"External id\": %llu, \"cbid\": 211, \"correlation\": %llu\n    }\n  },\n",
      5137901305026ull + i * 40, noise(3), noise(4), i * 4, i + 1));
  for (const char* phase : {"s", "f"})
    add(std::snprintf(text, sizeof text,
                      "  {\n    \"ph\": \"%s\", \"id\": %llu, \"pid\": 419, \"tid\": 419, \"ts\": "
                      "%llu.%03llu,\n   "
                      " \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n",
                      phase, i + 1, 5137901305026ull + i * 40, noise(3)));
  add(std::snprintf(text, sizeof text,
                    "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, "
                    "\"tid\": 7,\n    \"ts\": "
                    "%llu.%03llu, \"dur\": %llu.%03llu,\n    \"args\": {\n      \"External id\": "
                    "%llu,\n      \"queued\": 0, "
                    "\"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": %llu,\n "
                    "     \"registers per "
                    "thread\": 34,\n      \"shared memory\": 0,\n      \"blocks per SM\": "
                    "46.545456,\n      \"warps per SM\": "
                    "186.181824,\n      \"grid\": [%llu, 1, 1],\n      \"block\": [128, 1, 1],\n   "
                    "   \"est. achieved occupancy "
                    "%%\": 75\n    }\n  },\n",
                    names[i % 3], 5137901305040ull + i * 40, noise(5), 8 + noise(2) / 100, noise(6),
                    i * 4, i + 1, 6144 + i % 2));
  return all;
}

constexpr const char* head =
    "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"NVIDIA "
    "H200\", "
    "\"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 132}\n  ],\n  \"traceEvents\": [\n";
constexpr const char* tail = "  {\n    \"name\": \"end\", \"ph\": \"i\", \"ts\": 1\n  }\n  ]\n}\n";

/// Kernels in the file that this writes; its size goes to `bytes`.
u64 write(const std::string& plain, const std::string& packed, u64 megabytes, u64& bytes) {
  std::FILE* file = std::fopen(plain.c_str(), "wb");
  gzFile gzip = gzopen(packed.c_str(), "wb6");
  if (file == nullptr || gzip == nullptr) {
    std::fputs("analyze_perf: cannot write to the folder for temporary files\n", stderr);
    std::exit(2);
  }
  bytes = 0;
  const auto put = [&](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), file);
    gzwrite(gzip, text.data(), static_cast<unsigned>(text.size()));
    bytes += text.size();
  };
  put(head);
  u64 kernels = 0;
  while (bytes < megabytes * 1'000'000) put(events_of(kernels++));
  put(tail);
  std::fclose(file);
  gzclose(gzip);
  return kernels;
}

double rate_of(const std::string& path, u64 bytes, u64 kernels) {
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const auto begun = std::chrono::steady_clock::now();
    const cusync::analyze::trace read = cusync::analyze::read_trace(path);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (read.kernels.size() != kernels || read.calls.size() != kernels) {
      std::fprintf(stderr, "analyze_perf: %zu kernels read, not %llu\n", read.kernels.size(),
                   kernels);
      std::exit(1);
    }
    best = std::max(best, static_cast<double>(bytes) * 1e-6 / seconds);
  }
  return best;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

bool require(bool holds, const char* what, double value, const char* unit, double bound) {
  std::printf("%s: %.0f %s (bound %.0f)%s\n", what, value, unit, bound, holds ? "" : ": FAILED");
  return holds;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: analyze_perf MB PLAIN_MB_S GZIP_MB_S\n", stderr);
    return 2;
  }
  const auto folder =
      std::filesystem::temp_directory_path() / ("cusync_analyze_perf." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string plain = folder / "trace.json", packed = folder / "trace.json.gz";
  u64 bytes = 0;
  const u64 kernels = write(plain, packed, std::strtoull(argv[1], nullptr, 10), bytes);
  std::printf("%.0f MB of text, %.0f MB as gzip, %llu kernels\n", static_cast<double>(bytes) * 1e-6,
              static_cast<double>(std::filesystem::file_size(packed)) * 1e-6, kernels);
  const double plain_rate = rate_of(plain, bytes, kernels);
  const double gzip_rate = rate_of(packed, bytes, kernels);
  std::filesystem::remove_all(folder);
  // Vectors that grow hold their content two to three times; a kernel and its call are 128 bytes.
  const double most_megabytes = 32 + 400e-6 * static_cast<double>(kernels);
  const double plain_bound = std::strtod(argv[2], nullptr),
               gzip_bound = std::strtod(argv[3], nullptr);
  bool good = require(plain_rate >= plain_bound, "plain", plain_rate, "MB/s", plain_bound);
  good &= require(gzip_rate >= gzip_bound, "gzip", gzip_rate, "MB/s", gzip_bound);
  good &= require(peak_megabytes() <= most_megabytes, "peak memory", peak_megabytes(), "MB",
                  most_megabytes);
  return good ? 0 : 1;
}
