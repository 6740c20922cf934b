// SPDX-License-Identifier: MIT
#include "analysis.hpp"
#include "notes.hpp"
#include "overlap_model.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <algorithm> // clamp, max, min, sort, upper_bound
#include <map>       // map
#include <numeric>   // iota
#include <tuple>     // tie

namespace cusync::analyze {
namespace {

/// What is known of the pairs that were left out, and of the host.
class analyser {
public:
  analyser(trace&& from, const std::optional<sim::gpu>& described, const progress_report& report)
      : from_(std::move(from)), report_(report) {
    find_gpus(described);
  }

  analysis run() {
    sort_kernels();
    find_shapes();
    facts_.persistent = count([](const kernel_shape& shape) { return shape.may_be_persistent; });
    facts_.usable = count([](const kernel_shape& shape) { return shape.usable(); });
    fill_facts();
    if (facts_.usable == 0) throw invalid_argument(reason_of(facts_));
    find_calls();
    find_steps();
    pair_up();
    simulate();
    rate_pairs();
    add_totals();
    rank();
    found_.streams = facts_.streams;
    found_.summary = summary_of(facts_);
    found_.notes = notes_of(facts_);
    found_.names = std::move(from_.names);
    found_.lanes = std::move(from_.lanes);
    return std::move(found_);
  }

private:
  // --- GPUs, streams, kernels -----------------------------------------------------------------------

  void find_gpus(const std::optional<sim::gpu>& described) {
    std::map<i64, u32> known;
    for (const lane_id& lane : from_.lanes) {
      const auto [at, is_new] = known.try_emplace(lane.device, u32(found_.gpus.size()));
      if (is_new) found_.gpus.push_back(limits_of(lane.device, properties(lane.device), described));
      found_.gpu_of_lane.push_back(at->second);
    }
    if (from_.hip)
      for (gpu_limits& gpu : found_.gpus)
        gpu.unknown = "it is an AMD GPU, whose occupancy rules are others";
  }

  const device_properties* properties(i64 id) const {
    for (const device_properties& device : from_.devices)
      if (device.id == id) return &device;
    return nullptr;
  }

  void sort_kernels() {
    found_.kernels = std::move(from_.kernels);
    const auto order = [](const kernel_record& a, const kernel_record& b) {
      const i64 a_end = a.end(), b_end = b.end();
      return std::tie(a.lane, a.start, a_end) < std::tie(b.lane, b.start, b_end);
    };
    std::stable_sort(found_.kernels.begin(), found_.kernels.end(), order);
    if (found_.kernels.empty()) return;
    found_.span = {found_.kernels.front().start, found_.kernels.front().end()};
    for (const kernel_record& kernel : found_.kernels) {
      found_.span.start = std::min(found_.span.start, kernel.start);
      found_.span.end = std::max(found_.span.end, kernel.end());
    }
    found_.base = static_cast<double>(found_.span.end - found_.span.start);
  }

  void find_shapes() {
    std::map<std::tuple<u32, u32, launch>, u32> known;
    for (const kernel_record& kernel : found_.kernels) {
      const u32 gpu = found_.gpu_of_lane[kernel.lane];
      const auto [at, is_new] =
          known.try_emplace({kernel.name, gpu, kernel.launch}, u32(found_.shapes.size()));
      if (is_new) found_.shapes.push_back(shape(kernel, gpu));
      found_.shape_of.push_back(at->second);
    }
  }

  kernel_shape shape(const kernel_record& kernel, u32 gpu) const {
    kernel_shape made;
    made.name = kernel.name;
    made.gpu = gpu;
    made.launch = kernel.launch;
    using gap = kernel_shape::gap;
    if (from_.names[kernel.name].starts_with("nccl"))
      made.missing = gap::communication;
    else if (!kernel.launch.has_shape())
      made.missing = gap::no_launch;
    else if (!found_.gpus[gpu].unknown.empty())
      made.missing = gap::no_limits;
    else
      count_waves(made, found_.gpus[gpu].gpu);
    return made;
  }

  static sim::block_resources block_of(const launch& launch) {
    return {static_cast<u32>(launch.block.count()), launch.registers, launch.shared_bytes};
  }

  static void count_waves(kernel_shape& made, const sim::gpu& gpu) {
    made.per_sm = sim::occupancy(gpu, block_of(made.launch));
    if (made.per_sm == 0) {
      made.missing = kernel_shape::gap::does_not_fit;
      return;
    }
    const u64 blocks = made.launch.grid.count();
    made.waves = static_cast<double>(blocks) / static_cast<double>(u64{made.per_sm} * gpu.sms);
    made.may_be_persistent = made.waves <= 1 && blocks % gpu.sms == 0;
  }

  const kernel_shape& shape_at(u32 kernel) const { return found_.shapes[found_.shape_of[kernel]]; }

  /// Launches of shapes for which that holds.
  template <class Holds> u64 count(const Holds& holds) const {
    u64 counted = 0;
    for (const u32 shape : found_.shape_of) counted += holds(found_.shapes[shape]) ? 1 : 0;
    return counted;
  }

  // --- the host -------------------------------------------------------------------------------------

  void find_calls() {
    const auto order = [](const launch_call& a, const launch_call& b) {
      return std::tie(a.process, a.correlation, a.start) <
             std::tie(b.process, b.correlation, b.start);
    };
    std::sort(from_.calls.begin(), from_.calls.end(), order);
    for (const kernel_record& kernel : found_.kernels) {
      const launch_call* call = call_of(kernel, order);
      call_.push_back(call);
      if (call == nullptr) ++facts_.without_call;
      if (kernel.in_graph || (call != nullptr && call->graph)) ++facts_.in_graphs;
    }
  }

  /// The last call of that number before the kernel began: numbers recur where traces were merged.
  template <class Order>
  const launch_call* call_of(const kernel_record& kernel, const Order& order) const {
    if (kernel.correlation == 0) return nullptr;
    const launch_call wanted{from_.lanes[kernel.lane].process, kernel.correlation, kernel.start, 0,
                             false};
    const auto behind = std::upper_bound(from_.calls.begin(), from_.calls.end(), wanted, order);
    if (behind == from_.calls.begin()) return nullptr;
    const launch_call& call = *(behind - 1);
    const bool same = call.process == wanted.process && call.correlation == wanted.correlation;
    return same ? &call : nullptr;
  }

  // --- steps ----------------------------------------------------------------------------------------

  /// Percentages refer to the marked steps, and only kernels that were launched in them count.
  void find_steps() {
    std::vector<time_span>& steps = from_.steps;
    std::sort(steps.begin(), steps.end(),
              [](const time_span& a, const time_span& b) { return a.start < b.start; });
    counted_.assign(found_.kernels.size(), true);
    if (steps.empty()) return;
    std::vector<bool> inside;
    for (u32 i = 0; i < found_.kernels.size(); ++i) inside.push_back(in_step(i));
    facts_.outside = static_cast<u64>(std::count(inside.begin(), inside.end(), false));
    if (facts_.outside == inside.size()) return; // marks of something else
    counted_ = std::move(inside);
    found_.steps = steps.size();
    found_.base = 0;
    i64 end = steps.front().start; // of the steps so far; several ranks mark theirs
    for (const time_span& step : steps) {
      found_.base += static_cast<double>(std::max<i64>(0, step.end - std::max(end, step.start)));
      end = std::max(end, step.end);
    }
  }

  bool in_step(u32 kernel) const {
    const i64 when = call_[kernel] != nullptr ? call_[kernel]->start : found_.kernels[kernel].start;
    const auto behind =
        std::upper_bound(from_.steps.begin(), from_.steps.end(), when,
                         [](i64 time, const time_span& step) { return time < step.start; });
    return behind != from_.steps.begin() && when <= (behind - 1)->end;
  }

  // --- pairs ----------------------------------------------------------------------------------------

  void pair_up() {
    sort_others();
    std::map<std::tuple<u32, u32, u32>, u32> known;
    for (u32 i = 0; i + 1 < found_.kernels.size(); ++i) {
      if (found_.kernels[i].lane != found_.kernels[i + 1].lane) continue;
      if (!counted_[i] || !counted_[i + 1] || !may_depend(i)) continue;
      const auto [at, is_new] =
          known.try_emplace({found_.kernels[i].lane, found_.shape_of[i], found_.shape_of[i + 1]},
                            u32(found_.groups.size()));
      if (is_new)
        found_.groups.push_back(
            {found_.shape_of[i], found_.shape_of[i + 1], found_.kernels[i].lane});
      add_pair(i, at->second);
    }
  }

  void sort_others() {
    std::sort(from_.others.begin(), from_.others.end(),
              [](const other_work& a, const other_work& b) {
                return std::tie(a.lane, a.start) < std::tie(b.lane, b.start);
              });
  }

  bool may_depend(u32 first) {
    if (!shape_at(first).usable() || !shape_at(first + 1).usable()) return ++facts_.unshaped, false;
    const kernel_record &a = found_.kernels[first], &b = found_.kernels[first + 1];
    if (between(other_work::kind::copy, a.lane, a.start, b.start)) return ++facts_.copies, false;
    if (between(other_work::kind::set, a.lane, a.start, b.start)) return ++facts_.sets, false;
    // A wait for an event is recorded when the host asks for it, not when the stream waits.
    const bool called = call_[first] != nullptr && call_[first + 1] != nullptr;
    if (between(other_work::kind::event_wait, a.lane, called ? call_[first]->start : a.start,
                called ? call_[first + 1]->start : b.start))
      return ++facts_.waits, false;
    return true;
  }

  bool between(other_work::kind what, u32 lane, i64 begin, i64 end) const {
    auto at = std::lower_bound(from_.others.begin(), from_.others.end(), std::tie(lane, begin),
                               [](const other_work& other, const auto& wanted) {
                                 return std::tie(other.lane, other.start) < wanted;
                               });
    for (; at != from_.others.end() && at->lane == lane && at->start <= end; ++at)
      if (at->what == what) return true;
    return false;
  }

  void add_pair(u32 first, u32 group) {
    const kernel_record &a = found_.kernels[first], &b = found_.kernels[first + 1];
    kernel_pair pair;
    pair.first = first;
    pair.group = group;
    pair.gap = b.start - a.end();
    if (const launch_call* call = call_[first + 1]) {
      const i64 positive = std::max<i64>(0, pair.gap);
      pair.host = std::clamp<i64>(call->start - a.end(), 0, positive);
      pair.call = std::clamp<i64>(call->start + call->duration - a.end(), 0, positive) - pair.host;
    }
    pair.idle = idle(first);
    pair.most = std::min(idle_left(pair) + idle(first + 1), room(pair)) + winnable_gap(pair);
    found_.pairs.push_back(pair);
    pair_group& into = found_.groups[group];
    ++into.count;
    into.first_duration += static_cast<double>(a.duration);
    into.second_duration += static_cast<double>(b.duration);
    into.gap += static_cast<double>(pair.gap);
    into.host += static_cast<double>(pair.host);
    into.call += static_cast<double>(pair.call);
    into.idle += pair.idle;
    into.most += pair.most;
  }

  wave_shape waves_of(const kernel_shape& shape, double duration) const {
    return {shape.launch.grid.count(), shape.launch.grid.x, block_of(shape.launch), shape.per_sm,
            static_cast<u64>(duration)};
  }

  double idle(u32 kernel) const {
    const kernel_shape& shape = shape_at(kernel);
    if (shape.may_be_persistent) return 0; // one wave of blocks says nothing of its tiles
    return waves_of(shape, static_cast<double>(found_.kernels[kernel].duration))
        .idle_ns(found_.gpus[shape.gpu].gpu);
  }

  /// Where the kernels overlap already, the last wave is not idle all the time.
  double idle_left(const kernel_pair& pair) const {
    return without_overlap(idle(pair.first), pair);
  }

  /// By how much two kernels can move into each other where the second reads what the first writes:
  /// its first block waits for the first one's first wave, and its last wave for the last block.
  double room(const kernel_pair& pair) const {
    return without_overlap(std::min(all_but_a_wave(pair.first), all_but_a_wave(pair.first + 1)),
                           pair);
  }
  double all_but_a_wave(u32 kernel) const {
    const kernel_shape& shape = shape_at(kernel);
    const double duration = static_cast<double>(found_.kernels[kernel].duration);
    const u64 waves = waves_of(shape, duration).whole_waves(found_.gpus[shape.gpu].gpu);
    return duration - duration / static_cast<double>(waves);
  }

  static double without_overlap(double ns, const kernel_pair& pair) {
    return std::max(0.0, ns + static_cast<double>(std::min<i64>(0, pair.gap)));
  }

  /// Behind a late launch the rest of the gap is mostly the launch's own latency, which overlap cannot
  /// hide: what counts is the gap that a launch in time leaves.
  double winnable_gap(const kernel_pair& pair) const {
    const double rest = static_cast<double>(std::max<i64>(0, pair.rest()));
    return pair.late() ? std::min(rest, stream_gap(pair)) : rest;
  }
  double stream_gap(const kernel_pair& pair) const {
    return static_cast<double>(found_.gpus[shape_at(pair.first).gpu].gpu.stream_gap_ns);
  }

  // --- what is realistic ----------------------------------------------------------------------------

  /// One simulation a group, of average durations: most to win first, since there is a limit.
  void simulate() {
    constexpr std::size_t most_simulations = 2000;
    std::vector<u32> order(found_.groups.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [this](u32 a, u32 b) { return found_.groups[a].most > found_.groups[b].most; });
    const std::size_t simulated = std::min(order.size(), most_simulations);
    for (std::size_t i = 0; i < simulated; ++i) {
      simulate(found_.groups[order[i]]);
      if (report_) report_(static_cast<double>(i) / static_cast<double>(simulated));
    }
    for (std::size_t i = simulated; i < order.size(); ++i) {
      found_.groups[order[i]].saved = never;
      facts_.not_simulated += found_.groups[order[i]].count;
    }
  }

  void simulate(pair_group& group) {
    const kernel_shape &first = found_.shapes[group.first], &second = found_.shapes[group.second];
    const sim::gpu& gpu = found_.gpus[first.gpu].gpu;
    const double count = static_cast<double>(group.count);
    group.saved = never; // a post alone costs more than there is to win
    if (group.most / count <= static_cast<double>(gpu.post_ns)) return;
    group.saved = model_.saved_ns(gpu, waves_of(first, group.first_duration / count),
                                  waves_of(second, group.second_duration / count));
  }

  void rate_pairs() {
    for (kernel_pair& pair : found_.pairs) {
      pair_group& group = found_.groups[pair.group];
      // The simulator's gap is the GPU's usual one; this pair's may be smaller.
      const double gap = std::min(static_cast<double>(pair.rest()), stream_gap(pair));
      pair.realistic = std::clamp(group.saved - stream_gap(pair) + gap, 0.0, pair.most);
      group.realistic += pair.realistic;
    }
  }

  // --- totals ---------------------------------------------------------------------------------------

  void add_totals() {
    found_.totals.resize(found_.gpus.size());
    for (u32 i = 0; i < found_.gpus.size(); ++i) found_.totals[i].gpu = i;
    for (const kernel_record& kernel : found_.kernels) {
      gpu_total& total = found_.totals[found_.gpu_of_lane[kernel.lane]];
      ++total.kernels;
      total.busy += static_cast<double>(kernel.duration);
    }
    std::vector<kernel_pair>& pairs = found_.pairs;
    for (std::size_t begin = 0; begin < pairs.size();) {
      std::size_t end = begin + 1;
      while (end < pairs.size() && pairs[end].first == pairs[end - 1].first + 1) ++end;
      add_row(found_.totals[shape_at(pairs[begin].first).gpu], begin, end);
      begin = end;
    }
    std::erase_if(found_.totals, [](const gpu_total& total) { return total.kernels == 0; });
  }

  /// Kernels one behind the other, each paired with its neighbours: pair by pair, [begin, end).
  /// A last wave can be filled once, so each kernel's counts once.
  void add_row(gpu_total& total, std::size_t begin, std::size_t end) {
    double idle_in_all = idle(found_.pairs[end - 1].first + 1), rooms = 0, gaps = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const kernel_pair& pair = found_.pairs[i];
      ++total.pairs;
      total.host += static_cast<double>(pair.host);
      total.call += static_cast<double>(pair.call);
      total.rest += static_cast<double>(pair.rest());
      total.idle += pair.idle;
      idle_in_all += idle_left(pair);
      rooms += room(pair);
      gaps += winnable_gap(pair);
    }
    total.most += std::min(idle_in_all, rooms) + gaps;
    add_best(total, begin, end);
  }

  /// Of pairs that share a kernel one can win: those without a common kernel that win most together.
  void add_best(gpu_total& total, std::size_t begin, std::size_t end) {
    std::vector<double> best(end - begin + 1, 0); // of the first so many pairs
    const auto with = [&](std::size_t i) {
      return found_.pairs[begin + i].realistic + (i >= 1 ? best[i - 1] : 0);
    };
    for (std::size_t i = 0; i < end - begin; ++i) best[i + 1] = std::max(best[i], with(i));
    for (std::size_t i = end - begin; i > 0;) {
      if (best[i] == best[i - 1]) {
        --i;
        continue;
      }
      const kernel_pair& pair = found_.pairs[begin + i - 1];
      total.realistic += pair.realistic;
      if (pair.late()) total.realistic_late += pair.realistic;
      i -= std::min<std::size_t>(i, 2);
    }
  }

  void rank() {
    std::vector<u32> order(found_.groups.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [this](u32 a, u32 b) {
      const pair_group &left = found_.groups[a], &right = found_.groups[b];
      return std::tie(left.realistic, left.most) > std::tie(right.realistic, right.most);
    });
    std::vector<pair_group> ranked;
    std::vector<u32> place(order.size());
    for (u32 i = 0; i < order.size(); ++i) {
      ranked.push_back(found_.groups[order[i]]);
      place[order[i]] = i;
    }
    found_.groups = std::move(ranked);
    for (kernel_pair& pair : found_.pairs) pair.group = place[pair.group];
  }

  // --- facts ----------------------------------------------------------------------------------------

  void fill_facts() {
    facts_.source = from_.source;
    facts_.rank = from_.rank;
    facts_.kernels = found_.kernels.size();
    facts_.events = from_.events;
    facts_.unusable = from_.unusable;
    facts_.hip = from_.hip;
    facts_.span_us = static_cast<double>(found_.span.end - found_.span.start) * 1e-3;
    using gap = kernel_shape::gap;
    facts_.no_launch = count([](const auto& shape) { return shape.missing == gap::no_launch; });
    facts_.no_limits = count([](const auto& shape) { return shape.missing == gap::no_limits; });
    facts_.do_not_fit = count([](const auto& shape) { return shape.missing == gap::does_not_fit; });
    facts_.communication =
        count([](const auto& shape) { return shape.missing == gap::communication; });
    facts_.clusters = count([](const auto& shape) { return shape.launch.has_cluster(); });
    std::vector<bool> seen(from_.lanes.size());
    for (const kernel_record& kernel : found_.kernels) seen[kernel.lane] = true;
    std::map<u32, bool> gpus;
    for (u32 lane = 0; lane < seen.size(); ++lane) {
      if (!seen[lane]) continue;
      ++facts_.streams;
      gpus[found_.gpu_of_lane[lane]] = true;
    }
    facts_.gpus = gpus.size();
    for (const auto& [gpu, _] : gpus) {
      facts_.gpu_names[found_.gpus[gpu].name] += 1;
      facts_.may_have_clusters |= found_.gpus[gpu].gpu.compute_capability >= 90;
      if (facts_.unknown.empty()) facts_.unknown = found_.gpus[gpu].unknown;
    }
    find_hidden_graphs();
    find_concurrency();
  }

  void find_hidden_graphs() {
    std::vector<u64> used;
    for (const kernel_record& kernel : found_.kernels) used.push_back(kernel.correlation);
    std::sort(used.begin(), used.end());
    for (const launch_call& call : from_.calls)
      if (call.graph && !std::binary_search(used.begin(), used.end(), call.correlation))
        ++facts_.hidden_graphs;
    facts_.hidden_graphs = std::max(facts_.hidden_graphs, from_.graph_rows);
  }

  /// Time in which kernels of several streams of a GPU ran at once.
  void find_concurrency() {
    struct edge {
      u32 gpu;
      i64 time;
      int change;
    };
    if (facts_.streams == facts_.gpus) return;
    std::vector<edge> edges;
    for (const kernel_record& kernel : found_.kernels) {
      edges.push_back({found_.gpu_of_lane[kernel.lane], kernel.start, 1});
      edges.push_back({found_.gpu_of_lane[kernel.lane], kernel.end(), -1});
    }
    std::sort(edges.begin(), edges.end(), [](const edge& a, const edge& b) {
      return std::tie(a.gpu, a.time, a.change) < std::tie(b.gpu, b.time, b.change);
    });
    int running = 0;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (running > 1)
        facts_.concurrent_us += static_cast<double>(edges[i].time - edges[i - 1].time) * 1e-3;
      running += edges[i].change;
    }
  }

  static constexpr double never = -1e18;

  trace from_;
  const progress_report& report_;
  analysis found_;
  trace_facts facts_;
  overlap_model model_;
  std::vector<const launch_call*> call_; ///< Of each kernel.
  std::vector<bool> counted_;            ///< In a step.
};

} // namespace

gpu_total analysis::total() const {
  gpu_total sum;
  for (const gpu_total& each : totals) {
    sum.kernels += each.kernels;
    sum.pairs += each.pairs;
    sum.busy += each.busy;
    sum.host += each.host;
    sum.call += each.call;
    sum.rest += each.rest;
    sum.idle += each.idle;
    sum.most += each.most;
    sum.realistic += each.realistic;
    sum.realistic_late += each.realistic_late;
  }
  return sum;
}

analysis analyse(trace&& from, const std::optional<sim::gpu>& described,
                 const progress_report& report) {
  return analyser(std::move(from), described, report).run();
}

} // namespace cusync::analyze
