// SPDX-License-Identifier: MIT
#include "notes.hpp"
#include "../format.hpp"

namespace cusync::analyze {
namespace {

using cli::formatted;

std::string counted(u64 count, const char* what, const char* plural = "s") {
  return formatted("{} {}{}", count, what, count == 1 ? "" : plural);
}

std::string gpu_list(const trace_facts& facts) {
  std::string list;
  for (const auto& [name, count] : facts.gpu_names) {
    list += list.empty() ? "" : ", ";
    list += name.empty() ? "of unknown name" : name;
    if (count > 1 && facts.gpu_names.size() > 1) list += formatted(" x {}", count);
  }
  return list;
}

std::string parted(const trace_facts& facts) {
  std::string by;
  const auto add = [&by](u64 count, const char* what) {
    if (count != 0) by += formatted("{}{} by {}", by.empty() ? "" : ", ", count, what);
  };
  add(facts.copies, "a copy");
  add(facts.sets, "a memset");
  add(facts.waits, "a wait for an event");
  add(facts.unshaped, "a kernel of unknown waves");
  return by;
}

} // namespace

std::string summary_of(const trace_facts& facts) {
  return formatted("{} in {} on {} ({}), {:.1f} us from the first start to the last end; {}{}",
                   counted(facts.kernels, "kernel"), counted(facts.streams, "stream"),
                   counted(facts.gpus, "GPU"), gpu_list(facts), facts.span_us, facts.source,
                   facts.rank ? formatted(", rank {}", *facts.rank) : "");
}

std::vector<std::string> notes_of(const trace_facts& facts) {
  std::vector<std::string> notes = {"Dependence: a trace does not say which kernel reads what; "
                                    "each is taken to depend on the one "
                                    "ahead of it in its stream."};
  const auto note = [&notes](u64 count, const std::string& text) {
    if (count != 0) notes.push_back(text);
  };
  const std::string by = parted(facts);
  note(by.size(), "Pairs left out: " + by + ".");
  note(facts.persistent,
       formatted("Persistent kernels: {} filled all SMs exactly once and may loop over tiles that "
                 "the trace does not show; they count as one full wave, without anything idle.",
                 counted(facts.persistent, "launch", "es")));
  if (facts.clusters != 0)
    notes.push_back(formatted("Clusters: {} ran in clusters; their occupancy is that of single "
                              "blocks, and can be lower.",
                              counted(facts.clusters, "kernel")));
  else if (facts.may_have_clusters)
    notes.push_back(
        "Clusters: the trace does not record them; where a kernel uses them its occupancy "
        "can be lower than what is shown.");
  note(facts.hidden_graphs,
       formatted("CUDA graphs: {} of a graph show no kernels, which are missing here; record with "
                 "nsys --cuda-graph-trace=node, or without graphs.",
                 counted(facts.hidden_graphs, "launch", "es")));
  note(facts.in_graphs,
       formatted("CUDA graphs: {} came from graphs, whose edges the trace does not show.",
                 counted(facts.in_graphs, "kernel")));
  note(facts.communication,
       formatted("Communication: {} of NCCL wait for other GPUs; no waves are counted for them.",
                 counted(facts.communication, "kernel")));
  note(facts.no_launch,
       formatted("No launch shape: {} have no grid or block that a GPU could launch.",
                 counted(facts.no_launch, "kernel")));
  note(facts.no_limits, formatted("No limits: of the GPU of {} they are not known: {}.",
                                  counted(facts.no_limits, "kernel"), facts.unknown));
  note(
      facts.do_not_fit,
      formatted("Limits: {} would not fit on an SM with the limits used here; is the GPU the right "
                "one?",
                counted(facts.do_not_fit, "kernel")));
  note(facts.unusable, formatted("Damaged: {} without a name, a time or a duration were left out.",
                                 counted(facts.unusable, "kernel")));
  note(facts.without_call,
       formatted("Host: {} have no launch call in the trace; their gaps may be waits for the host.",
                 counted(facts.without_call, "kernel")));
  note(facts.concurrent_us > 0,
       formatted(
           "Several streams: in {:.1f} us kernels of more than one stream shared a GPU; what is "
           "won there may not shorten the step.",
           facts.concurrent_us));
  note(facts.outside, formatted("Steps: {} were launched outside of the marked steps.",
                                counted(facts.outside, "kernel")));
  note(facts.not_simulated,
       formatted("Simulation: the {} with the least to win were not simulated and count as none.",
                 counted(facts.not_simulated, "pair")));
  return notes;
}

std::string reason_of(const trace_facts& facts) {
  const std::string none = "no kernel that can be analysed: ";
  if (facts.kernels == 0 && facts.hidden_graphs != 0)
    return none +
           "launches of CUDA graphs hide theirs; record with nsys --cuda-graph-trace=node, or "
           "without graphs";
  if (facts.kernels == 0 && facts.hip)
    return none + "the trace is of an AMD GPU; record it on an NVIDIA GPU";
  if (facts.kernels == 0 && facts.unusable != 0)
    return none +
           formatted("{} in the trace, none with a name, a time and a duration; record it again",
                     counted(facts.unusable, "kernel"));
  if (facts.kernels == 0)
    return none + formatted("none among {}; record the GPU too, with ProfilerActivity.CUDA or nsys "
                            "--trace=cuda",
                            counted(facts.events, "event"));
  if (facts.no_limits != 0 || (facts.hip && facts.no_launch != 0))
    return none + formatted("of the GPU of {}: {}", counted(facts.kernels, "kernel"),
                            facts.hip ? "it is an AMD GPU, whose occupancy rules are others"
                                      : facts.unknown);
  if (facts.no_launch != 0)
    return none + formatted("{} without a grid and block; record with a profiler that writes them",
                            counted(facts.no_launch, "kernel"));
  if (facts.do_not_fit != 0)
    return none + formatted("{} would not fit on an SM; name the GPU with --gpu",
                            counted(facts.do_not_fit, "kernel"));
  return none +
         formatted("all {} are NCCL's, which wait for other GPUs; record the computation too",
                   facts.kernels);
}

} // namespace cusync::analyze
