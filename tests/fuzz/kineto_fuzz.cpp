// SPDX-License-Identifier: MIT
#include "fuzz_target.hpp"

#include "analyze/kineto_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cusync::analyze;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  analyse_or_refuse([text] {
    text_source source(text);
    return text.starts_with("\x1f\x8b") ? read_kineto(*unpacked(source)) : read_kineto(source);
  });
  return 0;
}
