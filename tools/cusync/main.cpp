// SPDX-License-Identifier: MIT
#include "command.hpp"
#include "results.hpp"
#include "tools.hpp"
#include "workloads.hpp"

#include <cusync/errors.hpp>        // wait_timeout, deadlock
#include <cusync/sim/execution.hpp> // kernel_fault

#include <cstdio>    // fputs
#include <exception> // exception
#include <string>    // string

namespace cusync::cli {
namespace {

constexpr int wrong_result = 1;
constexpr int cannot_be_done = 2;

constexpr const char* examples = R"(Examples:
  cusync run mlp            GPT-3's MLP, on the GPU or on a virtual one
  cusync run synthetic      launches and waits alone, beside what the virtual GPU predicts
  cusync check FILE         proves that a chain is right, or shows where it goes wrong
  cusync simulate FILE      the same chain in virtual time: stream order beside every policy
  cusync waves --paper      the paper's tables of waves; or those of grids and a GPU of yours
  cusync run mlp --help     all options of a workload
  cusync analyze trace.json.gz
                            what overlap would win in a PyTorch or Nsight Systems trace

Exit status: 0; 1 where a result is wrong or a chain refuted; 2 where something asked for cannot be done.
)";

std::string version_text() {
#ifdef CUSYNC_HAS_CUDA
  const char* parts = "GPU and virtual GPU";
#else
  const char* parts = "virtual GPU only";
#endif
  return "cusync " + version() + " (commit " + commit() + "; " + parts + ")";
}

std::string joined(int argc, char** argv) {
  std::string text = "cusync";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

int failed(int status, const std::exception& why) {
  std::fputs(("cusync: " + std::string(why.what()) + "\n").c_str(), stderr);
  return status;
}

} // namespace
} // namespace cusync::cli

int main(int argc, char** argv) {
  using namespace cusync;
  using namespace cusync::cli;
  command_line() = joined(argc, argv);
  try {
    return run_command_line(
        argc, argv, {mlp_workload(), synthetic_workload(), handover_workload(), hooks_workload()},
        {check_tool(), analyze_tool(), simulate_tool(), waves_tool()}, version_text(), examples);
  } catch (const wait_timeout& failure) {
    return failed(wrong_result, failure);
  } catch (const deadlock& failure) {
    return failed(wrong_result, failure);
  } catch (const sim::kernel_fault& failure) {
    return failed(wrong_result, failure);
  } catch (const std::exception& refusal) {
    return failed(cannot_be_done, refusal);
  }
}
