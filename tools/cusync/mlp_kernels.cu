// SPDX-License-Identifier: MIT
#include "gpu_timing.cuh"
#include "mlp_gpu.cuh"

#include <cusync/kernels/gemm.cuh> // gemm, plain_stage

#include <algorithm> // min_element

namespace cusync::cli {
namespace {

/// The baseline, and all other kernels that wait for nothing.
template <class Tile>
using usual_config = typename Tile::template config<load_order::weights_first>;

/// As a chain sets its kernels up.
template <class Config> auto plain_kernel() {
  const auto kernel = gemm<Config, plain_stage<>>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(Config::shared_bytes)),
        "set the plain GEMM's shared memory");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared),
        "set the plain GEMM's carve-out");
  return kernel;
}

template <class Tile> gpu_launch plain(const mlp_data& data) {
  using config = usual_config<Tile>;
  const auto kernel = plain_kernel<config>();
  return {[=, first = data.first(), second = data.second()](cudaStream_t stream) {
    for (const gemm_arguments& args : {first, second}) {
      const tile_extent grid = gemm_grid(args.m, args.n, config::tile);
      kernel<<<static_cast<u32>(grid.count()), config::threads, config::shared_bytes, stream>>>(
          args, plain_stage<>{grid});
    }
    check(cudaGetLastError(), "launch the plain GEMM");
  }};
}

template <class Config, class Stage>
void bind(gpu_chain& chain, Stage& stage, const gemm_arguments& args) {
  require_valid(args, Config::tile);
  using ref = typename Stage::template ref<cuda_backend>;
  auto kernel =
      chain.chain().kernel(stage, gemm<Config, ref>, dim3(Config::threads), Config::shared_bytes);
  chain.add(kernel(args));
}

template <class Tile, load_order Loads, class Policy>
gpu_launch chained(launch_mode mode, bool w, const mlp_data& data) {
  auto chain = std::make_shared<gpu_chain>(mode, w);
  auto [first, second] =
      declare_mlp<Policy>(chain->chain(), data.shape(), usual_config<Tile>::tile);
  bind<usual_config<Tile>>(*chain, first, data.first());
  bind<typename Tile::template config<Loads>>(*chain, second, data.second());
  return launch_of(chain);
}

template <class Tile, class Policy>
gpu_launch chained(const sync_choice& choice, launch_mode mode, const mlp_data& data) {
  return choice.r ? chained<Tile, load_order::weights_first, Policy>(mode, choice.w, data)
                  : chained<Tile, load_order::wait_first, Policy>(mode, choice.w, data);
}

/// Calls `visit` with the kernel that `tile` describes.
template <class Visit> void with_tile(const tile_info& tile, const Visit& visit) {
  for_each_tile([&](auto kernel) {
    if (info_of(kernel) == tile) visit(kernel);
  });
}

} // namespace

gpu_launch make_mlp(const tile_info& tile, const sync_choice& choice, launch_mode mode,
                    const mlp_data& data) {
  gpu_launch made;
  with_tile(tile, [&](auto kernel) {
    using tile_type = decltype(kernel);
    if (choice.baseline())
      made = plain<tile_type>(data);
    else if (choice.policy == sync_kind::tile)
      made = chained<tile_type, TileSync>(choice, mode, data);
    else
      made = chained<tile_type, RowSync>(choice, mode, data);
  });
  return made;
}

u32 blocks_per_sm(const tile_info& tile) {
  int blocks = 0;
  with_tile(tile, [&](auto kernel) {
    using config = usual_config<decltype(kernel)>;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain_kernel<config>(),
                                                        static_cast<int>(config::threads),
                                                        config::shared_bytes),
          "read the occupancy of the GEMM");
  });
  return static_cast<u32>(blocks);
}

tile_info fastest_tile(const mlp_data& data) {
  const std::vector<tile_info> tiles = all_tiles();
  std::vector<contender> contenders;
  for (const tile_info& tile : tiles)
    contenders.push_back({tile.name(), make_mlp(tile, {}, launch_mode::serial, data).enqueue});
  const std::vector<timing> times =
      time_interleaved(contenders, 10, runs_a_sample(contenders.front()));
  const auto faster = [](const timing& a, const timing& b) { return a.median() < b.median(); };
  return tiles[static_cast<std::size_t>(std::min_element(times.begin(), times.end(), faster) -
                                        times.begin())];
}

} // namespace cusync::cli
