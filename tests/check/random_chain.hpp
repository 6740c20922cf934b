// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/chain_description.hpp> // chain_description
#include <cusync/sim/check_report.hpp>      // property
#include <cusync/sim/schedule.hpp>          // random_source

#include <algorithm> // min, max, swap
#include <array>     // array
#include <string>    // string, to_string
#include <vector>    // vector

namespace cusync::test {

/// What may be wrong with a chain on purpose.
enum class fault { none, wait_dropped, threshold_off, order_repeated, buffer_reused, gate_early };
inline constexpr u32 faults = 6;

constexpr const char* name_of(fault of) {
  constexpr const char* names[faults] = {"none",           "wait dropped",  "threshold off by one",
                                         "order repeated", "buffer reused", "gate opened early"};
  return names[static_cast<u32>(of)];
}

/// What refutes a chain for it.
constexpr sim::property property_of(fault of) {
  constexpr sim::property properties[] = {sim::property::coverage,   sim::property::coverage,
                                          sim::property::thresholds, sim::property::tiles,
                                          sim::property::overwrites, sim::property::liveness};
  return properties[static_cast<u32>(of)];
}

/// A small chain: up to 3 stages of up to 4 tiles, on up to 3 slots.
struct small_chain {
  sim::chain_description chain;
  launch_mode mode = launch_mode::serial;
  fault planted = fault::none;
};

class chain_maker {
public:
  explicit chain_maker(u64 seed) : random_(seed) {}

  small_chain make() {
    small_chain made;
    const fault wanted = random_.below(2) == 0 ? fault::none : static_cast<fault>(1 + below(5));
    made.mode = mode_for(wanted);
    sim::chain_description& chain = made.chain;
    chain.slots = 1 + below(3);
    chain.gate = sim::gate_kind::all_blocks;
    dense_ = below(4) == 0;
    const u32 stages = dense_ ? 3 : wanted == fault::none ? 1 + below(3) : 2 + below(2);
    for (u32 s = 0; s < stages; ++s) chain.stages.push_back(stage(s));
    for (u32 p = 0; p < stages; ++p)
      for (u32 c = p + 1; c < stages; ++c)
        if (dense_ ? c == p + 1 : below(4) != 0) connect(chain, p, c);
    if (wanted != fault::none && chain.dependences.empty()) connect(chain, 0, 1);
    if (below(3) == 0) read_initially(chain);
    if (dense_) { // a buffer that is written again, behind all who read it or nearly so
      declare(chain);
      chain.stages.front().writes = chain.stages.back().writes = chain.buffers.front().name;
    }
    if (plant(wanted, made)) made.planted = wanted;
    return made;
  }

private:
  u32 below(u32 bound) { return random_.below(bound); }

  launch_mode mode_for(fault wanted) {
    if (wanted == fault::gate_early) return launch_mode::streams;
    const u32 pick = below(wanted == fault::none ? 9 : 8);
    return pick == 8 ? launch_mode::serial : pick < 4 ? launch_mode::pdl : launch_mode::streams;
  }

  // --- stages -------------------------------------------------------------------------------------

  tile_extent grid() {
    constexpr tile_extent grids[] = {{1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {1, 3, 1}, {3, 1, 1},
                                     {2, 2, 1}, {1, 4, 1}, {4, 1, 1}, {1, 2, 2}, {1, 1, 2},
                                     {2, 2, 1}, {2, 1, 2}, {1, 4, 1}, {2, 2, 1}};
    return grids[below(std::size(grids))];
  }

  sim::stage_description stage(u32 s) {
    sim::stage_description made;
    made.name = std::string(1, static_cast<char>('a' + s));
    made.grid = grid();
    made.tile = {1 + (below(4) == 0 ? 1u : 0u), 1 + (below(4) == 0 ? 1u : 0u)};
    const u32 tiles = static_cast<u32>(made.grid.count());
    if (below(3) == 0) {
      made.source = tile_source::counter;
      made.blocks = 1 + below(3);
    } else if (below(4) == 0) {
      made.blocks = tiles + 1; // a grid that was rounded up
    }
    made.order = order(made.grid);
    return made;
  }

  sim::any_order order(tile_extent of) {
    switch (below(4)) {
    case 0:
      return {RowMajor{}};
    case 1:
      return {ColumnMajor{}};
    case 2:
      return {StridedRowMajor{1 + below(3)}};
    default:
      return {shuffled(of)};
    }
  }
  sim::table_order shuffled(tile_extent of) {
    sim::table_order table;
    for (u32 i = 0; i < of.count(); ++i) table.tiles.push_back(RowMajor{}.tile_at(i, of));
    for (u32 i = static_cast<u32>(of.count()); i > 1; --i)
      std::swap(table.tiles[i - 1], table.tiles[below(i)]);
    return table;
  }

  // --- edges --------------------------------------------------------------------------------------

  /// Some columns of some rows, or none.
  tile_range range(tile_extent of) {
    if (below(12) == 0) return {};
    tile_range made;
    made.row_begin = below(of.rows);
    made.row_end = made.row_begin + 1 + below(of.rows - made.row_begin);
    made.col_begin = below(of.cols);
    made.col_end = made.col_begin + 1 + below(of.cols - made.col_begin);
    made.col_stride = 1 + below(2);
    return made;
  }

  sim::any_dependence reads(tile_extent from, tile_extent to) {
    if (below(4) == 0 || (dense_ && below(8) != 0)) return {grid_dependence{from, to}};
    if (below(3) == 0 && from.rows == to.rows)
      return {row_dependence{
          {from.rows, from.cols}, {1, 1}, 1, 1 + below(2), to.cols, from.slices, to.slices}};
    sim::table_dependence table{from, to, {}};
    for (u32 i = 0; i < to.count(); ++i) {
      table.steps_of.emplace_back();
      for (u32 steps = 1 + below(2); steps != 0; --steps)
        table.steps_of.back().push_back(range(from));
    }
    return {table};
  }

  sim::any_policy policy(tile_extent from) {
    switch (below(7)) {
    case 0:
      return {GridSync{from}};
    case 1:
      return {TileSync{from}};
    case 2:
      return {RowSync{from}};
    case 3:
      return {BatchedRowSync{from, 1 + below(3)}};
    case 4:
      return {StridedSync{from, 1 + below(3)}};
    default:
      return {table(from)};
    }
  }
  /// Any tile may post any semaphore; as many posts are expected as there will be.
  sim::table_policy table(tile_extent from) {
    sim::table_policy made{from, {}, std::vector<u32>(1 + below(3), 0), {}};
    for (u32 i = 0; i < from.count(); ++i) {
      made.semaphores.push_back(below(static_cast<u32>(made.posts.size())));
      ++made.posts[made.semaphores.back()];
    }
    return made;
  }

  void connect(sim::chain_description& chain, u32 p, u32 c) {
    const tile_extent from = chain.stages[p].grid;
    chain.dependences.push_back({chain.stages[p].name, chain.stages[c].name,
                                 reads(from, chain.stages[c].grid), policy(from)});
  }

  // --- buffers ------------------------------------------------------------------------------------

  void read_initially(sim::chain_description& chain) {
    declare(chain);
    sim::buffer_description& buffer = chain.buffers.front();
    buffer.grid = grid();
    buffer.grid.slices = 1;
    const sim::stage_description& reader =
        chain.stages[below(static_cast<u32>(chain.stages.size()))];
    chain.initial_reads.push_back({buffer.name, reader.name, reads(buffer.grid, reader.grid)});
    if (below(2) == 0) chain.stages.back().writes = buffer.name;
  }
  static void declare(sim::chain_description& chain) {
    if (chain.buffers.empty()) chain.buffers.push_back({"X", {1, 1, 1}, {1, 1}});
  }

  // --- faults -------------------------------------------------------------------------------------

  bool plant(fault wanted, small_chain& made) {
    sim::chain_description& chain = made.chain;
    switch (wanted) {
    case fault::wait_dropped:
      return drop_wait(chain);
    case fault::threshold_off:
      return change_threshold(chain);
    case fault::order_repeated:
      return repeat(chain);
    case fault::buffer_reused: {
      declare(chain);
      const u32 stages = static_cast<u32>(chain.stages.size());
      const u32 first = below(stages - 1);
      chain.stages[first].writes = chain.buffers.front().name;
      chain.stages[first + 1 + below(stages - 1 - first)].writes = chain.buffers.front().name;
      return true;
    }
    case fault::gate_early:
      chain.gate = below(3) == 0 ? sim::gate_kind::none : sim::gate_kind::first_block;
      return true;
    case fault::none:
      break;
    }
    return false;
  }

  /// The edge's policy as a table that also says what each consumer tile waits for.
  static sim::table_policy written_out(const sim::dependence_description& edge) {
    const tile_extent from = edge.reads.producer(), to = edge.reads.consumer();
    sim::table_policy made{from, {}, {}, {}};
    for (u32 i = 0; i < edge.policy.semaphore_count(); ++i)
      made.posts.push_back(edge.policy.posts_expected(i));
    for (u32 i = 0; i < from.count(); ++i)
      made.semaphores.push_back(edge.policy.semaphore_of(tile_of(i, from)));
    for (u32 i = 0; i < to.count(); ++i)
      made.waits.push_back(
          edge.policy.guards(edge.reads.reads(tile_of(i, to)), tile_of(i, to), to));
    return made;
  }

  sim::dependence_description& any_edge(sim::chain_description& chain) {
    return chain.dependences[below(static_cast<u32>(chain.dependences.size()))];
  }

  bool drop_wait(sim::chain_description& chain) {
    sim::dependence_description& edge = any_edge(chain);
    if (below(8) == 0) {
      edge.policy = {NoSync{edge.reads.producer()}};
      return true;
    }
    sim::table_policy table = written_out(edge);
    semaphore_range& waits = table.waits[below(static_cast<u32>(table.waits.size()))];
    if (waits.count() == 0) return false;
    if (waits.inner > 1) {
      if (below(2) == 0) waits.begin += waits.inner_stride;
      --waits.inner;
    } else {
      if (below(2) == 0) waits.begin += waits.outer_stride;
      --waits.outer;
    }
    edge.policy = {table};
    return true;
  }

  bool change_threshold(sim::chain_description& chain) {
    sim::dependence_description& edge = any_edge(chain);
    sim::table_policy table = written_out(edge);
    if (below(2) == 0) table.waits.clear();
    u32& posts = table.posts[below(static_cast<u32>(table.posts.size()))];
    posts += below(2) == 0 && posts != 0 ? static_cast<u32>(-1) : 1;
    edge.policy = {table};
    return true;
  }

  bool repeat(sim::chain_description& chain) {
    sim::stage_description& stage = chain.stages[below(static_cast<u32>(chain.stages.size()))];
    if (stage.grid.count() < 2) return false;
    if (stage.source == tile_source::block_index && below(4) == 0) {
      stage.blocks = static_cast<u32>(stage.grid.count()) - 1; // the last tile is nobody's
      return true;
    }
    sim::table_order table;
    for (u32 i = 0; i < stage.grid.count(); ++i)
      table.tiles.push_back(stage.order.tile_at(i, stage.grid));
    const u32 at = below(static_cast<u32>(table.tiles.size()));
    table.tiles[at] = table.tiles[at == 0 ? 1 : at - 1];
    stage.order = {table};
    return true;
  }

  sim::random_source random_;
  bool dense_ = false; ///< Most edges read, and wait for, a whole stage.
};

} // namespace cusync::test
