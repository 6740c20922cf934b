// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u32, u64

#include <cstddef> // size_t
#include <vector>  // vector

namespace cusync::sim {

/// Something that happens at a time. Of events at the same time the one with the lowest tie is first.
struct event {
  u64 time = 0;
  u32 tie = 0;
  u32 subject = 0;

  friend bool operator<(const event& a, const event& b) {
    return a.time != b.time ? a.time < b.time : a.tie < b.tie;
  }
};

/// A priority queue of events, as a heap in which each node has four children.
///
/// Most of what a simulation does is to take an event and to add one that follows from it. So `pop`
/// leaves a hole at the top, which the next `push` fills: one walk down the heap instead of two.
class event_queue {
public:
  bool empty() const { return heap_.size() == (hole_ ? 1 : 0); }

  event pop() {
    if (hole_) {
      const event last = heap_.back();
      heap_.pop_back();
      sink(last);
    }
    hole_ = true;
    return heap_.front();
  }

  void push(const event& added) {
    if (hole_) {
      hole_ = false;
      return sink(added);
    }
    heap_.push_back(added);
    rise(heap_.size() - 1);
  }

private:
  static constexpr std::size_t arity = 4;

  /// Puts `moved` into the heap, whose top is free.
  void sink(const event& moved) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (std::size_t first = 1; first < size; first = at * arity + 1) {
      std::size_t least = first;
      const std::size_t end = first + arity < size ? first + arity : size;
      for (std::size_t child = first + 1; child < end; ++child)
        if (heap_[child] < heap_[least]) least = child;
      if (!(heap_[least] < moved)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = moved;
  }

  void rise(std::size_t at) {
    const event moved = heap_[at];
    while (at > 0 && moved < heap_[(at - 1) / arity]) {
      heap_[at] = heap_[(at - 1) / arity];
      at = (at - 1) / arity;
    }
    heap_[at] = moved;
  }

  std::vector<event> heap_;
  bool hole_ = false; ///< The top is an event that was taken already.
};

} // namespace cusync::sim
