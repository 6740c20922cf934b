// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/kernels/gemm_arguments.hpp> // gemm_arguments, gelu

#include <algorithm> // max, min
#include <cmath>     // abs, sqrt
#include <cstddef>   // size_t
#include <numeric>   // iota
#include <utility>   // move
#include <vector>    // vector

namespace cusync {

/// Some rows of a GEMM's result in double precision, and how far a kernel that sums in float may be
/// from them.
class gemm_reference {
public:
  /// Computes `rows` of C; reads A and B, which are the host's, and leaves C alone.
  gemm_reference(const gemm_arguments& args, std::vector<u32> rows)
      : args_(args), rows_(std::move(rows)), values_(rows_.size() * args.n),
        row_norms_(rows_.size()), col_norms_(args.n) {
    for (u32 col = 0; col < args_.n; col += block)
      for (std::size_t first = 0; first < rows_.size(); first += block_rows)
        multiply(first, std::min(rows_.size(), first + block_rows), col,
                 std::min(args_.n - col, block));
    for (double& value : values_) value = apply(args_.then, value);
    for (std::size_t i = 0; i < rows_.size(); ++i) row_norms_[i] = norm_of_row(rows_[i]);
    fill_col_norms();
  }
  /// All rows.
  explicit gemm_reference(const gemm_arguments& args) : gemm_reference(args, all(args.m)) {}

  const std::vector<u32>& rows() const { return rows_; }

  /// Of row `rows()[index]`, before it is rounded to half.
  double value(std::size_t index, u32 col) const { return values_[index * args_.n + col]; }

  /// Allows a sum in float an ulp of |a| |b| (which no partial sum exceeds) for each group of 16
  /// products, and GeLU's slope of at most 1.13; rounding to half adds 2^-11, or 2^-25 where subnormal.
  double bound(std::size_t index, u32 col) const {
    const double sum = (args_.k / 16.0 + 16) * 0x1p-23 * row_norms_[index] * col_norms_[col];
    return 1.13 * sum + 0x1p-11 * std::abs(value(index, col)) + 0x1p-25;
  }

  /// Whether `got` is what a right kernel may give. NaN never is.
  bool accepts(std::size_t index, u32 col, half got) const {
    return std::abs(double{static_cast<float>(got)} - value(index, col)) <= bound(index, col);
  }

private:
  // A block of B's columns and of C's rows: the sums stay in the cache, B is widened once a block.
  static constexpr u32 block = 256;
  static constexpr std::size_t block_rows = 16;

  static std::vector<u32> all(u32 m) {
    std::vector<u32> rows(m);
    std::iota(rows.begin(), rows.end(), 0u);
    return rows;
  }

  double a(u32 row, u32 k) const {
    return double{static_cast<float>(args_.a[std::size_t{row} * args_.k + k])};
  }
  double b(u32 k, u32 col) const {
    return double{static_cast<float>(args_.b[std::size_t{k} * args_.n + col])};
  }

  void multiply(std::size_t first, std::size_t last, u32 col, u32 cols) {
    double wide[block];
    for (u32 k = 0; k < args_.k; ++k) {
      for (u32 j = 0; j < cols; ++j) wide[j] = b(k, col + j);
      for (std::size_t i = first; i < last; ++i) {
        const double scale = a(rows_[i], k);
        double* sums = &values_[i * args_.n + col];
        for (u32 j = 0; j < cols; ++j) sums[j] += scale * wide[j];
      }
    }
  }

  double norm_of_row(u32 row) const {
    double sum = 0;
    for (u32 k = 0; k < args_.k; ++k) sum += a(row, k) * a(row, k);
    return std::sqrt(sum);
  }
  void fill_col_norms() {
    for (u32 k = 0; k < args_.k; ++k)
      for (u32 j = 0; j < args_.n; ++j) col_norms_[j] += b(k, j) * b(k, j);
    for (double& norm : col_norms_) norm = std::sqrt(norm);
  }

  gemm_arguments args_;
  std::vector<u32> rows_;
  std::vector<double> values_;
  std::vector<double> row_norms_;
  std::vector<double> col_norms_;
};

} // namespace cusync
