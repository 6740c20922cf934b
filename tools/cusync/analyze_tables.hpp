// SPDX-License-Identifier: MIT
#pragma once

#include "analyze/analysis.hpp"
#include "table.hpp"

#include <vector> // vector

namespace cusync::cli {

/// What is shown: the best pairs, and their kernels in the order in which they come up.
struct selection {
  std::vector<analyze::pair_group> groups;
  std::vector<u32> shapes;    ///< Number 1 first.
  std::vector<u64> number_of; ///< By shape; 0: not shown.
};

/// The `top` best pairs; 0: all.
selection select(const analyze::analysis& found, u64 top);

/// Who reads a table: a program gets more columns, and numbers where a person gets text.
enum class reader { person, program };

table pair_table(const analyze::analysis& found, const selection& of, reader who);
table launch_table(const analyze::analysis& found, const selection& of, reader who);
table total_table(const analyze::analysis& found);

} // namespace cusync::cli
