// SPDX-License-Identifier: MIT
#include "chain_file.hpp"
#include "chain_edges.hpp"
#include "json_file.hpp"
#include "options.hpp"

#include <utility> // move

namespace cusync::cli {
namespace {

using sim::buffer_description;
using sim::chain_description;
using sim::stage_description;

/// Refuses what `value` describes where the library does, at its place in the file.
template <class Check> void at_place(const json_value& value, const Check& check) {
  try {
    check();
  } catch (const file_error&) {
    throw;
  } catch (const invalid_argument& refusal) {
    value.refuse(refusal.what());
  }
}

template <class Value, std::size_t Count>
Value choice(const json_value& from, const std::pair<const char*, Value> (&known)[Count]) {
  const std::string text = from.text();
  std::string list;
  for (const auto& [name, value] : known) {
    if (text == name) return value;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  from.refuse("'" + text + "' is none; choose from " + list, file_error::about::form);
}

/// Far more than a kernel has; checks and simulations take memory by the tile.
constexpr u64 most_tiles = 100'000'000;

tile_extent extent_of(const json_value& from) {
  if (from.size() < 2 || from.size() > 3)
    from.refuse("a grid is [rows, cols] or [rows, cols, slices]", file_error::about::form);
  const char* names[] = {"rows", "cols", "slices"};
  u32 parts[3] = {1, 1, 1};
  for (std::size_t i = 0; i < from.size(); ++i)
    parts[i] = from[i].count(1, names[i] + std::string("; a grid needs at least 1"));
  const tile_extent grid{parts[0], parts[1], parts[2]};
  at_place(from, [&] { require_countable(grid, "grid"); });
  if (grid.count() > most_tiles)
    from.refuse(std::to_string(grid.count()) + " tiles; use larger tiles, at most " +
                std::to_string(most_tiles) + " of them");
  return grid;
}

// --- orders ---------------------------------------------------------------------------------------

sim::table_order table_of(const json_value& from, tile_extent grid) {
  from.require_keys({"kind", "tiles"});
  const json_value tiles = from["tiles"];
  sim::table_order table;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const json_value tile = tiles[i];
    if (tile.size() < 2 || tile.size() > 3)
      tile.refuse("a tile is [row, col] or [row, col, slice]", file_error::about::form);
    table.tiles.push_back(
        {tile[0].count(0), tile[1].count(0), tile.size() == 3 ? tile[2].count(0) : 0});
  }
  if (table.tiles.size() != grid.count())
    tiles.refuse(std::to_string(table.tiles.size()) + " tiles, the grid " + to_string(grid) +
                 " has " + std::to_string(grid.count()) + "; list each once");
  return table;
}

sim::any_order order_of(const json_value& from, tile_extent grid) {
  enum kind { rows, cols, strided, grouped, table };
  constexpr std::pair<const char*, kind> kinds[] = {{"RowMajor", rows},
                                                    {"ColumnMajor", cols},
                                                    {"StridedRowMajor", strided},
                                                    {"GroupedRowMajor", grouped},
                                                    {"table", table}};
  if (from.is_text()) {
    constexpr std::pair<const char*, kind> plain[] = {
        {"RowMajor", rows}, {"ColumnMajor", cols}, {"GroupedRowMajor", grouped}};
    switch (choice(from, plain)) {
    case cols:
      return {ColumnMajor{}};
    case grouped:
      return {GroupedRowMajor{}};
    default:
      return {RowMajor{}};
    }
  }
  switch (choice(from["kind"], kinds)) {
  case table:
    return {table_of(from, grid)};
  case strided:
    from.require_keys({"kind", "stride"});
    return {StridedRowMajor{from["stride"].count(1)}};
  case grouped:
    from.require_keys({"kind", "rows"});
    return {GroupedRowMajor{from.has("rows") ? from["rows"].count(1) : 8}};
  case cols:
    from.require_keys({"kind"});
    return {ColumnMajor{}};
  case rows:
    break;
  }
  from.require_keys({"kind"});
  return {RowMajor{}};
}

// --- stages and buffers ---------------------------------------------------------------------------

sim::block_resources resources_of(const json_value& from) {
  from.require_keys({"threads", "registers", "shared_bytes"});
  sim::block_resources block;
  if (from.has("threads"))
    block.threads = from["threads"].count(1, "threads; a block needs at least 1", 1024);
  if (from.has("registers")) block.registers = from["registers"].count(0, "", 255);
  if (from.has("shared_bytes")) block.shared_bytes = from["shared_bytes"].count(0);
  return block;
}

sim::tile_cost cost_of(const json_value& from) {
  sim::tile_cost cost;
  if (from.has("tile_ns")) cost.ns = from["tile_ns"].count(1);
  if (from.has("tile_flops")) cost.flops = from["tile_flops"].number();
  if (from.has("tile_bytes")) cost.bytes = from["tile_bytes"].number();
  if (cost.ns == 0 && cost.flops == 0 && cost.bytes == 0) cost.ns = 1000;
  return cost;
}

/// Refuses a second thing of the same name.
template <class Things> void require_new(const json_value& name, const Things& others) {
  const std::string text = name.text();
  if (text.empty()) name.refuse("is empty", file_error::about::form);
  for (const auto& other : others)
    if (other.name == text) name.refuse("'" + text + "' is declared already");
}

buffer_description buffer_of(const json_value& from, const chain_description& so_far) {
  from.require_keys({"name", "grid", "tile"});
  require_new(from["name"], so_far.buffers);
  buffer_description buffer{from["name"].text(), {1, 1, 1}, {1, 1}};
  if (from.has("grid")) buffer.grid = extent_of(from["grid"]);
  if (from.has("tile")) buffer.tile = elements_of(from["tile"]);
  return buffer;
}

stage_description stage_of(const json_value& from, const chain_description& so_far) {
  from.require_keys({"name", "grid", "tile", "order", "blocks", "tiles_from", "resources",
                     "tile_ns", "tile_flops", "tile_bytes", "writes"});
  require_new(from["name"], so_far.stages);
  stage_description stage;
  stage.name = from["name"].text();
  stage.grid = extent_of(from["grid"]);
  if (from.has("tile")) stage.tile = elements_of(from["tile"]);
  if (from.has("order")) stage.order = order_of(from["order"], stage.grid);
  if (from.has("blocks")) stage.blocks = from["blocks"].count(1);
  if (stage.blocks > most_tiles)
    from["blocks"].refuse(std::to_string(stage.blocks) + " blocks; at most " +
                          std::to_string(most_tiles));
  if (from.has("tiles_from"))
    stage.source =
        choice<tile_source>(from["tiles_from"], {{"block_index", tile_source::block_index},
                                                 {"counter", tile_source::counter}});
  if (from.has("resources")) {
    stage.block = resources_of(from["resources"]);
    at_place(from["resources"],
             [&] { require_occupancy(so_far.device, stage.block, "stage '" + stage.name + "'"); });
  }
  stage.cost = cost_of(from);
  if (from.has("writes")) {
    stage.writes = from["writes"].text();
    buffer_named(from["writes"], so_far);
  }
  return stage;
}

void read_edge(const json_value& from, chain_description& chain) {
  from.require_keys({"producer", "buffer", "consumer", "reads", "policy"});
  if (from.has("producer") == from.has("buffer"))
    from.refuse("needs either a \"producer\" or a \"buffer\"", file_error::about::form);
  const stage_description& consumer = stage_named(from["consumer"], chain);
  if (from.has("buffer")) {
    if (from.has("policy"))
      from["policy"].refuse("what a buffer holds from before the chain needs no policy",
                            file_error::about::form);
    const buffer_description& buffer = buffer_named(from["buffer"], chain);
    const auto reads = reads_of(from["reads"], {buffer.grid, buffer.tile}, consumer);
    chain.initial_reads.push_back({buffer.name, consumer.name, reads});
    return;
  }
  const stage_description& producer = stage_named(from["producer"], chain);
  if (&producer == &consumer)
    from["consumer"].refuse("'" + consumer.name + "' reads itself; name another producer");
  const auto reads = reads_of(from["reads"], {producer.grid, producer.tile}, consumer);
  chain.dependences.push_back(
      {producer.name, consumer.name, reads, policy_of(from["policy"], reads, producer, consumer)});
}

template <class Each> void for_each(const json_value& from, const char* key, const Each& each) {
  if (!from.has(key)) return;
  const json_value list = from[key];
  for (std::size_t i = 0; i < list.size(); ++i) each(list[i]);
}

/// Where the rest is right, the dependences may still form a cycle.
void require_no_cycle(const json_value& root, const chain_description& chain) {
  std::vector<bool> placed(chain.stages.size(), false);
  const auto index_of = [&](const std::string& name) {
    std::size_t index = 0;
    while (chain.stages[index].name != name) ++index;
    return index;
  };
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      bool ready = !placed[i];
      for (const auto& edge : chain.dependences)
        ready = ready && (index_of(edge.consumer) != i || placed[index_of(edge.producer)]);
      if (ready) placed[i] = more = true;
    }
  }
  for (std::size_t i = 0; i < chain.dependences.size(); ++i)
    if (!placed[index_of(chain.dependences[i].consumer)])
      root["dependences"].refuse("the dependences form a cycle that holds or precedes stage '" +
                                 chain.dependences[i].consumer +
                                 "'; a chain is a directed acyclic graph");
}

chain_description chain_of(const json_value& root) {
  root.require_keys(
      {"$schema", "name", "gpu", "mode", "gate", "slots", "buffers", "stages", "dependences"});
  chain_description chain;
  if (root.has("$schema")) root["$schema"].text();
  if (root.has("name")) chain.name = root["name"].text();
  if (root.has("gpu"))
    at_place(root["gpu"],
             [&] { chain.device = virtual_gpu_of(root["gpu"].text(), chain.device).gpu; });
  if (root.has("mode"))
    chain.mode = choice<launch_mode>(root["mode"], {{"serial", launch_mode::serial},
                                                    {"pdl", launch_mode::pdl},
                                                    {"streams", launch_mode::streams},
                                                    {"automatic", launch_mode::automatic}});
  if (root.has("gate")) chain.gate = choice<sim::gate_kind>(root["gate"], gate_names);
  if (root.has("slots")) chain.slots = root["slots"].count(1);
  for_each(root, "buffers",
           [&](const json_value& each) { chain.buffers.push_back(buffer_of(each, chain)); });
  if (root["stages"].size() == 0)
    root["stages"].refuse("no stage; a chain has at least one", file_error::about::form);
  for_each(root, "stages",
           [&](const json_value& each) { chain.stages.push_back(stage_of(each, chain)); });
  for_each(root, "dependences", [&](const json_value& each) { read_edge(each, chain); });
  require_no_cycle(root, chain);
  return chain;
}

} // namespace

sim::chain_description read_chain(const std::string& path) {
  return chain_of(json_value::of_file(path));
}

sim::chain_description parse_chain(std::string text, const std::string& name) {
  return chain_of(json_value::of_text(std::move(text), name));
}

} // namespace cusync::cli
