// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u32, u64

#include <cstddef>  // size_t
#include <iterator> // size
#include <limits>   // numeric_limits
#include <utility>  // move
#include <vector>   // vector

namespace cusync::sim {

/// Something that happens at a time. Of events at the same time the one with the lowest tie is first.
struct event {
  u64 time = 0;
  u32 tie = 0;
  u32 subject = 0;

  /// Without a branch: which of two is first cannot be foreseen.
  friend bool operator<(const event& a, const event& b) {
    return static_cast<bool>(
        static_cast<int>(a.time < b.time) |
        (static_cast<int>(a.time == b.time) & static_cast<int>(a.tie < b.tie)));
  }
};

namespace detail {

/// Events in ascending order, added at the back and taken at the front.
class event_lane {
public:
  bool empty() const { return head_ == tail_; }
  const event& front() const { return ring_[head_ & mask_]; }
  const event& back() const { return ring_[(tail_ - 1) & mask_]; }
  void pop() { ++head_; }
  void push(const event& added) {
    if (tail_ - head_ == ring_.size()) grow();
    ring_[tail_++ & mask_] = added;
  }

private:
  void grow() {
    std::vector<event> larger(ring_.empty() ? 16 : 2 * ring_.size());
    for (std::size_t i = head_; i != tail_; ++i) larger[i - head_] = ring_[i & mask_];
    tail_ -= head_;
    head_ = 0;
    ring_ = std::move(larger);
    mask_ = ring_.size() - 1;
  }

  std::vector<event> ring_;
  std::size_t mask_ = 0;
  std::size_t head_ = 0, tail_ = 0; ///< Counted without end.
};

/// A heap in which each node has four children.
class event_heap {
public:
  bool empty() const { return heap_.empty(); }
  const event& front() const { return heap_.front(); }

  void push(const event& added) {
    std::size_t at = heap_.size();
    heap_.push_back(added);
    while (at > 0 && added < heap_[(at - 1) / arity]) {
      heap_[at] = heap_[(at - 1) / arity];
      at = (at - 1) / arity;
    }
    heap_[at] = added;
  }

  void pop() {
    const event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }

private:
  static constexpr std::size_t arity = 4;

  /// Puts `moved` into the heap, whose top is free.
  void sink(const event& moved) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (std::size_t first = 1; first < size; first = at * arity + 1) {
      const std::size_t least = least_child(first, size);
      if (!(heap_[least] < moved)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = moved;
  }

  std::size_t least_child(std::size_t first, std::size_t size) const {
    const event* child = heap_.data() + first;
    if (first + arity <= size) {
      const std::size_t left = child[1] < child[0] ? 1 : 0;
      const std::size_t right = child[3] < child[2] ? 3 : 2;
      return first + (child[right] < child[left] ? right : left);
    }
    std::size_t least = 0;
    for (std::size_t i = 1; first + i < size; ++i)
      if (child[i] < child[least]) least = i;
    return first + least;
  }

  std::vector<event> heap_;
};

} // namespace detail

/// A priority queue of events for a simulation: most of what is added lies one of a few fixed times
/// behind the event that was taken last.
///
/// Events of one such delay come in ascending order and need no sorting: each usual delay has a lane.
/// Delays that are not seen again soon, as jitter makes them, go into a heap. n events take n log(events
/// in the queue), whatever their times.
class event_queue {
public:
  bool empty() const { return size_ == 0; }

  void push(const event& added) {
    ++size_;
    const std::size_t at = lane_for(added.time - now_);
    if (at == none || (!lanes_[at].empty() && added < lanes_[at].back())) return heap_.push(added);
    if (lanes_[at].empty()) fronts_[at] = added;
    lanes_[at].push(added);
  }

  event pop() {
    --size_;
    std::size_t first = 0;
    for (std::size_t i = 1; i < used_; ++i)
      if (fronts_[i] < fronts_[first]) first = i;
    const bool from_heap = !heap_.empty() && heap_.front() < fronts_[first];
    const event taken = from_heap ? heap_.front() : fronts_[first];
    now_ = taken.time;
    if (from_heap) {
      heap_.pop();
    } else {
      lanes_[first].pop();
      fronts_[first] = lanes_[first].empty() ? never : lanes_[first].front();
    }
    return taken;
  }

private:
  static constexpr std::size_t lanes = 8;
  static constexpr std::size_t none = lanes;
  static constexpr event never{std::numeric_limits<u64>::max(), std::numeric_limits<u32>::max(), 0};

  /// The lane of events that lie `delay` ahead, or none.
  std::size_t lane_for(u64 delay) {
    std::size_t vacant = none;
    for (std::size_t i = 0; i < used_; ++i) {
      if (delays_[i] == delay) return i;
      if (lanes_[i].empty()) vacant = i;
    }
    if (vacant == none && used_ == lanes) return none;
    if (!seen_lately(delay)) return none;
    if (vacant == none) vacant = used_++;
    delays_[vacant] = delay;
    return vacant;
  }

  /// Whether `delay` is one of the last that had no lane; it is from now on.
  bool seen_lately(u64 delay) {
    for (const u64 other : strange_)
      if (other == delay) return true;
    strange_[next_strange_++ % std::size(strange_)] = delay;
    return false;
  }

  u64 now_ = 0; ///< Of the event that was taken last.
  detail::event_lane lanes_[lanes];
  u64 delays_[lanes] = {};
  event fronts_[lanes] = {never, never, never, never, never, never, never, never};
  std::size_t used_ = 0; ///< Lanes that have held an event.
  u64 strange_[4] = {};  ///< Delays.
  std::size_t next_strange_ = 0;
  detail::event_heap heap_;
  std::size_t size_ = 0;
};

} // namespace cusync::sim
