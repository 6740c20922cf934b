// SPDX-License-Identifier: MIT
//
// Executes the index maths of the kernel `gemm` with emulated warps: what a thread copies, what
// `ldmatrix` hands to a lane, what `mma` makes of it and where a lane stores. The instructions' layouts
// are written down here as PTX specifies them.
#include <cusync/kernels/gemm_config.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace cusync {
namespace {

using element = std::uint16_t; // small integers stand for halves
constexpr u32 lanes = 32;

template <class Config> class GemmConfig : public testing::Test {
protected:
  static constexpr u32 m = Config::tile.m;
  static constexpr u32 n = Config::tile.n;
  static constexpr u32 k = Config::tile.k;
  static constexpr u32 warps = Config::threads / lanes;

  std::vector<element> a = std::vector<element>(m * k);
  std::vector<element> b = std::vector<element>(k * n);
  std::vector<unsigned char> shared = std::vector<unsigned char>(Config::stage_bytes, 0xff);

  void SetUp() override {
    u32 state = 1;
    for (auto* matrix : {&a, &b})
      for (element& x : *matrix)
        x = static_cast<element>((state = state * 1664525 + 1013904223) >> 28);
  }

  void copy(const std::vector<element>& from, u32 cols, u32 row, u32 chunk, u32 to) {
    std::memcpy(&shared.at(to), &from.at(row * cols + chunk * 8), 16);
  }

  void load() {
    for (u32 thread = 0; thread < Config::threads; ++thread) {
      const auto at_a = Config::a_load(thread);
      const u32 to_a = Config::a_matrix::offset(at_a.row, at_a.chunk);
      for (u32 i = 0; i < Config::a_loads; ++i) // the kernel's way: one swizzle for all
        copy(a, k, at_a.row + i * Config::a_row_step, at_a.chunk,
             to_a + i * Config::a_row_step * Config::a_matrix::chunks * 16);
      const auto at_b = Config::b_load(thread);
      const u32 to_b = Config::a_matrix::bytes + Config::b_matrix::offset(at_b.row, at_b.chunk);
      for (u32 i = 0; i < Config::b_loads; ++i)
        copy(b, n, at_b.row + i * Config::b_row_step, at_b.chunk,
             to_b + i * Config::b_row_step * Config::b_matrix::chunks * 16);
    }
  }

  using registers = std::array<std::array<element, 2>, 4>; // four 32-bit registers of two halves

  /// ldmatrix.m8n8.x4: lane 8 i + r names row r of matrix i; register i of a lane is elements 2 (lane % 4)
  /// and + 1 of row lane / 4 of matrix i, or of column lane / 4 with .trans.
  template <class Address> std::array<registers, lanes> ldmatrix(bool transposed, Address address) {
    std::array<registers, lanes> result;
    for (u32 lane = 0; lane < lanes; ++lane)
      for (u32 i = 0; i < 4; ++i)
        for (u32 half = 0; half < 2; ++half) {
          const u32 row = transposed ? lane % 4 * 2 + half : lane / 4;
          const u32 col = transposed ? lane / 4 : lane % 4 * 2 + half;
          std::memcpy(&result[lane][i][half], &shared.at(address(i * 8 + row) + col * 2), 2);
        }
    return result;
  }

  using accumulators = std::array<std::array<u32, 4>, lanes>;

  /// mma.m16n8k16.row.col, from the fragments' layouts: the matrices are put together and multiplied.
  static void mma(accumulators& c, const std::array<registers, lanes>& a_regs,
                  const std::array<registers, lanes>& b_regs, u32 b_first) {
    u32 left[16][16];
    u32 right[16][8];
    for (u32 lane = 0; lane < lanes; ++lane)
      for (u32 half = 0; half < 2; ++half) {
        for (u32 i = 0; i < 4; ++i)
          left[lane / 4 + i % 2 * 8][lane % 4 * 2 + half + i / 2 * 8] = a_regs[lane][i][half];
        for (u32 i = 0; i < 2; ++i)
          right[lane % 4 * 2 + half + i * 8][lane / 4] = b_regs[lane][b_first + i][half];
      }
    for (u32 lane = 0; lane < lanes; ++lane)
      for (u32 i = 0; i < 4; ++i)
        for (u32 x = 0; x < 16; ++x)
          c[lane][i] += left[lane / 4 + i / 2 * 8][x] * right[x][lane % 4 * 2 + i % 2];
  }
};

using configs =
    testing::Types<gemm_128x256x32<>, gemm_128x128x32<>, gemm_64x128x64<>, gemm_64x64x64<>,
                   gemm_config<64, 128, 32, 2, 4, 3, 2>, gemm_config<256, 128, 32, 4, 2, 3, 1>>;
TYPED_TEST_SUITE(GemmConfig, configs);

TYPED_TEST(GemmConfig, CopiesEachChunkOnce) {
  std::multiset<u32> written;
  for (u32 thread = 0; thread < TypeParam::threads; ++thread) {
    for (u32 i = 0; i < TypeParam::a_loads; ++i)
      written.insert(
          TypeParam::a_matrix::offset(TypeParam::a_load(thread).row + i * TypeParam::a_row_step,
                                      TypeParam::a_load(thread).chunk));
    for (u32 i = 0; i < TypeParam::b_loads; ++i)
      written.insert(
          TypeParam::a_matrix::bytes +
          TypeParam::b_matrix::offset(TypeParam::b_load(thread).row + i * TypeParam::b_row_step,
                                      TypeParam::b_load(thread).chunk));
  }
  u32 expected = 0;
  for (u32 offset : written) {
    ASSERT_EQ(offset, expected);
    expected += 16;
  }
  EXPECT_EQ(expected, TypeParam::stage_bytes);
}

TYPED_TEST(GemmConfig, MultipliesATile) {
  this->load();
  using config = TypeParam;
  std::vector<u32> c(this->m * this->n, 0xdeadbeef);
  for (u32 warp = 0; warp < this->warps; ++warp) {
    std::vector<std::vector<typename TestFixture::accumulators>> sums(
        config::mmas_m, std::vector<typename TestFixture::accumulators>(config::mmas_n));
    for (auto& row : sums)
      for (auto& each : row) each = {};
    for (u32 step = 0; step < config::mmas_k; ++step)
      for (u32 i = 0; i < config::mmas_m; ++i) {
        const auto left = this->ldmatrix(
            false, [&](u32 lane) { return config::a_fragment(warp, lane, i, step); });
        for (u32 j = 0; j < config::mmas_n; ++j) {
          const auto right = this->ldmatrix(true, [&](u32 lane) {
            return config::a_matrix::bytes + config::b_fragment(warp, lane, j / 2, step);
          });
          this->mma(sums[i][j], left, right, j % 2 * 2);
        }
      }
    // The store: four lanes of a quad exchange pairs, so that a lane has eight columns of one row.
    for (u32 lane = 0; lane < lanes; ++lane)
      for (u32 i = 0; i < config::mmas_m; ++i)
        for (u32 lower = 0; lower < 2; ++lower)
          for (u32 group = 0; group < config::groups_n; ++group)
            for (u32 x = 0; x < 8; ++x) {
              const u32 from = lane / 4 * 4 + x / 2;
              const u32 row = config::store_row(warp, lane, i, lower);
              const u32 col = config::store_col(warp, lane, group) + x;
              ASSERT_EQ(c.at(row * this->n + col), 0xdeadbeef) << "stored twice";
              c[row * this->n + col] = sums[i][group * 4 + lane % 4][from][lower * 2 + x % 2];
            }
  }
  for (u32 row = 0; row < this->m; ++row)
    for (u32 col = 0; col < this->n; ++col) {
      u32 expected = 0;
      for (u32 x = 0; x < this->k; ++x)
        expected += u32{this->a[row * this->k + x]} * this->b[x * this->n + col];
      ASSERT_EQ(c[row * this->n + col], expected) << row << ", " << col;
    }
}

TYPED_TEST(GemmConfig, MeetsNoBankConflict) {
  // Eight accesses of 16 bytes go through the 32 banks at a time.
  const auto expect_spread = [](auto offset_of) {
    std::set<u32> groups;
    for (u32 i = 0; i < 8; ++i) groups.insert(offset_of(i) / 16 % 8);
    EXPECT_EQ(groups.size(), 8u);
  };
  for (u32 first = 0; first < TypeParam::threads; first += 8) {
    expect_spread([&](u32 i) {
      return TypeParam::a_matrix::offset(TypeParam::a_load(first + i).row,
                                         TypeParam::a_load(first + i).chunk);
    });
    expect_spread([&](u32 i) {
      return TypeParam::b_matrix::offset(TypeParam::b_load(first + i).row,
                                         TypeParam::b_load(first + i).chunk);
    });
  }
  for (u32 warp = 0; warp < this->warps; ++warp)
    for (u32 first = 0; first < lanes; first += 8)
      for (u32 step = 0; step < TypeParam::mmas_k; ++step) {
        for (u32 i = 0; i < TypeParam::mmas_m; ++i)
          expect_spread(
              [&](u32 lane) { return TypeParam::a_fragment(warp, first + lane, i, step); });
        for (u32 j = 0; j < TypeParam::mmas_n / 2; ++j)
          expect_spread(
              [&](u32 lane) { return TypeParam::b_fragment(warp, first + lane, j, step); });
      }
}

} // namespace
} // namespace cusync
