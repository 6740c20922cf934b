// SPDX-License-Identifier: MIT
// The checker against the explorer: on random small chains, many of them with a planted fault, the two
// agree both ways, and what the checker names is what the explorer has seen.

#include "explorer.hpp"
#include "random_chain.hpp"

#include <cusync/sim/check.hpp>
#include <cusync/sim/described_chain.hpp>

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <string>

namespace cusync::test {
namespace {

using sim::check_report;
using sim::property;
using sim::verdict;

constexpr u32 seeds = 10; ///< Test cases, so that none takes long.
constexpr u32 chains = 1000;

/// All that the explorer finds: places without limit for what is read, waited for and overwritten, the
/// chain's own slots for what can hang; both ways of waiting; the first run, and one about the wraps.
struct exploration {
  explorer::found stale, early, overwritten, stuck;
  bool hangs = false, tiles_wrong = false, left_open = false;
  u64 states = 0;

  explicit exploration(const small_chain& of, u64 seed) {
    constexpr u32 about_wraps[] = {1, 0x7fffffff, 0xffffffff, 0x55555555, 0x3fffffff};
    for (const bool whole : {false, true}) {
      look(of, whole, explorer::no_limit, 0);
      look(of, whole, explorer::no_limit, about_wraps[seed % std::size(about_wraps)]);
      look(of, whole, explorer::no_limit,
           0x80000000); // a wait that passes early once waits for ever
      look(of, whole, of.chain.slots, 0);
    }
  }

  bool wrong() const {
    return !stale.empty() || !early.empty() || !overwritten.empty() || hangs || tiles_wrong;
  }

private:
  void look(const small_chain& of, bool whole, u32 slots, u32 run) {
    explorer walk(of.chain, of.mode, whole, slots, run);
    walk.explore();
    stale.merge(walk.stale);
    early.merge(walk.early);
    overwritten.merge(walk.overwritten);
    stuck.merge(walk.stuck);
    hangs = hangs || walk.hangs;
    left_open = left_open || walk.left_open;
    tiles_wrong = tiles_wrong || walk.tiles_wrong;
    states += walk.states;
  }
};

check_report checked(const small_chain& of) {
  sim::described_chain chain(of.chain, {.mode = of.mode}, sim::faults::kept);
  return sim::check(chain, of.chain.device, of.mode,
                    {.gate = of.chain.gate, .slots = of.chain.slots});
}

u32 stage_index(const small_chain& in, const std::string& name) {
  u32 s = 0;
  while (in.chain.stages[s].name != name) ++s;
  return s;
}

/// What the checker names, as the explorer notes it.
std::tuple<u32, u32, u32, u32> place_of(const small_chain& in, const sim::counterexample& named,
                                        bool semaphore) {
  const u32 s = stage_index(in, named.stage), other = stage_index(in, named.other);
  return {s, index_of(named.tile, in.chain.stages[s].grid), other,
          semaphore ? *named.semaphore : index_of(*named.other_tile, in.chain.stages[other].grid)};
}

void expect_agreement(const small_chain& of, const check_report& report, const exploration& seen) {
  const auto refuted = [&](property which) { return report[which].is == verdict::refuted; };
  const auto named = [&](property which, const explorer::found& in, bool semaphore) {
    return in.count(place_of(of, *report[which].counter, semaphore)) != 0;
  };
  for (const auto& each : report.results) EXPECT_NE(each.is, verdict::unproved) << each.why;
  EXPECT_EQ(!report.proved(), seen.wrong());
  EXPECT_FALSE(seen.left_open); // the next run would begin, and write what this one still reads
  EXPECT_EQ(refuted(property::tiles), seen.tiles_wrong);
  if (seen.tiles_wrong) return; // the others assume that each tile is done once
  if (refuted(property::thresholds)) {
    EXPECT_TRUE(!seen.early.empty() || seen.hangs) << report[property::thresholds].why;
    EXPECT_TRUE(named(property::thresholds, seen.early, true) ||
                named(property::thresholds, seen.stuck, true))
        << report[property::thresholds].why;
  }
  EXPECT_TRUE(seen.early.empty() || refuted(property::thresholds));
  EXPECT_EQ(refuted(property::liveness), seen.hangs) << report[property::liveness].why;
  if (refuted(property::liveness)) {
    EXPECT_TRUE(named(property::liveness, seen.stuck, true)) << report[property::liveness].why;
  }
  if (refuted(property::coverage)) {
    EXPECT_TRUE(named(property::coverage, seen.stale, false)) << report[property::coverage].why;
  }
  // A wait that may pass early orders nothing.
  EXPECT_TRUE(seen.overwritten.empty() || refuted(property::overwrites));
  if (!seen.early.empty()) return; // what passes early may read or overwrite early
  EXPECT_EQ(refuted(property::coverage), !seen.stale.empty()) << report[property::coverage].why;
  EXPECT_EQ(refuted(property::overwrites), !seen.overwritten.empty())
      << report[property::overwrites].why;
  if (refuted(property::overwrites) &&
      report[property::overwrites].counter->other_tile.has_value()) {
    EXPECT_TRUE(named(property::overwrites, seen.overwritten, false))
        << report[property::overwrites].why;
  }
}

std::string text_of(const small_chain& of) {
  std::ostringstream text;
  text << "mode " << name_of(of.mode) << ", slots " << of.chain.slots << ", gate "
       << static_cast<int>(of.chain.gate) << ", planted: " << name_of(of.planted) << "\n";
  for (const auto& s : of.chain.stages) {
    text << "  stage " << s.name << " " << to_string(s.grid) << " blocks " << s.blocks
         << (s.source == tile_source::counter ? " counter" : "") << " tile " << s.tile.rows << "x"
         << s.tile.cols << " writes '" << s.writes << "' order";
    for (u32 i = 0; i < s.grid.count(); ++i) text << " " << to_string(s.order.tile_at(i, s.grid));
    text << "\n";
  }
  for (const auto& e : of.chain.dependences) {
    text << "  " << e.producer << " -> " << e.consumer << " policy " << e.policy.get().index()
         << " posts";
    for (u32 i = 0; i < e.policy.semaphore_count(); ++i) text << " " << e.policy.posts_expected(i);
    text << " of";
    for (u32 i = 0; i < e.reads.producer().count() && e.policy.semaphore_count() != 0; ++i)
      text << " " << e.policy.semaphore_of(tile_of(i, e.reads.producer()));
    for (u32 i = 0; i < e.reads.consumer().count(); ++i) {
      const tile_coord tile = tile_of(i, e.reads.consumer());
      for (u32 step = e.reads.steps(tile).begin; step < e.reads.steps(tile).end; ++step) {
        const tile_range r = e.reads.reads(tile, step);
        const semaphore_range g = e.policy.guards(r, tile, e.reads.consumer());
        text << "\n    " << to_string(tile) << " step " << step << ": rows " << r.row_begin << "-"
             << r.row_end << " cols " << r.col_begin << "-" << r.col_end << "/" << r.col_stride
             << " waits";
        for (u32 k = 0; k < g.count(); ++k) text << " " << g.at(k);
      }
    }
    text << "\n";
  }
  return text.str();
}

bool writes_again(const small_chain& of) {
  u32 writers = 0;
  for (const auto& stage : of.chain.stages) writers += stage.writes.empty() ? 0 : 1;
  return writers > 1;
}

class Agreement : public testing::TestWithParam<u32> {};

TEST_P(Agreement, OnAThousandRandomChains) {
  u32 made[faults] = {}, refuted[faults] = {};
  u32 rewritten = 0;
  u64 states = 0;
  for (u32 i = 0; i < chains; ++i) {
    const u64 seed = u64{GetParam()} * chains + i;
    const small_chain of = chain_maker(seed).make();
    const exploration seen(of, seed);
    const check_report report = checked(of);
    expect_agreement(of, report, seen);
    if (HasFailure()) {
      FAIL() << "seed " << seed << ": checker " << (report.proved() ? "proves" : "refutes")
             << ", explorer: " << seen.stale.size() << " stale, " << seen.early.size() << " early, "
             << seen.overwritten.size() << " overwritten, hangs " << seen.hangs << ", tiles wrong "
             << seen.tiles_wrong << "\n"
             << text_of(of);
    }
    const u32 kind = static_cast<u32>(of.planted);
    const bool found = of.planted == fault::none
                           ? !report.proved()
                           : report[property_of(of.planted)].is == verdict::refuted;
    ++made[kind];
    refuted[kind] += found ? 1 : 0;
    rewritten += report.proved() && writes_again(of) ? 1 : 0;
    states += seen.states;
  }
  u32 planted = 0;
  for (u32 f = 0; f < faults; ++f) {
    std::cout << name_of(static_cast<fault>(f)) << ": " << refuted[f] << " of " << made[f]
              << " refuted" << (f == 0 ? "" : " for it") << "\n";
    planted += f == 0 ? 0 : made[f];
    EXPECT_GT(refuted[f], 30u) << name_of(static_cast<fault>(f));
    EXPECT_GT(made[f], 60u) << name_of(static_cast<fault>(f));
  }
  std::cout << "buffers rightly written again: " << rewritten << "; " << states << " states\n";
  EXPECT_GT(3 * planted, chains);
  EXPECT_LT(refuted[0], made[0] / 2); // most of the others are right
  EXPECT_GT(rewritten, 10u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Agreement, testing::Range(0u, seeds));

} // namespace
} // namespace cusync::test
