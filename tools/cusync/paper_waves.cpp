// SPDX-License-Identifier: MIT
#include "waves.hpp"

// Inputs alone. What the paper prints stands in the test that compares it (tests/data/paper_waves.json).

namespace cusync::cli {
namespace {

waves_row two(const char* batch, u64 per_wave, tile_extent first, tile_extent second) {
  return {batch, {{first, per_wave}, {second, per_wave}}};
}

/// 80 SMs, two blocks each.
const std::vector<waves_row> introduction = {
    two("256", 160, {1, 96, 2}, {1, 96, 1}),
    two("512", 160, {2, 48, 2}, {2, 96, 1}),
    two("1024", 160, {4, 48, 1}, {4, 96, 1}),
};

const std::vector<waves_row> mlp = {
    two("1-64", 240, {1, 24, 3}, {1, 48, 1}), two("128", 240, {1, 48, 2}, {1, 96, 1}),
    two("256", 160, {1, 96, 2}, {1, 96, 1}),  two("512", 160, {2, 48, 2}, {2, 96, 1}),
    two("1024", 160, {4, 48, 1}, {4, 96, 1}), two("2048", 160, {8, 48, 1}, {8, 96, 1}),
};

/// Two equal convolutions. The paper states the grid's x alone: the other factor follows from the
/// blocks of its table of optimisations, and from its 320 blocks per wave.
waves_row convolutions(const char* batch, u32 pixels, u32 others) {
  return two(batch, 320, {pixels, others, 1}, {pixels, others, 1});
}

const std::vector<waves_row> conv2d = {
    convolutions("1", 13, 6),   convolutions("4", 49, 4),   convolutions("8", 98, 2),
    convolutions("12", 147, 2), convolutions("16", 196, 2), convolutions("20", 245, 2),
    convolutions("24", 294, 2), convolutions("28", 343, 2), convolutions("32", 392, 2),
};

} // namespace

std::vector<std::pair<std::string, table>> paper_tables() {
  return {
      {"Utilisation of two dependent GEMMs of GPT-3", waves_table("batch", introduction)},
      {"Both GEMMs of GPT-3's MLP", waves_table("batch", mlp)},
      {"Two Conv2D of 128 channels", waves_table("batch", conv2d)},
  };
}

} // namespace cusync::cli
