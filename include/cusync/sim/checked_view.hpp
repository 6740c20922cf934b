// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/execution.hpp> // running_block, kernel_fault
#include <cusync/stage_ref.hpp>     // input_ref, operand

#include <string> // string, to_string

namespace cusync::sim {

namespace detail {

template <int Operand, class Policy, class Dependence>
constexpr const auto& input_of(const input_ref<reads<Operand, Policy, Dependence>>& input) {
  return input;
}

[[noreturn]] inline void fault(const std::string& what) {
  throw kernel_fault(running_block::current().place() + " " + what);
}

[[noreturn]] inline void fault_at(const char* verb, u32 row, u32 col, const std::string& why) {
  fault(std::string(verb) + " element (" + std::to_string(row) + ", " + std::to_string(col) + ")" +
        why);
}

[[noreturn]] inline void fault_of_read(int operand, tile_coord tile, const char* why) {
  fault("reads producer tile " + cusync::to_string(tile) + " through operand " +
        std::to_string(operand) + why);
}

inline void require_inside(element_extent matrix, u32 row, u32 col, const char* verb) {
  if (row >= matrix.rows || col >= matrix.cols)
    fault_at(verb, row, col,
             " of a " + std::to_string(matrix.rows) + " x " + std::to_string(matrix.cols) +
                 " matrix");
}

} // namespace detail

/// A row-major matrix that another stage writes, as one consumer tile may read it: an element whose
/// tile the operand's dependence does not declare, or whose semaphores the block has not waited for,
/// throws `kernel_fault`. Lives inside a kernel, no longer than the stage's view.
template <class T, class Stage, int Operand> class checked_input {
public:
  /// `data` is that of the whole matrix; `consumer` the tile that reads.
  checked_input(const Stage& stage, operand<Operand>, tile_coord consumer, const T* data,
                element_extent matrix, element_extent producer_tile)
      : stage_(stage), consumer_(consumer), data_(data), matrix_(matrix),
        producer_tile_(producer_tile) {}

  const T& operator()(u32 row, u32 col) const {
    detail::require_inside(matrix_, row, col, "reads");
    require_tile({row / producer_tile_.rows, col / producer_tile_.cols, 0});
    return data_[std::size_t{row} * matrix_.cols + col];
  }

private:
  void require_tile(tile_coord tile) const {
    if (checked_ && tile == last_) return;
    if constexpr (Stage::declares(operand<Operand>{})) require_waited(tile);
    last_ = tile;
    checked_ = true;
  }

  void require_waited(tile_coord tile) const {
    const auto& input = detail::input_of<Operand>(stage_);
    if (!input.dependence.reads(consumer_).contains(tile.row, tile.col))
      detail::fault_of_read(Operand, tile, ", which its dependence does not declare");
    const running_block& block = running_block::current();
    if (input.grid_wait && !block.has_waited_for_grid())
      detail::fault_of_read(Operand, tile, " without having waited for the stage ahead");
    if (input.semaphores == nullptr) return; // launch order makes it safe
    for (; tile.slice < input.dependence.producer().slices; ++tile.slice)
      if (!block.has_waited_for(input.semaphores + input.policy.semaphore_of(tile)))
        detail::fault_of_read(Operand, tile, " without having waited for it");
  }

  const Stage& stage_;
  tile_coord consumer_;
  const T* data_;
  element_extent matrix_;
  element_extent producer_tile_;
  mutable tile_coord last_; ///< Neighbours are mostly in the same tile.
  mutable bool checked_ = false;
};

/// A row-major matrix that a stage writes, as the tile at hand may: an element outside of the tile
/// throws `kernel_fault`.
///
/// Stores come at the end of a tile: before the first one all of the tile's time passes. A consumer
/// that does not wait then finds what was there before.
template <class T> class checked_output {
public:
  checked_output(tile_coord tile, T* data, element_extent matrix, element_extent shape)
      : tile_(tile), data_(data), matrix_(matrix), shape_(shape) {}

  T& operator()(u32 row, u32 col) {
    detail::require_inside(matrix_, row, col, "writes");
    if (row / shape_.rows != tile_.row || col / shape_.cols != tile_.col)
      detail::fault_at("writes", row, col, ", which is not in that tile");
    if (!stored_) running_block::current().work_until(1, 1);
    stored_ = true;
    return data_[std::size_t{row} * matrix_.cols + col];
  }

private:
  tile_coord tile_;
  T* data_;
  element_extent matrix_;
  element_extent shape_;
  bool stored_ = false;
};

} // namespace cusync::sim
