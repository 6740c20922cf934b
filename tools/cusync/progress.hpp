// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>   // min
#include <chrono>      // steady_clock
#include <cstddef>     // size_t
#include <cstdio>      // fputs
#include <string>      // string
#include <string_view> // string_view
#include <unistd.h>    // isatty

namespace cusync::cli {

/// A bar on stderr, where that is a terminal; nothing elsewhere. Cleared when done.
class progress {
public:
  explicit progress(std::size_t steps) : steps_(steps), shown_(isatty(STDERR_FILENO) == 1) {}
  ~progress() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }
  progress(const progress&) = delete; // one bar a terminal
  progress& operator=(const progress&) = delete;

  /// One step begins; `now` says which.
  void step(std::string_view now) {
    now_ = now;
    if (begun_++ == 0 || clock::now() - last_ > std::chrono::milliseconds(100)) draw();
  }

private:
  using clock = std::chrono::steady_clock;

  void draw() {
    last_ = clock::now();
    if (!shown_) return;
    constexpr std::size_t width = 30;
    const std::size_t done = std::min(begun_ - 1, steps_);
    const std::size_t filled = steps_ == 0 ? width : width * done / steps_;
    const std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
    std::fputs(("\r\033[K[" + bar + "] " + now_).c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  }

  std::size_t steps_;
  std::size_t begun_ = 0;
  std::string now_;
  bool shown_;
  bool drawn_ = false;
  clock::time_point last_{};
};

} // namespace cusync::cli
