// SPDX-License-Identifier: MIT
#include <cusync/sim/scheduler.hpp>

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace cusync::sim {
namespace {

constexpr auto elapse = action::kind::elapse;
constexpr auto wait = action::kind::wait;

/// What each block of a launch does: actions, and before each of them posts.
struct step {
  action next;
  std::vector<u32> posts{};
  bool triggers = false;
};

/// Blocks that follow a script, and a log of when they began and ended.
class scripted {
public:
  scripted(const gpu& device, const schedule& how, u32 semaphores = 4)
      : words_(semaphores, 0), scheduler_(*this, device, how, words_.data(), semaphores) {}

  u32 add(launch added, std::vector<step> script) {
    scripts_.push_back(std::move(script));
    return scheduler_.add(std::move(added));
  }
  void run() { scheduler_.run(); }

  const launch& at(u32 index) const { return scheduler_.launch_at(index); }
  u64 begin(u32 launch, u32 block) const { return begins_.at({launch, block}); }
  u64 end(u32 launch, u32 block) const { return ends_.at({launch, block}); }
  u32 sm(u32 launch, u32 block) const { return sms_.at({launch, block}); }

  void placed(u32 id) {
    if (progress_.size() <= id) progress_.resize(id + 1);
    progress_[id] = 0;
  }
  action resume(u32 id) {
    const resident& block = scheduler_.at(id);
    const std::pair<u32, u32> who{block.launch, block.block};
    if (progress_[id] == 0) {
      begins_[who] = scheduler_.now();
      sms_[who] = block.sm;
      scheduler_.count_start(id);
    }
    const std::vector<step>& script = scripts_[block.launch];
    if (progress_[id] == script.size()) {
      ends_[who] = scheduler_.now();
      return {};
    }
    const step& now = script[progress_[id]++];
    if (now.triggers) scheduler_.trigger(id);
    for (const u32 semaphore : now.posts) scheduler_.post(semaphore);
    return now.next;
  }
  [[noreturn]] void stuck() const { throw std::runtime_error("stuck"); }
  [[noreturn]] void expired(u32) const {
    throw std::runtime_error("expired at " + std::to_string(scheduler_.now()));
  }
  [[noreturn]] void left_open(u32, u32) const { throw std::runtime_error("left open"); }

private:
  std::vector<u32> words_;
  scheduler<scripted> scheduler_;
  std::vector<std::vector<step>> scripts_;
  std::vector<std::size_t> progress_;
  std::map<std::pair<u32, u32>, u64> begins_, ends_;
  std::map<std::pair<u32, u32>, u32> sms_;
};

/// Two SMs with room for four blocks of 32 threads each; every cost a number that is easy to see.
gpu small_gpu() {
  gpu device = find_gpu("H200");
  device.sms = 2;
  device.blocks_per_sm = 4;
  device.block_start_ns = 1;
  device.turnaround_ns = 10;
  device.hand_over_ns = 100;
  device.grid_wait_ns = 1000;
  return device;
}
launch of_blocks(u32 blocks, std::vector<precondition> after = {}, u64 delay = 0,
                 u32 threads = 512) {
  launch made;
  made.blocks = blocks;
  made.footprint = {threads, 0, 0}; // four fill an SM
  made.after = std::move(after);
  made.delay_ns = delay;
  return made;
}

TEST(Scheduler, FillsSmsInTurnAndThenAsBlocksLeave) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(10, {}, 5), {{{elapse, 50}}});
  machine.run();
  for (u32 block = 0; block < 8; ++block) {
    EXPECT_EQ(machine.begin(0, block), 6u);
    EXPECT_EQ(machine.sm(0, block), block % 2);
  }
  for (u32 block = 8; block < 10; ++block) EXPECT_EQ(machine.begin(0, block), 66u);
  EXPECT_EQ(machine.at(0).end_ns, 116u);
}

TEST(Scheduler, StartsALaunchBehindACompleteOne) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(3), {{{elapse, 50}}});
  machine.add(of_blocks(1, {{milestone::completed, 0}}, 70), {{{elapse, 100}}});
  machine.add(of_blocks(1, {{milestone::completed, 0}}, 7), {{{elapse, 1}}});
  machine.run();
  EXPECT_EQ(machine.begin(1, 0), 51u + 70 + 1);
  EXPECT_EQ(machine.begin(2, 0), 51u + 10); // where a block has just left
}

TEST(Scheduler, StartsALaunchOnceAllBlocksHaveTriggeredOrLeft) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(9),
              {{{elapse, 50}, {}, true}, {{elapse, 50}}}); // the ninth waits for a place
  machine.add(of_blocks(1, {{milestone::all_triggered, 0}}, 7), {});
  machine.add(of_blocks(2), {{{elapse, 30}}}); // never triggers: an exit counts
  machine.add(of_blocks(1, {{milestone::all_triggered, 2}}, 7), {});
  machine.run();
  EXPECT_EQ(machine.begin(0, 8), 111u);
  EXPECT_EQ(machine.at(1).first_block_ns, 111u + 7);
  EXPECT_EQ(machine.at(3).first_block_ns, machine.end(2, 1) + 7);
}

TEST(Scheduler, OpensGatesAtTheFirstOrTheLastBlock) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(9), {{{elapse, 50}}});
  machine.add(of_blocks(1, {{milestone::one_started, 0}}), {});
  machine.add(of_blocks(1, {{milestone::all_started, 0}}), {});
  machine.run();
  EXPECT_EQ(machine.at(1).first_block_ns, 1u);
  EXPECT_EQ(machine.at(2).first_block_ns, 61u);
}

TEST(Scheduler, LaunchesThatNeedNotWaitPassThoseThatDo) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(1), {{{elapse, 50}}});
  machine.add(of_blocks(1, {{milestone::completed, 0}}), {});
  machine.add(of_blocks(1, {{milestone::one_started, 0}}), {});
  machine.run();
  EXPECT_EQ(machine.at(2).first_block_ns, 1u);
  EXPECT_EQ(machine.at(1).first_block_ns, 51u);
}

TEST(Scheduler, EndsAWaitAHandOverBehindItsLastPost) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(1),
              {{{elapse, 50}}, {{elapse, 20}, {0}}, {{elapse, 0}, {0}}}); // posts at 51 and 71
  machine.add(of_blocks(1), {{{wait, 0, 0, 2}}});                         // waits
  machine.add(of_blocks(1),
              {{{elapse, 99}}, {{wait, 0, 0, 2}}}); // comes behind the post, before it is seen
  machine.add(of_blocks(1),
              {{{elapse, 500}}, {{wait, 30, 0, 2}}}); // finds it there, at the cost of a look
  machine.run();
  EXPECT_EQ(machine.end(1, 0), 171u);
  EXPECT_EQ(machine.end(2, 0), 171u);
  EXPECT_EQ(machine.end(3, 0), 531u);
}

TEST(Scheduler, WakesOnlyWaitersThatHaveWhatTheyWant) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  for (const u32 wanted : {3u, 1u, 2u}) machine.add(of_blocks(1), {{{wait, 0, 0, wanted}}});
  machine.add(of_blocks(1),
              {{{elapse, 10}}, {{elapse, 10}, {0}}, {{elapse, 10}, {0}}, {{elapse, 10}, {0}}});
  machine.run();
  EXPECT_EQ(machine.end(1, 0), 111u);
  EXPECT_EQ(machine.end(2, 0), 121u);
  EXPECT_EQ(machine.end(0, 0), 131u);
}

TEST(Scheduler, EndsAGridWaitBehindTheLaunchAhead) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(1), {{{elapse, 50}}});
  launch behind = of_blocks(1);
  behind.ahead = 0;
  machine.add(behind, {{{action::kind::wait_for_grid}}});
  machine.add(behind, {{{elapse, 5000}}, {{action::kind::wait_for_grid}}});
  machine.run();
  EXPECT_EQ(machine.end(1, 0), 1051u);
  EXPECT_EQ(machine.end(2, 0), 5001u);
}

TEST(Scheduler, DispatchesBlocksAndStagesInAnyOrder) {
  const gpu device = small_gpu();
  for (const pick order : {pick::in_order, pick::reversed, pick::random}) {
    const schedule how{.blocks = order, .stages = order, .slots = 1};
    scripted machine(device, how);
    machine.add(of_blocks(3), {{{elapse, 50}}});
    machine.add(of_blocks(3), {{{elapse, 50}}});
    machine.run();
    u64 last = 0;
    for (u32 launch = 0; launch < 2; ++launch)
      for (u32 block = 0; block < 3; ++block) last = std::max(last, machine.end(launch, block));
    EXPECT_EQ(last, 1u + 6 * 50 + 5 * 10);
    if (order == pick::random) continue;
    // The first place was given before the second launch was there.
    EXPECT_EQ(machine.begin(0, 1) < machine.begin(1, 1), order == pick::in_order);
    EXPECT_EQ(machine.begin(1, 1) < machine.begin(1, 2), order == pick::in_order);
  }
}

TEST(Scheduler, RepeatsARandomScheduleExactly) {
  const gpu device = small_gpu();
  std::vector<u64> ends;
  for (const u64 seed : {1u, 1u, 2u, 3u, 4u}) {
    const schedule how{.blocks = pick::random,
                       .stages = pick::random,
                       .ties = pick::random,
                       .seed = seed,
                       .slots = 2};
    scripted machine(device, how);
    machine.add(of_blocks(7), {{{elapse, 50}}, {{elapse, 0}, {1}}});
    machine.add(of_blocks(5, {{milestone::all_started, 0}}), {{{wait, 0, 1, 7}}, {{elapse, 13}}});
    machine.run();
    ends.push_back(machine.begin(0, 3) * 1000 + machine.begin(1, 2));
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_TRUE(ends[0] != ends[2] || ends[0] != ends[3] || ends[0] != ends[4]);
}

TEST(Scheduler, NoticesThatNothingCanHappen) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(1), {{{wait, 0, 0, 1}}});
  EXPECT_THROW(machine.run(), std::runtime_error);
}

std::string failure_of(scripted& machine) {
  try {
    machine.run();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(Scheduler, ExpiresAWaitOnlyAfterALimitWithoutAnyPost) {
  const gpu device = small_gpu();
  const schedule how{.spin_limit_ns = 1000};
  scripted alive(device, how), silent(device, how);
  const std::vector<step> waits{{{wait, 0, 0, 1}}};
  alive.add(of_blocks(1), waits);
  alive.add(of_blocks(1),
            {{{elapse, 900}}, {{elapse, 900}, {1}}, {{elapse, 900}, {1}}, {{elapse, 0}, {0}}});
  EXPECT_EQ(failure_of(alive), "none");
  silent.add(of_blocks(1), waits);
  silent.add(of_blocks(1), {{{elapse, 900}}, {{elapse, 1900}, {1}}, {{elapse, 0}, {0}}});
  EXPECT_EQ(failure_of(silent), "expired at 1901");
}

TEST(Scheduler, NoticesAStageThatIsCompleteBeforeTheOneAhead) {
  const gpu device = small_gpu();
  const schedule how;
  scripted machine(device, how);
  machine.add(of_blocks(1), {{{elapse, 50}}});
  launch last = of_blocks(1);
  last.closes_run = true;
  machine.add(last, {{{elapse, 20}}});
  EXPECT_EQ(failure_of(machine), "left open");
}

} // namespace
} // namespace cusync::sim
