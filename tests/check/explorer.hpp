// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/chain_description.hpp> // chain_description

#include <algorithm>     // max
#include <array>         // array
#include <cstdint>       // int32_t
#include <set>           // set
#include <tuple>         // tuple
#include <unordered_set> // unordered_set
#include <utility>       // pair
#include <vector>        // vector

namespace cusync::test {

/// Walks every schedule of one run of a small chain: blocks get places in any order, tiles finish in
/// any order, states are hashed. It asks orders, policies and dependences what a kernel asks them, and
/// shares no further code with the checker: what is read too early, passed too early, overwritten too
/// early or never done shows in some state.
///
/// A kernel may look at its inputs and steps in any order, so each wait is judged alone. It writes once
/// all its waits have passed, reads until it posts, and posts last.
class explorer {
public:
  /// As many slots as there are blocks, and in a stage that draws its tiles a block a tile: a chain is
  /// not right only because few blocks are there at once.
  static constexpr u32 no_limit = 99;

  /// What was found: stage, tile, and the stage and tile (or semaphore) on the other side.
  using found = std::set<std::tuple<u32, u32, u32, u32>>;
  found stale;       ///< (reader, tile, producer, tile that is not there yet)
  found early;       ///< (waiter, tile, producer, semaphore) passed with posts to come
  found overwritten; ///< (writer, tile, reader or earlier writer, its tile)
  found stuck;       ///< (waiter, tile, producer, semaphore) when nothing can go on
  bool hangs = false;
  bool left_open = false; ///< The last stage was complete, and with it the run, before another one.
  bool tiles_wrong = false; ///< Some tile was not done exactly once.
  u64 states = 0;

  explorer(const sim::chain_description& chain, launch_mode mode, bool whole_tiles, u32 slots,
           u32 run)
      : chain_(chain), mode_(mode), slots_(slots), run_(run) {
    for (u32 s = 0; s < chain.stages.size(); ++s) add_stage(s);
    for (u32 s = 0; s < chain.stages.size(); ++s) add_inputs(s, whole_tiles);
    for (u32 s = 0; s < chain.stages.size(); ++s) add_conflicts(s);
  }

  bool wrong() const {
    return !stale.empty() || !early.empty() || !overwritten.empty() || hangs || tiles_wrong;
  }

  void explore() {
    state first{};
    settle(first);
    std::vector<state> open{first};
    std::unordered_set<u64> seen{packed(first)};
    while (!open.empty()) {
      const state now = open.back();
      open.pop_back();
      ++states;
      judge(now);
      bool moved = false;
      for_each_successor(now, [&](state next) {
        moved = true;
        settle(next);
        if (seen.insert(packed(next)).second) open.push_back(next);
      });
      if (!moved) judge_end(now);
    }
  }

private:
  enum block : std::uint8_t { absent, working, holding, gone };

  struct stage_state {
    std::array<std::uint8_t, 6> blocks{}; ///< One tile a block: a `block` each.
    std::uint8_t placed = 0;              ///< Blocks that have had a place.
    std::uint8_t last = 0;                ///< The block that was placed last.
    std::uint8_t drawn = 0;               ///< Tickets (counter).
    std::uint8_t finished = 0;            ///< Positions whose tile is stored and posted: bits.
  };
  using state = std::array<stage_state, 3>;

  struct semaphore {
    u32 expected = 0;
    u32 posts = 0;                       ///< That a whole run makes.
    std::vector<std::pair<u32, u32>> by; ///< (stage, position)
  };
  struct look { ///< One wait, and what may be read behind it.
    u32 producer = 0;
    bool grid = false;
    std::vector<u32> semaphores; ///< Global numbers.
    std::vector<u32> reads;      ///< Tiles of the producer.
  };
  struct tile_info {
    std::vector<look> looks;
    std::vector<std::pair<u32, u32>> before_write; ///< (stage, tile) that must be done.
  };
  struct stage_info {
    u32 tiles = 0, blocks = 0, tickets = 0;
    bool counter = false, draws = false;
    std::vector<u32> order; ///< Tile by position.
    std::vector<tile_info> of;
    std::vector<u32> events; ///< Stages that must be complete first.
  };
  struct semaphore_set {
    u32 producer = 0;
    sim::any_policy policy;
    u32 first = 0; ///< Global number.
  };

  // --- set-up ---------------------------------------------------------------------------------------

  u32 stage_named(const std::string& name) const {
    u32 s = 0;
    while (chain_.stages[s].name != name) ++s;
    return s;
  }
  static u32 flat(tile_coord t, tile_extent grid) {
    return t.slice + grid.slices * (t.col + grid.cols * t.row);
  }
  template <class Visit> static void each_tile(tile_extent grid, Visit visit) {
    for (u32 r = 0; r < grid.rows; ++r)
      for (u32 c = 0; c < grid.cols; ++c)
        for (u32 k = 0; k < grid.slices; ++k) visit(tile_coord{r, c, k});
  }

  void add_stage(u32 s) {
    const sim::stage_description& from = chain_.stages[s];
    stage_info made;
    made.tiles = static_cast<u32>(from.grid.count());
    made.blocks = from.blocks == 0 ? made.tiles : from.blocks;
    made.counter = from.source == tile_source::counter;
    if (made.counter && slots_ == no_limit) made.blocks = std::max(made.blocks, made.tiles);
    for (u32 i = 0; i < made.tiles; ++i)
      made.order.push_back(flat(from.order.tile_at(i, from.grid), from.grid));
    made.of.resize(made.tiles);
    stages_.push_back(made);
  }

  void add_inputs(u32 s, bool whole_tiles) {
    const sim::stage_description& consumer = chain_.stages[s];
    bool grid_wait = false; // on the stage launched right ahead: then all before it is there, too
    for (const auto& edge : chain_.dependences)
      if (edge.consumer == consumer.name && edge.policy.whole_grid() && mode_ == launch_mode::pdl &&
          stage_named(edge.producer) + 1 == s)
        grid_wait = true;
    for (const auto& edge : chain_.dependences) {
      if (edge.consumer != consumer.name) continue;
      const u32 p = stage_named(edge.producer);
      const bool event = mode_ == launch_mode::streams && edge.policy.whole_grid();
      if (event) stages_[s].events.push_back(p);
      const bool by_semaphores = mode_ != launch_mode::serial && !event && !grid_wait;
      const u32 base = by_semaphores ? base_of(p, edge.policy) : 0;
      if (by_semaphores) stages_[s].draws = true;
      each_tile(consumer.grid, [&](tile_coord t) {
        const auto add = [&](tile_range range) {
          look made;
          made.producer = p;
          made.grid = grid_wait;
          const tile_extent from = chain_.stages[p].grid;
          each_tile(from, [&](tile_coord u) {
            if (u.row >= range.row_begin && u.row < range.row_end && u.col >= range.col_begin &&
                u.col < range.col_end && (u.col - range.col_begin) % range.col_stride == 0)
              made.reads.push_back(flat(u, from));
          });
          const semaphore_range guards = edge.policy.guards(range, t, consumer.grid);
          for (u32 i = 0; by_semaphores && i < guards.outer; ++i)
            for (u32 j = 0; j < guards.inner; ++j)
              made.semaphores.push_back(base + guards.begin + i * guards.outer_stride +
                                        j * guards.inner_stride);
          stages_[s].of[flat(t, consumer.grid)].looks.push_back(made);
        };
        const step_range steps = edge.reads.steps(t);
        if (whole_tiles) return add(edge.reads.reads(t));
        for (u32 step = steps.begin; step < steps.end; ++step) add(edge.reads.reads(t, step));
      });
    }
    stages_[s].draws = stages_[s].draws || stages_[s].counter;
    stages_[s].tickets = stages_[s].blocks + (stages_[s].counter ? stages_[s].tiles : 0);
  }

  /// Equal policies of consumers of one stage share their semaphores.
  u32 base_of(u32 producer, const sim::any_policy& policy) {
    for (const semaphore_set& set : sets_)
      if (set.producer == producer && set.policy == policy) return set.first;
    sets_.push_back({producer, policy, static_cast<u32>(semaphores_.size())});
    for (u32 i = 0; i < policy.semaphore_count(); ++i)
      semaphores_.push_back({policy.posts_expected(i), 0, {}});
    const sim::stage_description& from = chain_.stages[producer];
    for (u32 i = 0; i < taken(stages_[producer]) && policy.semaphore_count() != 0; ++i) {
      semaphore& by =
          semaphores_[sets_.back().first + policy.semaphore_of(from.order.tile_at(i, from.grid))];
      ++by.posts;
      by.by.emplace_back(producer, i);
    }
    return sets_.back().first;
  }
  static u32 taken(const stage_info& stage) {
    return stage.counter || stage.blocks > stage.tiles ? stage.tiles : stage.blocks;
  }

  /// Elements that a tile covers in its buffer.
  static std::set<std::pair<u32, u32>> elements(tile_coord t, element_extent size) {
    std::set<std::pair<u32, u32>> found;
    for (u32 r = 0; r < size.rows; ++r)
      for (u32 c = 0; c < size.cols; ++c)
        found.emplace(t.row * size.rows + r, t.col * size.cols + c);
    return found;
  }
  static bool overlap(tile_coord a, element_extent size_a, tile_coord b, element_extent size_b) {
    const auto there = elements(b, size_b);
    for (const auto& element : elements(a, size_a))
      if (there.count(element) != 0) return true;
    return false;
  }

  /// Who must be done before a tile of stage `s` may be stored: whoever wrote these elements, and
  /// whoever reads what was written there, or was there before the chain.
  void add_conflicts(u32 s) {
    const sim::stage_description& writer = chain_.stages[s];
    if (writer.writes.empty()) return;
    each_tile(writer.grid, [&](tile_coord w) {
      auto& before = stages_[s].of[flat(w, writer.grid)].before_write;
      for (u32 p = 0; p < s; ++p) {
        const sim::stage_description& old = chain_.stages[p];
        if (old.writes != writer.writes) continue;
        each_tile(old.grid, [&](tile_coord lost) {
          if (!overlap(w, writer.tile, lost, old.tile)) return;
          before.emplace_back(p, flat(lost, old.grid));
          for (u32 r = 0; r < stages_.size(); ++r)
            for (u32 t = 0; t < stages_[r].tiles; ++t)
              for (const look& each : stages_[r].of[t].looks)
                if (each.producer == p && !(r == s && t == flat(w, writer.grid)))
                  for (const u32 read : each.reads)
                    if (read == flat(lost, old.grid)) before.emplace_back(r, t);
        });
      }
      for (const auto& initial : chain_.initial_reads) add_initial(s, w, initial);
    });
  }

  void add_initial(u32 s, tile_coord w, const sim::initial_read_description& initial) {
    const sim::stage_description& writer = chain_.stages[s];
    if (initial.buffer != writer.writes) return;
    element_extent size{1, 1};
    for (const auto& each : chain_.buffers)
      if (each.name == initial.buffer) size = each.tile;
    const u32 r = stage_named(initial.consumer);
    const tile_extent grid = chain_.stages[r].grid;
    each_tile(grid, [&](tile_coord t) {
      const tile_range range = initial.reads.reads(t);
      each_tile(initial.reads.producer(), [&](tile_coord u) {
        if (range.contains(u.row, u.col) && overlap(w, writer.tile, u, size) &&
            !(r == s && flat(t, grid) == flat(w, writer.grid)))
          stages_[s].of[flat(w, writer.grid)].before_write.emplace_back(r, flat(t, grid));
      });
    });
  }

  // --- what is the case in a state ------------------------------------------------------------------

  bool posted(const state& now, u32 s, u32 position) const {
    return (now[s].finished >> position & 1) != 0;
  }
  /// Stored by whoever computes it, and nobody is to store it again.
  bool done(const state& now, u32 s, u32 tile) const {
    bool any = false;
    for (u32 i = 0; i < taken(stages_[s]); ++i)
      if (stages_[s].order[i] == tile) {
        if (!posted(now, s, i)) return false;
        any = true;
      }
    return any;
  }
  bool complete(const state& now, u32 s) const {
    const stage_info& stage = stages_[s];
    if (now[s].placed < stage.blocks) return false;
    if (!stage.counter) {
      for (u32 b = 0; b < stage.blocks; ++b)
        if (now[s].blocks[b] != gone) return false;
      return true;
    }
    return now[s].drawn == stage.tickets && active(now, s) == 0 && !held(now, s);
  }
  /// Tiles being worked on, of a stage that draws them.
  u32 active(const state& now, u32 s) const {
    u32 count = 0;
    for (u32 i = 0; i < stages_[s].tiles && i < now[s].drawn; ++i)
      if (!posted(now, s, i)) ++count;
    return count;
  }
  /// Mode pdl: some block of a stage stays until the stage ahead is complete.
  bool must_hold(const state& now, u32 s) const {
    return mode_ == launch_mode::pdl && s != 0 && !complete(now, s - 1);
  }
  /// The drawer of the last ticket, which is always one past the tiles, is still there.
  bool held(const state& now, u32 s) const {
    return now[s].drawn == stages_[s].tickets && must_hold(now, s);
  }
  u32 resident(const state& now) const {
    u32 count = 0;
    for (u32 s = 0; s < stages_.size(); ++s) {
      if (stages_[s].counter) {
        count += active(now, s) + (held(now, s) ? 1 : 0);
        continue;
      }
      for (u32 b = 0; b < stages_[s].blocks; ++b)
        if (now[s].blocks[b] == working || now[s].blocks[b] == holding) ++count;
    }
    return count;
  }
  bool may_start(const state& now, u32 s) const {
    if (s == 0) return true;
    if (mode_ == launch_mode::serial) return complete(now, s - 1);
    if (mode_ == launch_mode::pdl) return now[s - 1].placed == stages_[s - 1].blocks;
    for (const u32 producer : stages_[s].events)
      if (!complete(now, producer)) return false;
    if (slots_ == no_limit) return true; // a gate keeps places free; it says nothing about data
    for (u32 e = 0; e < s; ++e) {
      if (chain_.gate == sim::gate_kind::all_blocks && now[e].placed < stages_[e].blocks)
        return false;
      if (chain_.gate == sim::gate_kind::first_block && now[e].placed == 0) return false;
    }
    return true;
  }

  /// As the device compares: 32 bits, signed, against a semaphore that has never been reset.
  bool passes(const state& now, u32 which) const {
    const semaphore& each = semaphores_[which];
    u32 value = run_ * each.posts;
    for (const auto& [s, position] : each.by) value += posted(now, s, position) ? 1 : 0;
    const u32 target = run_ * each.expected + each.expected;
    return static_cast<std::int32_t>(value - target) >= 0;
  }
  bool passes(const state& now, u32 s, const look& each) const {
    if (each.grid) return complete(now, s - 1);
    for (const u32 which : each.semaphores)
      if (!passes(now, which)) return false;
    return true;
  }
  bool passes_all(const state& now, u32 s, u32 tile) const {
    for (const look& each : stages_[s].of[tile].looks)
      if (!passes(now, s, each)) return false;
    return true;
  }
  bool at_work(const state& now, u32 s, u32 position) const {
    if (posted(now, s, position)) return false;
    return stages_[s].counter ? position < now[s].drawn : now[s].blocks[position] == working;
  }

  // --- what can happen next -------------------------------------------------------------------------

  template <class Visit> void for_each_successor(const state& now, const Visit& visit) const {
    const bool room = resident(now) < slots_;
    for (u32 s = 0; s < stages_.size(); ++s) {
      if (room && slots_ != no_limit && may_start(now, s)) for_each_place(now, s, visit);
      for (u32 i = 0; i < taken(stages_[s]); ++i)
        if (at_work(now, s, i) && passes_all(now, s, stages_[s].order[i])) {
          state next = now;
          finish(next, s, i);
          visit(next);
        }
    }
  }

  template <class Visit> void for_each_place(const state& now, u32 s, const Visit& visit) const {
    if (stages_[s].counter) { // all blocks are alike
      if (now[s].placed == stages_[s].blocks) return;
      state next = now;
      place(next, s, 0);
      visit(next);
      return;
    }
    for (u32 b = 0; b < stages_[s].blocks; ++b)
      if (now[s].blocks[b] == absent) {
        state next = now;
        place(next, s, b);
        visit(next);
      }
  }

  void place(state& now, u32 s, u32 b) const {
    ++now[s].placed;
    now[s].last = static_cast<std::uint8_t>(b);
    if (stages_[s].counter)
      draw(now, s);
    else if (b < stages_[s].tiles)
      now[s].blocks[b] = working;
    else
      leave(now, s, b);
  }
  void finish(state& now, u32 s, u32 position) const {
    now[s].finished = static_cast<std::uint8_t>(now[s].finished | 1u << position);
    if (stages_[s].counter)
      draw(now, s);
    else
      leave(now, s, position);
  }
  /// A block draws until its first ticket past the tiles.
  void draw(state& now, u32 s) const { ++now[s].drawn; }
  void leave(state& now, u32 s, u32 b) const {
    const bool closes =
        stages_[s].draws ? now[s].placed == stages_[s].blocks && now[s].last == b : b == 0;
    now[s].blocks[b] = closes && must_hold(now, s) ? holding : gone;
  }

  /// What happens by itself: a block that holds its stage open leaves, and, where places do not matter,
  /// all blocks that may be there are.
  void settle(state& now) const {
    for (bool again = true; again;) {
      again = false;
      for (u32 s = 0; s < stages_.size(); ++s) {
        for (u32 b = 0; !stages_[s].counter && b < stages_[s].blocks; ++b)
          if (now[s].blocks[b] == holding && !must_hold(now, s)) {
            now[s].blocks[b] = gone;
            again = true;
          }
        while (slots_ == no_limit && may_start(now, s) && now[s].placed < stages_[s].blocks) {
          place(now, s, now[s].placed);
          again = true;
        }
      }
    }
  }

  // --- verdicts -------------------------------------------------------------------------------------

  void judge(const state& now) {
    if (mode_ != launch_mode::streams && complete(now, static_cast<u32>(stages_.size() - 1)))
      for (u32 s = 0; s < stages_.size(); ++s) left_open = left_open || !complete(now, s);
    for (u32 s = 0; s < stages_.size(); ++s)
      for (u32 i = 0; i < taken(stages_[s]); ++i)
        if (at_work(now, s, i)) judge(now, s, stages_[s].order[i]);
  }
  void judge(const state& now, u32 s, u32 tile) {
    for (const look& each : stages_[s].of[tile].looks) {
      for (const u32 which : each.semaphores)
        for (const auto& [p, position] : semaphores_[which].by)
          if (passes(now, which) && !posted(now, p, position))
            early.emplace(s, tile, each.producer, local(which));
      if (!passes(now, s, each)) continue;
      for (const u32 read : each.reads)
        if (!done(now, each.producer, read)) stale.emplace(s, tile, each.producer, read);
    }
    if (!passes_all(now, s, tile)) return;
    for (const auto& [other, its] : stages_[s].of[tile].before_write)
      if (!done(now, other, its)) overwritten.emplace(s, tile, other, its);
  }

  u32 local(u32 which) const {
    u32 first = 0;
    for (const semaphore_set& set : sets_)
      if (set.first <= which) first = set.first;
    return which - first;
  }

  void judge_end(const state& now) {
    bool all = true;
    for (u32 s = 0; s < stages_.size(); ++s) all = all && complete(now, s);
    if (!all) {
      hangs = true;
      for (u32 s = 0; s < stages_.size(); ++s)
        for (u32 i = 0; i < taken(stages_[s]); ++i)
          if (at_work(now, s, i))
            for (const look& each : stages_[s].of[stages_[s].order[i]].looks)
              for (const u32 which : each.semaphores)
                if (!passes(now, which))
                  stuck.emplace(s, stages_[s].order[i], each.producer, local(which));
    }
    for (u32 s = 0; s < stages_.size(); ++s) {
      if (!complete(now, s)) continue;
      std::vector<u32> times(stages_[s].tiles, 0);
      for (u32 i = 0; i < taken(stages_[s]); ++i)
        if (posted(now, s, i)) ++times[stages_[s].order[i]];
      for (const u32 each : times)
        if (each != 1) tiles_wrong = true;
    }
  }

  u64 packed(const state& now) const {
    u64 bits = 0;
    const auto add = [&](u64 value, u32 width) { bits = bits << width | value; };
    for (u32 s = 0; s < stages_.size(); ++s) {
      add(now[s].finished, 4);
      if (stages_[s].counter) {
        add(now[s].placed, 3);
        add(now[s].drawn, 4);
        continue;
      }
      for (u32 b = 0; b < 5; ++b) add(now[s].blocks[b], 2);
      add(now[s].placed == stages_[s].blocks ? now[s].last : 0, 3);
    }
    return bits;
  }

  const sim::chain_description& chain_;
  launch_mode mode_;
  u32 slots_, run_;
  std::vector<stage_info> stages_;
  std::vector<semaphore_set> sets_;
  std::vector<semaphore> semaphores_;
};

} // namespace cusync::test
