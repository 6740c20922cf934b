// SPDX-License-Identifier: MIT
#include <cusync/sim/fiber.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace cusync::sim {
namespace {

TEST(Fiber, GoesOnWhereItSuspended) {
  std::string trace;
  fiber counting([&](fiber& self) {
    for (const char step : {'a', 'b', 'c'}) {
      trace += step;
      self.suspend();
    }
  });
  while (!counting.ended()) {
    counting.resume();
    trace += '.';
  }
  EXPECT_EQ(trace, "a.b.c..");
}

TEST(Fiber, HandsAnExceptionToWhoeverResumes) {
  fiber failing([](fiber& self) {
    self.suspend();
    throw std::runtime_error("inside");
  });
  failing.resume();
  EXPECT_THROW(failing.resume(), std::runtime_error);
  EXPECT_TRUE(failing.ended());
}

TEST(Fiber, IsUnwoundWhenItIsDestroyed) {
  const auto alive = std::make_shared<int>(0);
  {
    std::vector<std::unique_ptr<fiber>> fibers;
    for (int depth = 0; depth < 20; ++depth)
      fibers.push_back(std::make_unique<fiber>([alive, depth](fiber& self) {
        const auto mine = alive; // on the fiber's own stack
        for (int i = 0; i < depth; ++i) self.suspend();
      }));
    for (int round = 0; round < 10; ++round)
      for (const auto& each : fibers)
        if (!each->ended()) each->resume();
    EXPECT_GT(alive.use_count(), 10);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Fiber, ThatSwallowsItsUnwindingIsSentItAgain) {
  int swallowed = 0;
  {
    fiber stubborn([&](fiber& self) {
      for (int i = 0; i < 3; ++i) try {
          self.suspend();
        } catch (...) {
          ++swallowed;
        }
    });
    stubborn.resume();
  }
  EXPECT_EQ(swallowed, 3);
}

TEST(Fiber, ThatNeverRanIsDestroyedWithoutRunning) {
  bool ran = false;
  {
    fiber idle([&](fiber&) { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(Fiber, MayUseMuchOfItsStack) {
  fiber deep([](fiber& self) {
    volatile char tile[128 * 1024];
    tile[0] = 1;
    self.suspend();
    tile[sizeof tile - 1] = tile[0];
  });
  deep.resume();
  deep.resume();
  EXPECT_TRUE(deep.ended());
}

} // namespace
} // namespace cusync::sim
