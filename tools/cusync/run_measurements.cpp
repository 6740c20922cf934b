// SPDX-License-Identifier: MIT
#include "gpu_part.hpp"
#include "workloads.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <memory> // make_shared

namespace cusync::cli {
namespace {

/// A workload with no options of its own that only a GPU can answer.
subcommand measurement(const char* name, const char* title,
                       void (*measure)(results& found, const common_options& options)) {
  const auto run = [=](const common_options& options) {
    if (!use_gpu(options))
      throw invalid_argument(
          std::string("run ") + name + " measures a GPU: " +
          (options.device == "cpu" ? "--device cpu was asked for" : why_no_gpu()));
    results found(title, options);
    found.fact(gpu_facts());
    measure(found, options);
    return found.publish();
  };
  return {name, title, [run](command to) {
            auto options = std::make_shared<common_options>();
            add_common(to, *options);
            to.runs([run, options] { return run(*options); });
          }};
}

} // namespace

subcommand handover_workload() {
  return measurement("handover", "Cost of a post, a wait and a whole hand-over between stages",
                     handover_on_gpu);
}

subcommand hooks_workload() {
  return measurement("hooks", "Cost of stage code where every wait is satisfied", hooks_on_gpu);
}

} // namespace cusync::cli
