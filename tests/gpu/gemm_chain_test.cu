// SPDX-License-Identifier: MIT
// Two GEMMs overlapped, real half-precision kernels: every size at which others lost a tile or hung.

#include "gpu_test.cuh"

#include <cusync/kernels/gemm.cuh>
#include <cusync/kernels/gemm_reference.hpp>
#include <cusync/order/row_major.hpp>
#include <cusync/policy/row_sync.hpp>
#include <cusync/policy/tile_sync.hpp>

#include <algorithm>

namespace cusync::test {
namespace {

class halves {
public:
  explicit halves(std::size_t count) : count_(count) {
    ok(cudaMalloc(&data_, std::max<std::size_t>(count, 8) * sizeof(half)));
    poison();
  }
  explicit halves(const std::vector<half>& values) : halves(values.size()) {
    ok(cudaMemcpy(data_, values.data(), count_ * sizeof(half), cudaMemcpyHostToDevice));
  }
  ~halves() { cudaFree(data_); }
  halves(const halves&) = delete;
  halves& operator=(const halves&) = delete;
  half* data() const { return data_; }
  void poison() { ok(cudaMemset(data_, 0xff, count_ * sizeof(half))); } // NaN
  std::vector<half> read() const {
    std::vector<half> copy(count_);
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(copy.data(), data_, count_ * sizeof(half), cudaMemcpyDeviceToHost));
    return copy;
  }

private:
  std::size_t count_;
  half* data_ = nullptr;
};

/// -1, 0 or 1, mostly 0: all sums are exact in float, and the intermediate in half.
std::vector<half> sparse_signs(std::size_t count, u32 seed) {
  std::vector<half> values(count);
  u32 state = seed * 2654435761u + 1;
  for (half& value : values) {
    state = state * 1664525 + 1013904223;
    const u32 draw = state >> 28;
    value = half(draw == 0 ? -1.f : draw == 1 ? 1.f : 0.f);
  }
  return values;
}

struct pair_shape {
  u32 m, hidden, columns; ///< X is m x hidden, W1 hidden x columns, W2 columns x hidden.
};

template <class Config, class Policy> void expect_pair_exact(pair_shape shape, launch_mode mode) {
  using producer_stage = CuStage<RowMajor, inputs<>, outputs<Policy>>;
  using consumer_stage = CuStage<RowMajor, inputs<reads<0, Policy, row_dependence>>, outputs<>>;
  const auto [m, hidden, columns] = shape;
  const gemm_tile tile = Config::tile;
  const std::vector<half> x = sparse_signs(std::size_t{m} * hidden, m + 1);
  const std::vector<half> w1 = sparse_signs(std::size_t{hidden} * columns, 2);
  const std::vector<half> w2 = sparse_signs(std::size_t{columns} * hidden, 3);
  const halves device_x(x), device_w1(w1), device_w2(w2);
  halves middle(std::size_t{m} * columns), out(std::size_t{m} * hidden);
  const gemm_arguments first{device_x.data(), device_w1.data(), middle.data(), m, columns, hidden};
  const gemm_arguments second{middle.data(), device_w2.data(), out.data(), m, hidden, columns};
  require_valid(first, tile);
  require_valid(second, tile);
  CuSync chain(in_mode(mode));
  auto& producer = chain.stage<producer_stage>("gemm 1", gemm_grid(m, columns, tile), RowMajor{});
  auto& consumer = chain.stage<consumer_stage>("gemm 2", gemm_grid(m, hidden, tile), RowMajor{});
  chain.dependency<Policy>(producer, consumer, gemm_a,
                           gemm_reads(m, hidden, columns, tile, {tile.m, tile.n}));
  auto gemm1 = chain.kernel(producer, gemm<Config, gpu_ref<producer_stage>>, Config::threads,
                            Config::shared_bytes);
  auto gemm2 = chain.kernel(consumer, gemm<Config, gpu_ref<consumer_stage>>, Config::threads,
                            Config::shared_bytes);
  stream user;
  for (int run = 0; run < 3; ++run) {
    middle.poison();
    out.poison();
    ok(cudaDeviceSynchronize());
    chain.launch(user, gemm1(first), gemm2(second));
    chain.synchronize(user);
  }
  // A few rows against the reference: the first, the last, and those at tile borders.
  std::vector<u32> rows;
  for (const u32 row : {0u, 62u, 63u, 64u, 127u, 128u, m / 2, m - 1})
    if (row < m) rows.push_back(row);
  const gemm_reference reference_middle({x.data(), w1.data(), nullptr, m, columns, hidden}, rows);
  std::vector<half> middle_rows(rows.size() * columns);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (u32 col = 0; col < columns; ++col)
      middle_rows[i * columns + col] = half(static_cast<float>(reference_middle.value(i, col)));
  const gemm_reference expected(
      {middle_rows.data(), w2.data(), nullptr, static_cast<u32>(rows.size()), hidden, columns});
  const std::vector<half> got = out.read();
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (u32 col = 0; col < hidden; ++col)
      ASSERT_EQ(got[std::size_t{rows[i]} * hidden + col].bits,
                half(static_cast<float>(expected.value(i, col))).bits)
          << "M " << m << ", row " << rows[i] << ", column " << col << ", " << name_of(mode);
}

class FieldCase28 : public testing::TestWithParam<launch_mode> {};

TEST_P(FieldCase28, EveryBatchSizeAroundATile) {
  for (const u32 m : {1u,   2u,   63u,  64u,  65u,  127u,  128u,  129u,  191u,  200u,  255u,
                      256u, 257u, 511u, 512u, 513u, 1023u, 1024u, 1025u, 2047u, 2048u, 2049u}) {
    expect_pair_exact<gemm_128x128x32<>, TileSync>({m, 264, 576}, GetParam());
    expect_pair_exact<gemm_64x64x64<load_order::wait_first>, RowSync>({m, 264, 576}, GetParam());
  }
}

TEST_P(FieldCase28, WidthsAroundATile) {
  for (const u32 columns : {8u, 120u, 128u, 136u, 576u})
    for (const u32 hidden : {24u, 32u, 40u, 120u, 128u, 136u}) {
      expect_pair_exact<gemm_128x128x32<load_order::wait_first>, TileSync>({300, hidden, columns},
                                                                           GetParam());
      expect_pair_exact<gemm_128x128x32<>, RowSync>({300, hidden, columns}, GetParam());
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, FieldCase28,
                         testing::Values(launch_mode::serial, launch_mode::pdl,
                                         launch_mode::streams),
                         [](const auto& info) { return std::string(name_of(info.param)); });

} // namespace
} // namespace cusync::test
