// SPDX-License-Identifier: MIT
#include "gpu_part.hpp"
#include "gpu_timing.cuh"
#include "synthetic_gpu.cuh"
#include "synthetic_kernel.cuh"

#include <cmath> // llround

namespace cusync::cli {
namespace {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "find the current GPU");
  check(cudaDeviceGetAttribute(&value, which, device), "read an attribute of the GPU");
  return value;
}

/// At the nominal clock, which the SMs keep as long as they only spin.
long long cycles_of(double us) { return std::llround(us * attribute(cudaDevAttrClockRate) * 1e-3); }

u32 shared_bytes_of(const synthetic_problem& problem) {
  return problem.shared_bytes(
      static_cast<u32>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)));
}

synthetic_arguments arguments_of(const synthetic_problem& problem, const synthetic_data& data,
                                 u32 stage) {
  return {stage == 0 ? nullptr : data.words_of(stage - 1), data.seed(), data.words_of(stage),
          problem.cols, cycles_of(problem.tile_us)};
}

gpu_launch plain(const synthetic_problem& problem, const synthetic_data& data) {
  const u32 shared = shared_bytes_of(problem);
  check(cudaFuncSetAttribute(synthetic_plain, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)),
        "set the plain kernel's shared memory");
  check(cudaFuncSetAttribute(synthetic_plain, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared),
        "set the plain kernel's carve-out");
  std::vector<synthetic_arguments> arguments;
  for (u32 stage = 0; stage < problem.stages; ++stage)
    arguments.push_back(arguments_of(problem, data, stage));
  return {[=](cudaStream_t stream) {
    for (const synthetic_arguments& each : arguments)
      synthetic_plain<<<problem.tiles(), problem.threads, shared, stream>>>(each, problem.grid());
    check(cudaGetLastError(), "launch the plain kernel");
  }};
}

template <class Policy, tile_source Source>
gpu_launch chained(const synthetic_problem& problem, const synthetic_variant& variant,
                   const synthetic_data& data) {
  using ref = typename synthetic_stage<Policy, Source>::template ref<cuda_backend>;
  auto chain = std::make_shared<gpu_chain>(variant.mode, variant.w);
  declare_synthetic<Policy, Source>(chain->chain(), problem, [&](auto& stage) {
    auto kernel = chain->chain().kernel(stage, synthetic<ref>, dim3(problem.threads),
                                        shared_bytes_of(problem));
    chain->add(kernel(arguments_of(problem, data, stage.index())));
  });
  return launch_of(chain);
}

} // namespace

bool synthetic_data::right(u32 seed, cudaStream_t stream) const {
  const std::vector<u32> got = words_.read(stream);
  const u32* last = got.data() + std::size_t{problem_.stages - 1} * problem_.tiles();
  for (u32 row = 0; row < problem_.rows; ++row)
    for (u32 col = 0; col < problem_.cols; ++col)
      if (last[row * problem_.cols + col] != synthetic_expected(problem_, seed, row)) return false;
  return true;
}

gpu_launch make_synthetic(const synthetic_problem& problem, const synthetic_variant& variant,
                          const synthetic_data& data) {
  if (variant.policy == sync_kind::stream) return plain(problem, data);
  gpu_launch made;
  with_types(variant, [&](auto policy, auto source) {
    made = chained<typename decltype(policy)::type, source()>(problem, variant, data);
  });
  return made;
}

// --- all variants of all problems -----------------------------------------------------------------

namespace {

class synthetic_bench {
public:
  synthetic_bench(const synthetic_request& request, const synthetic_problem& problem)
      : request_(request), problem_(problem), data_(problem) {}

  void add(const synthetic_variant& variant) {
    gpu_launch made;
    try {
      made = make_synthetic(problem_, variant, data_);
    } catch (const invalid_argument& refusal) { // no pdl on this GPU
      return refuse(variant, refusal.what());
    }
    if (made.mode != variant.mode) return refuse(variant, made.reason);
    if (variant.w && !made.proved) return refuse(variant, "W not proved");
    if (variant.in_graph()) add(variant, made, launch_form::graph);
    if (request_.eager || !variant.in_graph()) add(variant, made, launch_form::eager);
  }

  void time(progress& bar) {
    const std::vector<timing> times =
        time_interleaved(contenders_, request_.samples, runs_a_sample, &bar);
    for (std::size_t i = 0; i < times.size(); ++i) times[i].put(rows_[timed_[i]]);
  }

  const std::vector<synthetic_row>& rows() const { return rows_; }

private:
  static constexpr u32 runs_a_sample = 10;

  void refuse(const synthetic_variant& variant, const std::string& reason) {
    rows_.push_back({problem_, variant, "", reason});
  }

  void add(const synthetic_variant& variant, const gpu_launch& made, launch_form form) {
    synthetic_row row{problem_, variant, name_of(form)};
    const contender of{variant.name() + " " + name_of(form), made.enqueue, form};
    try {
      row.wrong_runs = wrong_runs(
          of, request_.checks, stream_, [&](u32 i) { data_.poison(i * 7, stream_); },
          [&](u32 i) { return !data_.right(i * 7, stream_); });
      made.settle(stream_);
      timed_.push_back(rows_.size());
      contenders_.push_back(of);
    } catch (const wait_timeout& failure) { // the others still tell something
      row.refused = failure.what();
      row.wrong_runs = request_.checks;
    }
    rows_.push_back(row);
  }

  const synthetic_request& request_;
  synthetic_problem problem_;
  synthetic_data data_;
  gpu_stream stream_;
  std::vector<synthetic_row> rows_;
  std::vector<contender> contenders_;
  std::vector<std::size_t> timed_; ///< The contenders' rows.
};

} // namespace

std::vector<synthetic_row> synthetic_on_gpu(const synthetic_request& request) {
  const std::size_t forms = request.eager ? 2 : 1;
  progress bar(
      request.problems.size() *
      (request.variants.size() + timing_steps(request.variants.size() * forms, request.samples)));
  std::vector<synthetic_row> rows;
  for (const synthetic_problem& problem : request.problems) {
    synthetic_bench bench(request, problem);
    for (const synthetic_variant& variant : request.variants) {
      bar.step("check " + variant.name());
      bench.add(variant);
    }
    bench.time(bar);
    rows.insert(rows.end(), bench.rows().begin(), bench.rows().end());
  }
  return rows;
}

} // namespace cusync::cli
