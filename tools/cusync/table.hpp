// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u64

#include <concepts> // unsigned_integral
#include <string>   // string
#include <utility>  // move
#include <variant>  // variant
#include <vector>   // vector

namespace cusync::cli {

/// One value of a table: nothing, a word, a count, or a number with the decimals to print.
struct cell {
  struct number {
    double value;
    int decimals;
  };
  std::variant<std::monostate, std::string, u64, number> value;

  cell() = default;
  cell(const char* word) : value(word) {}
  cell(std::string word) : value(std::move(word)) {}
  cell(std::unsigned_integral auto count) : value(u64{count}) {}
  cell(double of, int decimals) : value(number{of, decimals}) {}

  bool is_number() const { return value.index() >= 2; }
  std::string text() const; ///< "-" where there is nothing.
};

/// Rows of named columns.
struct table {
  std::vector<std::string> columns;
  std::vector<std::vector<cell>> rows;

  explicit table(std::vector<std::string> names = {}) : columns(std::move(names)) {}
  void add(std::vector<cell> row) { rows.push_back(std::move(row)); }
  std::string text() const; ///< For a person: numbers to the right, words to the left.
  std::string markdown() const;

private:
  bool holds_numbers(std::size_t column) const;
};

} // namespace cusync::cli
