// SPDX-License-Identifier: MIT
#include "fuzz_target.hpp"

#include "analyze/nsight_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cusync::analyze;
  const std::string_view image(reinterpret_cast<const char*>(data), size);
  analyse_or_refuse([image] { return read_nsight_image(image); });
  return 0;
}
