// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/any_dependence.hpp> // any_dependence
#include <cusync/sim/any_order.hpp>      // any_order
#include <cusync/sim/any_policy.hpp>     // any_policy
#include <cusync/sim/gpu.hpp>            // gpu, block_resources
#include <cusync/sim/schedule.hpp>       // gate_kind
#include <cusync/sim/tile_cost.hpp>      // tile_cost
#include <cusync/stage_ref.hpp>          // tile_source

#include <string> // string
#include <vector> // vector

namespace cusync::sim {

/// Memory that stages write or read. Only a buffer whose content from before the chain is read needs
/// a grid.
struct buffer_description {
  std::string name;
  tile_extent grid;
  element_extent tile{1, 1};
};

struct stage_description {
  std::string name;
  tile_extent grid;
  element_extent tile{1, 1}; ///< Elements of a tile, in the buffer that it writes.
  any_order order;
  u32 blocks = 0; ///< 0: one a tile.
  tile_source source = tile_source::block_index;
  block_resources block;
  tile_cost cost{.ns = 1000};
  std::string writes; ///< A buffer; empty: none that any other stage writes.
};

/// What a consumer tile reads of a producer's output, and how it waits for it.
struct dependence_description {
  std::string producer;
  std::string consumer;
  any_dependence reads;
  any_policy policy;
};

/// What a consumer tile reads of a buffer's content from before the chain.
struct initial_read_description {
  std::string buffer;
  std::string consumer;
  any_dependence reads;
};

/// A chain as data: what `cusync check` and `cusync simulate` read from a file. Its policies, orders
/// and dependences are the library's own, which kernels execute, or tables.
struct chain_description {
  std::string name;
  gpu device = find_gpu("H200");
  launch_mode mode = launch_mode::automatic;
  gate_kind gate = gate_kind::all_blocks;
  u32 slots = 0; ///< Blocks at once on the whole GPU, whatever they ask for; 0: as many as fit.
  std::vector<buffer_description> buffers;
  std::vector<stage_description> stages;
  std::vector<dependence_description> dependences;
  std::vector<initial_read_description> initial_reads;
};

} // namespace cusync::sim
