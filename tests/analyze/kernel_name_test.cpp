// SPDX-License-Identifier: MIT
#include "analyze/kernel_name.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace cusync::analyze {
namespace {

TEST(KernelName, LosesTypeNamespacesAndParameters) {
  EXPECT_EQ(short_name("void at::native::(anonymous namespace)::max_pool_forward_nhwc<c10::Half, "
                       "int>(int, c10::Half const*)",
                       64),
            "max_pool_forward_nhwc<Half, int>");
  EXPECT_EQ(short_name("nvjet_sm90_hsh_192x8_64x8_4x1_v_bz_splitK_NNT", 64),
            "nvjet_sm90_hsh_192x8_64x8_4x1_v_bz_splitK_NNT");
}

TEST(KernelName, KeepsTheArgumentThatSaysWhatIsComputed) {
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<8, "
                       "at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul> >(int, "
                       "at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul>)",
                       64),
            "vectorized_elementwise_kernel<CUDAFunctor_add>");
  EXPECT_EQ(short_name("void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::Half, "
                       "at::native::MeanOps<c10::Half, float>, unsigned int, 4> >(int)",
                       64),
            "reduce_kernel<MeanOps>");
}

TEST(KernelName, IsDemangled) {
  EXPECT_EQ(short_name("_Z9vectorAddPKfS0_Pfi", 64), "vectorAdd");
  EXPECT_EQ(short_name("_ZN4fast4gemmILi4EfEEvPT0_", 64), "gemm<4, float>");
  EXPECT_EQ(full_name("_Z9vectorAddPKfS0_Pfi"),
            "vectorAdd(float const*, float const*, float*, int)");
}

TEST(KernelName, FitsTheWidth) {
  const std::string name =
      "void a::" + std::string(200, 'k') + "<b::" + std::string(200, 'c') + ">(int)";
  for (const std::size_t width : {12u, 32u, 64u}) EXPECT_LE(short_name(name, width).size(), width);
}

/// A name of 5 characters a level whose demangled form doubles with each.
std::string bomb(int levels) {
  std::string name = "_Z1f";
  for (int i = 0; i < levels; ++i) name += "1AI";
  name += "iE";
  constexpr char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int i = 1; i < levels; ++i)
    name += std::string("S") + (i > 36 ? std::string(1, digits[(i - 1) / 36]) : "") +
            digits[(i - 1) % 36] + "_E";
  return name;
}

TEST(KernelName, ThatDoublesWithEachLevelTakesNoTime) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_LE(short_name(bomb(60), 64).size(), 64u);
  EXPECT_LE(full_name(bomb(60)).size(), 4096u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
}

TEST(KernelName, HasNoBytesThatATerminalOrJsonCannotTake) {
  EXPECT_EQ(printable("a\x1b[31mb\xff\xc3\xa9\xed\xa0\x80\n"), "a?[31mb?\xc3\xa9????");
  EXPECT_EQ(full_name("k\x01"), "k?");
}

TEST(KernelName, OfAnySillyKindIsStillAName) {
  for (const char* name : {"", "_Z", "_Z99999999999999999999a", "<", ">", "a<", "(", "operator()",
                           "a<b>::", "::", "void ", "f<g<h>, (x)1>(int)", "->", "<<<<>>>>"})
    EXPECT_LE(short_name(name, 32).size(), 32u) << name;
}

} // namespace
} // namespace cusync::analyze
