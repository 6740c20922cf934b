// SPDX-License-Identifier: MIT
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <cstddef>   // size_t
#include <exception> // exception_ptr, current_exception
#include <memory>    // allocator_arg
#include <utility>   // move, exchange
#include <vector>    // vector

#if defined(__SANITIZE_ADDRESS__)
#define CUSYNC_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUSYNC_ASAN 1
#endif
#endif
#ifdef CUSYNC_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cusync::sim {

namespace detail {

/// This thread's stacks that are not in use: asking the system for one takes longer than most blocks.
class stack_pool {
public:
  static constexpr std::size_t stack_bytes = 256 * 1024; // pages that are not touched cost nothing

  static stack_pool& of_this_thread() {
    thread_local stack_pool pool;
    return pool;
  }
  stack_pool() = default;
  stack_pool(const stack_pool&) = delete; // owns the stacks
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool() {
    for (boost::context::stack_context& stack : free_) system_.deallocate(stack);
  }

  boost::context::stack_context take() {
    if (free_.empty()) return system_.allocate();
    const boost::context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(const boost::context::stack_context& stack) {
#ifdef CUSYNC_ASAN // the frames that a fiber ends in do not return, and stay marked
    __asan_unpoison_memory_region(static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
    free_.push_back(stack);
  }

private:
  boost::context::protected_fixedsize_stack system_{stack_bytes};
  std::vector<boost::context::stack_context> free_;
};

/// What Boost asks of an allocator.
struct pooled_stack {
  boost::context::stack_context allocate() { return stack_pool::of_this_thread().take(); }
  void deallocate(boost::context::stack_context& stack) {
    stack_pool::of_this_thread().give_back(stack);
  }
};

} // namespace detail

/// A function that can stop in the middle and go on later, on a stack of its own.
///
/// The body may throw: `resume` rethrows it. A fiber that is destroyed before its body has ended is
/// unwound: `suspend` throws inside it, so that its objects are destroyed as well.
class fiber {
public:
  /// `body(fiber&)` begins at the first `resume`.
  template <class Body> explicit fiber(Body body) : stack_(detail::pooled_stack{}.allocate()) {
    inside_ = boost::context::fiber(
        std::allocator_arg, boost::context::preallocated(stack_.sp, stack_.size, stack_),
        detail::pooled_stack{},
        [this, body = std::move(body)](boost::context::fiber&& outside) mutable {
          arrive(nullptr);
          outside_ = std::move(outside);
          if (!cancelled_) run(body);
          ended_ = true;
          leave(nullptr, caller_bottom_, caller_bytes_);
          return std::move(outside_);
        });
  }
  fiber(const fiber&) = delete; // its stack points to it
  fiber& operator=(const fiber&) = delete;
  ~fiber() {
    cancelled_ = true;
    while (!ended_) enter(); // a body that swallows the exception is sent it again
  }

  /// Runs the body until it suspends or ends. Precondition: `!ended()`.
  void resume() {
    enter();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  /// Back to the caller of `resume`. Called by the body.
  void suspend() {
    void* fake_stack = nullptr;
    leave(&fake_stack, caller_bottom_, caller_bytes_);
    outside_ = std::move(outside_).resume();
    arrive(fake_stack);
    if (cancelled_) throw unwind{};
  }

  bool ended() const { return ended_; }

private:
  struct unwind {}; // no std::exception: a kernel's handlers do not see it

  template <class Body> void run(Body& body) {
    try {
      body(*this);
    } catch (const unwind&) {
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void enter() {
    void* fake_stack = nullptr;
    leave(&fake_stack, static_cast<char*>(stack_.sp) - stack_.size, stack_.size);
    inside_ = std::move(inside_).resume();
#ifdef CUSYNC_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  /// Before a switch: tells AddressSanitizer the stack switched to. A null `fake_stack` means that
  /// this one is not returned to.
  static void leave([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                    [[maybe_unused]] std::size_t bytes) {
#ifdef CUSYNC_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
  }
  /// Behind a switch into the body: learns the caller's stack, for the way back.
  void arrive([[maybe_unused]] void* fake_stack) {
#ifdef CUSYNC_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &caller_bottom_, &caller_bytes_);
#endif
  }

  boost::context::stack_context stack_;
  boost::context::fiber inside_;  ///< The body, while it is suspended.
  boost::context::fiber outside_; ///< The caller of `resume`, while the body runs.
  std::exception_ptr failure_;
  bool ended_ = false;
  bool cancelled_ = false;
  const void* caller_bottom_ = nullptr;
  std::size_t caller_bytes_ = 0;
};

} // namespace cusync::sim
