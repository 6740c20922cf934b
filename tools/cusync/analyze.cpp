// SPDX-License-Identifier: MIT
#include "analyze/analysis.hpp"
#include "analyze/html.hpp"
#include "analyze/read_trace.hpp"
#include "analyze_tables.hpp"
#include "format.hpp"
#include "progress.hpp"
#include "results.hpp"
#include "tools.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <chrono>     // steady_clock
#include <fstream>    // ofstream
#include <functional> // ref
#include <memory>     // make_shared
#include <optional>   // optional

namespace cusync::cli {
namespace {

using namespace analyze;

struct analyze_options : common_options {
  std::string trace;
  std::string html;
  u64 top = 10;
};

constexpr const char* examples = R"(Examples:
  cusync analyze trace.json.gz                  of the PyTorch profiler (Kineto), plain or gzip
  cusync analyze report.sqlite                  of nsys export --type sqlite report.nsys-rep
  cusync analyze trace.json --html step.html    a picture of the step with the wins marked
  cusync analyze trace.json --json --top 0      all pairs, for a program

Exit status: 0; 2 where no kernel of the trace can be analysed.
)";

/// A bar for work that takes longer than a second.
class slow_progress {
public:
  explicit slow_progress(std::string what) : what_(std::move(what)) {}

  void operator()(double part) {
    if (std::chrono::steady_clock::now() - begun_ < std::chrono::seconds(1)) return;
    if (!bar_) bar_.emplace(steps);
    for (const auto done = static_cast<std::size_t>(part * steps); step_ < done; ++step_)
      bar_->step(what_);
  }

private:
  static constexpr std::size_t steps = 100;

  std::string what_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<progress> bar_;
  std::size_t step_ = 0;
};

// --- text -------------------------------------------------------------------------------------------

std::string base_text(const analysis& found) {
  if (found.steps == 0)
    return formatted("the {:.1f} us from the first kernel's start to the last one's end; the trace "
                     "marks no steps",
                     found.base * 1e-3);
  return formatted("{} marked step{}, {:.1f} us", found.steps, found.steps == 1 ? "" : "s",
                   found.base * 1e-3);
}

std::string gpu_text(const gpu_limits& gpu) {
  const std::string name = gpu.name.empty() ? "of unknown name" : gpu.name;
  if (!gpu.unknown.empty()) return name + ": no waves, since " + gpu.unknown;
  return formatted("{}, {} SMs; {}", name, gpu.gpu.sms, gpu.from);
}

std::string win_text(const analysis& found) {
  const gpu_total total = found.total();
  std::string text = formatted("{:.1f} us ({:.2f}%) realistic, {:.1f} us ({:.2f}%) at most",
                               total.realistic * 1e-3, found.total_percent(total.realistic),
                               total.most * 1e-3, found.total_percent(total.most));
  if (total.realistic_late > 0)
    text += formatted("; {:.1f} us of the realistic need launches in time, as from a CUDA graph",
                      total.realistic_late * 1e-3);
  return text;
}

void add_facts(results& to, const analysis& found) {
  for (const gpu_total& total : found.totals) {
    const gpu_limits& gpu = found.gpus[total.gpu];
    to.fact(formatted("GPU {}", gpu.id), gpu_text(gpu));
  }
  to.fact("percent of", base_text(found));
  to.fact("overlap wins", win_text(found));
  const double host = found.total().host + found.total().call;
  to.fact("waiting for the host", formatted("{:.1f} us ({:.2f}%), never counted as a win",
                                            host * 1e-3, found.total_percent(host)));
  const gpu_total total = found.total();
  to.count("kernels", total.kernels);
  to.count("pairs", total.pairs);
}

void add_notes(results& to, const analysis& found) {
  to.note(
      "Idle, gap, host and call are averages in us; wins are sums. Idle: of the whole GPU, in the "
      "first kernel's last wave. Gap: from its end to the second's start; host: the part ahead of "
      "the second's launch call; call: the part within that call.");
  to.note("At most: no gap is left, and no wave partly empty that the second kernel could fill. "
          "Realistic: the wave simulator, with what waits and posts cost on an H200.");
  to.note(
      "Totals count a kernel's last wave once, and of pairs that share a kernel only those that "
      "win most together: the pairs' own wins can add up to more.");
  for (const std::string& note : found.notes) to.note(note);
}

// --- the subcommand ---------------------------------------------------------------------------------

std::ofstream open_html(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file)
    throw invalid_argument("--html: cannot write '" + path +
                           "'; name a file in an existing folder");
  return file;
}

trace read_file(const std::string& path) {
  slow_progress bar("reading");
  return read_trace(path, std::ref(bar));
}

analysis analyse_file(const analyze_options& options) {
  std::optional<sim::gpu> gpu;
  if (!options.gpu.empty()) gpu = virtual_gpu_of(options.gpu, sim::find_gpu("H200")).gpu;
  trace read = read_file(options.trace);
  try {
    slow_progress bar("simulating");
    return analyse(std::move(read), gpu, std::ref(bar));
  } catch (const invalid_argument& refusal) {
    throw invalid_argument(options.trace + ": " + refusal.what());
  }
}

int run_analyze(const analyze_options& options) {
  const analysis found = analyse_file(options);
  results report(found.summary, options);
  add_facts(report, found);
  const reader who = options.json ? reader::program : reader::person;
  const selection of = select(found, options.top);
  if (!of.groups.empty()) {
    report.add(formatted("Pairs, best first: {} of {}", of.groups.size(), found.groups.size()),
               pair_table(found, of, who));
    report.add("Their kernels", launch_table(found, of, who));
  }
  report.add("Totals", total_table(found));
  add_notes(report, found);
  if (!options.html.empty()) open_html(options.html) << html_of(found, options.trace);
  return report.publish();
}

void declare(command to) {
  auto options = std::make_shared<analyze_options>();
  to.argument("TRACE", options->trace,
              "A PyTorch profiler trace or an Nsight Systems SQLite export")
      .option("--top", options->top, "Pairs to show; 0: all")
      .option("--gpu", options->gpu,
              "Limits to use instead of the trace's: H200 | A100,sms=27 | sms=16,smem=100")
      .flag("--json", options->json, "Print JSON instead of tables")
      .option("--html", options->html, "Also write a picture of the step to this file")
      .option("--markdown", options->markdown, "Also write the results to this file")
      .option("--commit", options->commit, "Commit to record, instead of the one built from")
      .examples(examples)
      .runs([options] { return run_analyze(*options); });
}

} // namespace

subcommand analyze_tool() {
  return {"analyze", "What tile-level overlap would win, from a profiler's trace", declare};
}

} // namespace cusync::cli
