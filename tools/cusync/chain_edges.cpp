// SPDX-License-Identifier: MIT
#include "chain_edges.hpp"

#include <algorithm> // sort
#include <vector>    // vector

namespace cusync::cli {

using sim::any_dependence;
using sim::any_policy;
using sim::stage_description;
constexpr auto form = file_error::about::form;

element_extent elements_of(const json_value& from) {
  if (from.size() != 2) from.refuse("elements are [rows, cols]", form);
  return {from[0].count(1, "rows of elements; at least 1"),
          from[1].count(1, "cols of elements; at least 1")};
}

namespace {

template <class Things>
const auto& named(const json_value& name, const Things& things, const char* what) {
  const std::string text = name.text();
  std::string known;
  for (const auto& each : things) {
    if (each.name == text) return each;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  name.refuse("no " + std::string(what) + " is named '" + text + "'; choose from " +
              (known.empty() ? "none: declare it" : known));
}

} // namespace

const stage_description& stage_named(const json_value& name, const sim::chain_description& in) {
  return named(name, in.stages, "stage");
}
const sim::buffer_description& buffer_named(const json_value& name,
                                            const sim::chain_description& in) {
  return named(name, in.buffers, "buffer");
}

// --- what is read ---------------------------------------------------------------------------------

namespace {

u32 times(u32 tiles, u32 elements) {
  return static_cast<u32>(std::min<u64>(u64{tiles} * elements, 0xffffffff));
}

/// The matrix between the two stages: given, or as large as the tiles together.
element_extent matrix_of(const json_value& from, const source_tiles& source) {
  if (from.has("matrix")) return elements_of(from["matrix"]);
  return {times(source.grid.rows, source.tile.rows), times(source.grid.cols, source.tile.cols)};
}

any_dependence rows_of(const json_value& from, const source_tiles& source,
                       const stage_description& consumer) {
  from.require_keys({"kind", "matrix", "step_cols"});
  row_dependence reads{};
  reads.matrix = matrix_of(from, source);
  reads.producer_tile = source.tile;
  reads.consumer_rows = consumer.tile.rows;
  reads.step_cols = from.has("step_cols") ? from["step_cols"].count(1) : source.tile.cols;
  reads.consumer_cols = consumer.grid.cols;
  reads.producer_slices = source.grid.slices;
  reads.consumer_slices = consumer.grid.slices;
  return {reads};
}

any_dependence tiles_of(const json_value& from, const source_tiles& source,
                        const stage_description& consumer) {
  from.require_keys({"kind", "matrix"});
  return {tile_dependence{matrix_of(from, source), source.tile, consumer.tile, source.grid.slices,
                          consumer.grid.slices}};
}

any_dependence conv2d_of(const json_value& from, const source_tiles& source,
                         const stage_description& consumer) {
  from.require_keys({"kind", "images", "height", "width", "channels", "filter", "padding", "stride",
                     "dilation", "step_channels"});
  conv2d_dependence reads{};
  reads.images = from["images"].count(1);
  reads.height = from["height"].count(1);
  reads.width = from["width"].count(1);
  reads.channels = from["channels"].count(1);
  if (from.has("filter")) {
    const element_extent filter = elements_of(from["filter"]);
    reads.filter_height = filter.rows;
    reads.filter_width = filter.cols;
  }
  if (from.has("padding")) reads.padding = from["padding"].count(0);
  if (from.has("stride")) reads.stride = from["stride"].count(1);
  if (from.has("dilation")) reads.dilation = from["dilation"].count(1);
  reads.producer_tile = source.tile;
  reads.consumer_pixels = consumer.tile.rows;
  reads.consumer_cols = consumer.grid.cols;
  reads.step_channels =
      from.has("step_channels") ? from["step_channels"].count(1) : source.tile.cols;
  reads.producer_slices = source.grid.slices;
  reads.consumer_slices = consumer.grid.slices;
  return {reads};
}

tile_range range_of(const json_value& from) {
  if (from.size() < 4 || from.size() > 5)
    from.refuse("a range is [row_begin, row_end, col_begin, col_end] or the same and col_stride",
                form);
  return {from[0].count(0), from[1].count(0), from[2].count(0), from[3].count(0),
          from.size() == 5 ? from[4].count(1) : 1};
}

any_dependence table_of(const json_value& from, const source_tiles& source,
                        const stage_description& consumer) {
  from.require_keys({"kind", "steps"});
  const json_value tiles = from["steps"];
  sim::table_dependence table{source.grid, consumer.grid, {}};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    std::vector<tile_range>& steps = table.steps_of.emplace_back();
    for (std::size_t step = 0; step < tiles[i].size(); ++step) {
      steps.push_back(range_of(tiles[i][step]));
      if (steps.back().empty()) continue;
      if (steps.back().row_end > source.grid.rows || steps.back().col_end > source.grid.cols)
        tiles[i][step].refuse("reads tiles outside of the grid " + to_string(source.grid));
    }
  }
  if (table.steps_of.size() != consumer.grid.count())
    tiles.refuse(std::to_string(table.steps_of.size()) + " tiles, the grid " +
                 to_string(consumer.grid) + " of stage '" + consumer.name + "' has " +
                 std::to_string(consumer.grid.count()) + "; list the steps of each");
  return {std::move(table)};
}

any_dependence unchecked_reads_of(const json_value& from, const source_tiles& source,
                                  const stage_description& consumer) {
  const std::string kind = from["kind"].text();
  if (kind == "rows") return rows_of(from, source, consumer);
  if (kind == "tiles") return tiles_of(from, source, consumer);
  if (kind == "conv2d") return conv2d_of(from, source, consumer);
  if (kind == "table") return table_of(from, source, consumer);
  if (kind == "grid") {
    from.require_keys({"kind"});
    return {grid_dependence{source.grid, consumer.grid}};
  }
  if (kind == "strided") {
    from.require_keys({"kind", "stride"});
    return {strided_dependence{source.grid,
                               from.has("stride") ? from["stride"].count(1) : consumer.grid.cols}};
  }
  from["kind"].refuse(
      "'" + kind + "' is none; choose from rows, tiles, strided, conv2d, grid, table", form);
}

void require_grid(const json_value& from, tile_extent declared, tile_extent read,
                  const std::string& side) {
  if (declared == read) return;
  from.refuse("needs a " + side + " grid of " + to_string(read) + ", which has " +
              to_string(declared) + "; make grid, tile and matrix agree");
}

} // namespace

any_dependence reads_of(const json_value& from, const source_tiles& source,
                        const stage_description& consumer) {
  any_dependence reads = unchecked_reads_of(from, source, consumer);
  try {
    reads.validate();
  } catch (const invalid_argument& refusal) {
    from.refuse(refusal.what());
  }
  require_grid(from, source.grid, reads.producer(), "producer");
  require_grid(from, consumer.grid, reads.consumer(), "consumer");
  return reads;
}

// --- how it is waited for -------------------------------------------------------------------------

namespace {

/// Semaphores as begin + i * outer_stride + j * inner_stride, which is all that a wait can look at.
semaphore_range pattern_of(const json_value& from, u32 semaphores) {
  std::vector<u32> list;
  for (std::size_t i = 0; i < from.size(); ++i) {
    list.push_back(from[i].count(0));
    if (list.back() >= semaphores)
      from[i].refuse("semaphore " + std::to_string(list.back()) + " of " +
                     std::to_string(semaphores) + "; number them from 0");
  }
  std::sort(list.begin(), list.end());
  const u32 count = static_cast<u32>(list.size());
  if (count == 0) return {};
  for (u32 inner = count; inner > 0; --inner) {
    if (count % inner != 0) continue;
    const u32 outer = count / inner;
    const semaphore_range made{list[0], outer, outer == 1 ? 0 : list[inner] - list[0], inner,
                               inner == 1 ? 0 : list[1] - list[0]};
    bool same = true;
    for (u32 i = 0; i < count; ++i) same = same && made.at(i) == list[i];
    if (same) return made;
  }
  from.refuse("semaphores of one wait are begin + i * a + j * b; these are no such pattern");
}

any_policy table_of(const json_value& from, const stage_description& producer,
                    const stage_description& consumer) {
  from.require_keys({"kind", "semaphores", "posts", "waits"});
  sim::table_policy table{producer.grid, {}, {}, {}};
  const json_value posts = from["posts"], semaphores = from["semaphores"];
  for (std::size_t i = 0; i < posts.size(); ++i) table.posts.push_back(posts[i].count(0));
  for (std::size_t i = 0; i < semaphores.size(); ++i) {
    table.semaphores.push_back(semaphores[i].count(0));
    if (table.semaphores.back() >= table.posts.size())
      semaphores[i].refuse("semaphore " + std::to_string(table.semaphores.back()) +
                           ", and \"posts\" has " + std::to_string(table.posts.size()) +
                           "; number them from 0");
  }
  if (table.semaphores.size() != producer.grid.count())
    semaphores.refuse(std::to_string(table.semaphores.size()) + " entries, the grid " +
                      to_string(producer.grid) + " of stage '" + producer.name + "' has " +
                      std::to_string(producer.grid.count()) + " tiles; give each its semaphore");
  if (!from.has("waits")) return {std::move(table)};
  const json_value waits = from["waits"];
  for (std::size_t i = 0; i < waits.size(); ++i)
    table.waits.push_back(pattern_of(waits[i], table.semaphore_count()));
  if (table.waits.size() != consumer.grid.count())
    waits.refuse(std::to_string(table.waits.size()) + " entries, the grid " +
                 to_string(consumer.grid) + " of stage '" + consumer.name + "' has " +
                 std::to_string(consumer.grid.count()) + " tiles; give each its semaphores");
  return {std::move(table)};
}

any_policy unchecked_policy_of(const json_value& from, const any_dependence& reads,
                               const stage_description& producer,
                               const stage_description& consumer) {
  const json_value name = from.is_text() ? from : from["kind"];
  const std::string kind = name.text();
  if (!from.is_text() && kind == "table") return table_of(from, producer, consumer);
  if (!from.is_text() && kind == "BatchedRowSync") {
    from.require_keys({"kind", "batch"});
    return {BatchedRowSync{producer.grid, from["batch"].count(1)}};
  }
  if (!from.is_text() && kind == "StridedSync") {
    from.require_keys({"kind", "stride"});
    return {StridedSync{producer.grid, from["stride"].count(1)}};
  }
  if (!from.is_text()) from.require_keys({"kind"});
  if (kind == "NoSync") return sim::derive_any<NoSync>(reads);
  if (kind == "GridSync") return sim::derive_any<GridSync>(reads);
  if (kind == "TileSync") return sim::derive_any<TileSync>(reads);
  if (kind == "RowSync") return sim::derive_any<RowSync>(reads);
  if (kind == "BatchedRowSync") return sim::derive_any<BatchedRowSync>(reads);
  if (kind == "StridedSync") return sim::derive_any<StridedSync>(reads);
  if (kind == "Conv2DTileSync") return sim::derive_any<Conv2DTileSync>(reads);
  name.refuse("'" + kind +
                  "' is none; choose from NoSync, GridSync, TileSync, RowSync, BatchedRowSync, "
                  "StridedSync, Conv2DTileSync, or an object of kind table",
              form);
}

} // namespace

any_policy policy_of(const json_value& from, const any_dependence& reads,
                     const stage_description& producer, const stage_description& consumer) {
  any_policy policy = unchecked_policy_of(from, reads, producer, consumer);
  try {
    policy.validate();
  } catch (const invalid_argument& refusal) {
    from.refuse(refusal.what());
  }
  return policy;
}

} // namespace cusync::cli
