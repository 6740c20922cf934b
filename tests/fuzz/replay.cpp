// SPDX-License-Identifier: MIT
// usage: NAME_replay FILE_OR_FOLDER...
// Runs a fuzz target on files, without libFuzzer: whole, and cut off at a few places.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  constexpr std::size_t cuts = 32;
  for (std::size_t i = 0; i <= cuts; ++i) LLVMFuzzerTestOneInput(data, bytes.size() * i / cuts);
}

} // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      replay(argv[i]), ++files;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) replay(entry), ++files;
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
