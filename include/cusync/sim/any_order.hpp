// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/order/column_major.hpp>      // ColumnMajor
#include <cusync/order/grouped_row_major.hpp> // GroupedRowMajor
#include <cusync/order/row_major.hpp>         // RowMajor
#include <cusync/order/strided_row_major.hpp> // StridedRowMajor
#include <cusync/tile_order.hpp>              // tile_order

#include <utility> // move
#include <variant> // variant, visit
#include <vector>  // vector

namespace cusync::sim {

/// An order written out: the tile at each position. Host only; nothing says that it is a permutation.
struct table_order {
  std::vector<tile_coord> tiles;

  tile_coord tile_at(u32 index, tile_extent) const { return tiles[index]; }
};

static_assert(tile_order<table_order>);

/// An order known at run time only. It calls the very code that a kernel executes.
class any_order {
public:
  using variant =
      std::variant<RowMajor, ColumnMajor, StridedRowMajor, GroupedRowMajor, table_order>;

  any_order() = default;
  any_order(variant order) : order_(std::move(order)) {}

  tile_coord tile_at(u32 index, tile_extent grid) const {
    return std::visit([&](const auto& order) { return order.tile_at(index, grid); }, order_);
  }

  /// Throws `invalid_argument`.
  void validate() const {
    std::visit(
        [](const auto& order) {
          if constexpr (requires { order.validate(); }) order.validate();
        },
        order_);
  }

  const variant& get() const { return order_; }

private:
  variant order_;
};

static_assert(tile_order<any_order>);

} // namespace cusync::sim
