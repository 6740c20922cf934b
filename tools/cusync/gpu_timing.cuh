// SPDX-License-Identifier: MIT
#pragma once

#include "device_memory.cuh"
#include "nvml.hpp"
#include "progress.hpp"

#include <cusync/tile.hpp> // u32

#include <cuda_runtime_api.h>

#include <algorithm>  // max, sort
#include <functional> // function
#include <memory>     // unique_ptr
#include <string>     // string
#include <utility>    // move
#include <vector>     // vector

namespace cusync::cli {

/// How a contender is launched while it is checked and timed.
enum class launch_form { eager, graph };

constexpr const char* name_of(launch_form form) {
  return form == launch_form::eager ? "eager" : "graph";
}

/// One way to do the work: `enqueue` puts one run into a stream.
struct contender {
  std::string name;
  std::function<void(cudaStream_t)> enqueue;
  launch_form form = launch_form::graph;
};

/// Some runs of a contender, launched together: a graph of all, or one call after the other.
class burst {
public:
  burst(const contender& of, u32 runs, cudaStream_t stream) : of_(of), runs_(runs) {
    if (of.form == launch_form::graph) capture(stream);
  }
  ~burst() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  burst(const burst&) = delete; // owns the graph
  burst& operator=(const burst&) = delete;

  void launch(cudaStream_t stream) const {
    if (graph_ != nullptr)
      return check(cudaGraphLaunch(graph_, stream), of_.name + ": launch a graph");
    for (u32 run = 0; run < runs_; ++run) of_.enqueue(stream);
  }

private:
  void capture(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          of_.name + ": begin a capture");
    try {
      for (u32 run = 0; run < runs_; ++run) of_.enqueue(stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph); // leave the stream usable
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), of_.name + ": end a capture");
    check(cudaGraphInstantiate(&graph_, graph, 0), of_.name + ": instantiate a graph");
    check(cudaGraphDestroy(graph), of_.name + ": destroy a graph");
  }

  contender of_;
  u32 runs_;
  cudaGraphExec_t graph_ = nullptr;
};

/// Microseconds a run, a value a sample.
struct timing {
  std::vector<double> us;
  std::vector<double> mhz; ///< The SMs' clock; empty where it cannot be read.

  static double at(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  }
  double median() const { return at(us, 0.5); }
  double low() const { return at(us, 0.1); }
  double high() const { return at(us, 0.9); }
  double clock() const { return at(mhz, 0.5); }
  /// Sample by sample: what changes between samples falls out.
  std::vector<double> over(const timing& base) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < us.size(); ++i) ratios.push_back(us[i] / base.us[i]);
    return ratios;
  }
  /// Into a row of a table.
  template <class Row> void put(Row& row) const {
    row.us = median();
    row.low = low();
    row.high = high();
    row.mhz = clock();
  }
};

class stopwatch {
public:
  stopwatch() {
    check(cudaEventCreate(&begin_), "create an event");
    check(cudaEventCreate(&end_), "create an event");
  }
  ~stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  stopwatch(const stopwatch&) = delete; // owns its events
  stopwatch& operator=(const stopwatch&) = delete;

  void start(cudaStream_t stream) { check(cudaEventRecord(begin_, stream), "record an event"); }
  void stop(cudaStream_t stream) { check(cudaEventRecord(end_, stream), "record an event"); }
  /// Waits for the end.
  double us(const std::string& what) {
    float milliseconds = 0;
    check(cudaEventSynchronize(end_), "time " + what);
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "time " + what);
    return 1000.0 * milliseconds;
  }

private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// Times all contenders in turn (A B C A B C ...): the card's clock moves with its load, so times from
/// different moments do not compare. Each sample is the mean of `runs` runs back to back.
inline std::vector<timing> time_interleaved(const std::vector<contender>& contenders, u32 samples,
                                            u32 runs, progress* bar = nullptr) {
  constexpr u32 warm_up = 3;
  const gpu_stream stream;
  stopwatch watch;
  std::vector<std::unique_ptr<burst>> bursts;
  for (const contender& each : contenders)
    bursts.push_back(std::make_unique<burst>(each, runs, stream));
  std::vector<timing> times(contenders.size());
  for (u32 sample = 0; sample < warm_up + samples; ++sample)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (bar != nullptr) bar->step("time " + contenders[i].name);
      watch.start(stream);
      bursts[i]->launch(stream);
      watch.stop(stream);
      const double mhz = sm_clock_mhz(); // while it runs
      const double us = watch.us(contenders[i].name) / runs;
      if (sample < warm_up) continue;
      times[i].us.push_back(us);
      if (mhz > 0) times[i].mhz.push_back(mhz);
    }
  return times;
}

/// Steps that `time_interleaved` reports.
inline std::size_t timing_steps(std::size_t contenders, u32 samples) {
  return contenders * (samples + 3);
}

/// Runs that make a sample last about two milliseconds; one is timed to know.
inline u32 runs_a_sample(const contender& of) {
  const double us =
      time_interleaved({{of.name, of.enqueue, launch_form::eager}}, 1, 1).front().median();
  return static_cast<u32>(std::max(1.0, std::min(20.0, 2000 / us)));
}

/// Runs a contender `checks` times, one at a time, and counts the runs that are wrong: `before(i)`
/// poisons, `wrong(i)` looks.
template <class Before, class Wrong>
u32 wrong_runs(const contender& of, u32 checks, cudaStream_t stream, const Before& before,
               const Wrong& wrong) {
  const burst once(of, 1, stream);
  u32 count = 0;
  for (u32 i = 0; i < checks; ++i) {
    before(i);
    once.launch(stream);
    count += wrong(i) ? 1 : 0;
  }
  return count;
}

} // namespace cusync::cli
