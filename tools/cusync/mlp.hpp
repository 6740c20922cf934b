// SPDX-License-Identifier: MIT
#pragma once

#include "policies.hpp"

#include <cusync/chain.hpp>                     // chain, CuStage
#include <cusync/dependence/row_dependence.hpp> // row_dependence
#include <cusync/errors.hpp>                    // invalid_argument
#include <cusync/kernels/gemm_arguments.hpp>    // gemm_arguments, gemm_tile, gemm_grid
#include <cusync/kernels/gemm_config.hpp>       // gemm_64x64x64 and others
#include <cusync/order/row_major.hpp>           // RowMajor

#include <array>       // array
#include <string>      // string
#include <string_view> // string_view
#include <utility>     // pair
#include <vector>      // vector

namespace cusync::cli {

/// XW1 = GeLU(X W1), Y = XW1 W2: X is batch x hidden, XW1 batch x columns, Y batch x hidden.
struct mlp_shape {
  u32 batch = 0;
  u32 hidden = 0;
  u32 columns = 0;

  gemm_arguments first(const half* x, const half* w1, half* xw1) const {
    return {x, w1, xw1, batch, columns, hidden, activation::gelu};
  }
  gemm_arguments second(const half* xw1, const half* w2, half* y) const {
    return {xw1, w2, y, batch, hidden, columns, activation::none};
  }
  /// What the second GEMM reads of the first, both with the same tile.
  row_dependence between(gemm_tile tile) const {
    return {
        {batch, columns}, {tile.m, tile.n}, tile.m, tile.k, gemm_grid(batch, hidden, tile).cols};
  }
};

/// A transformer's MLP on one of its tensor-parallel shards.
struct mlp_model {
  std::string_view name;
  u32 hidden;
  u32 columns;
};
inline constexpr mlp_model mlp_models[] = {{"gpt3", 12288, 6144}}; // 145B, one of eight shards

inline const mlp_model& mlp_model_of(std::string_view name) {
  for (const mlp_model& model : mlp_models)
    if (name == model.name) return model;
  throw invalid_argument("--model: '" + std::string(name) + "' is none; choose gpt3");
}

// --- tiles --------------------------------------------------------------------------------------

/// The kernels that `run mlp` chooses from.
struct tile_64x64x64 {
  template <load_order Loads> using config = gemm_64x64x64<Loads>;
};
struct tile_64x128x64 {
  template <load_order Loads> using config = gemm_64x128x64<Loads>;
};
struct tile_128x128x32 {
  template <load_order Loads> using config = gemm_128x128x32<Loads>;
};
struct tile_128x256x32 {
  template <load_order Loads> using config = gemm_128x256x32<Loads>;
};

/// Calls `visit` with each kernel.
template <class Visit> void for_each_tile(const Visit& visit) {
  visit(tile_64x64x64{});
  visit(tile_64x128x64{});
  visit(tile_128x128x32{});
  visit(tile_128x256x32{});
}

/// A kernel as a value.
struct tile_info {
  gemm_tile tile;
  u32 threads = 0;
  u32 shared_bytes = 0;
  u32 blocks_per_sm = 0;
  u32 ahead = 0; ///< k-tiles whose loads are under way before the first product.

  std::string name() const {
    return std::to_string(tile.m) + "x" + std::to_string(tile.n) + "x" + std::to_string(tile.k);
  }
  friend bool operator==(const tile_info& a, const tile_info& b) { return a.name() == b.name(); }
};

template <class Tile> tile_info info_of(Tile) {
  using config = typename Tile::template config<load_order::wait_first>;
  return {config::tile, config::threads, config::shared_bytes, config::blocks_per_sm,
          config::stages - 1};
}

inline std::vector<tile_info> all_tiles() {
  std::vector<tile_info> tiles;
  for_each_tile([&](auto tile) { tiles.push_back(info_of(tile)); });
  return tiles;
}

inline tile_info tile_of(std::string_view name) {
  std::string known;
  for (const tile_info& tile : all_tiles()) {
    if (tile.name() == name) return tile;
    known += ", " + tile.name();
  }
  throw invalid_argument("--tile: '" + std::string(name) + "' is none; choose auto" + known);
}

// --- the chain ----------------------------------------------------------------------------------

template <class Policy> using mlp_first = CuStage<RowMajor, inputs<>, outputs<Policy>>;
template <class Policy>
using mlp_second = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;

/// Declares both stages, on a GPU's chain or on the virtual one's.
template <class Policy>
std::pair<mlp_first<Policy>&, mlp_second<Policy>&> declare_mlp(chain& chain, const mlp_shape& shape,
                                                               gemm_tile tile) {
  auto& first = chain.stage<mlp_first<Policy>>(
      "GeMM 1", gemm_grid(shape.batch, shape.columns, tile), RowMajor{});
  auto& second = chain.stage<mlp_second<Policy>>(
      "GeMM 2", gemm_grid(shape.batch, shape.hidden, tile), RowMajor{});
  chain.dependency<Policy>(first, second, gemm_a, shape.between(tile));
  return {first, second};
}

// --- what is asked for and what is found ---------------------------------------------------------

struct mlp_request {
  mlp_model model{};
  u32 scale = 1; ///< Both extents of the model are divided by it.
  std::vector<u32> batches;
  std::vector<tile_info> tiles; ///< Empty: chosen for each batch.
  std::vector<sync_kind> policies;
  launch_mode mode = launch_mode::automatic;
  u32 samples = 30;
  u64 seed = 1;

  mlp_shape shape(u32 batch) const { return {batch, model.hidden / scale, model.columns / scale}; }
};

/// One row of the table.
struct mlp_row {
  sync_choice choice;
  launch_mode mode = launch_mode::serial;
  bool proved = true;                ///< Of W: without the gate it cannot hang.
  double us = 0;                     ///< 0: not run.
  double low = 0, high = 0, mhz = 0; ///< On a GPU.
  u64 wrong = 0; ///< Elements beyond the error bound, NaN included, of all checked runs.
};

/// All rows of one batch and tile.
struct mlp_batch {
  mlp_shape shape;
  tile_info tile;
  std::array<u64, 2> blocks_per_wave{};
  u64 checked = 0; ///< Elements a row.
  std::vector<mlp_row> rows;
  std::vector<std::string> notes;

  tile_extent grid(u32 stage) const {
    return gemm_grid(shape.batch, stage == 0 ? shape.columns : shape.hidden, tile.tile);
  }
  double waves(u32 stage) const {
    return static_cast<double>(grid(stage).count()) / static_cast<double>(blocks_per_wave[stage]);
  }
};

} // namespace cusync::cli
