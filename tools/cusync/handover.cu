// SPDX-License-Identifier: MIT
#include "gpu_part.hpp"
#include "gpu_timing.cuh"
#include "synthetic_gpu.cuh"

#include <algorithm> // max
#include <cmath>     // llround

namespace cusync::cli {
namespace {

// --- a post and a wait alone ------------------------------------------------------------------------

/// The view of a stage that waits for itself. No chain would take such a cycle; two blocks that are
/// resident together can execute it.
using ping_stage = synthetic_stage<RowSync, tile_source::block_index>::ref<cuda_backend>;

constexpr u32 rounds = 4096; ///< Each on a semaphore of its own.
constexpr u32 block_threads = 128;

enum class motion { ping, wait, post };

__device__ u64 now_ns() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

/// What the blocks need: a set of semaphores and a ticket word for each of two.
struct ping_memory {
  u32 semaphores[2][rounds];
  u64 words[2];
  u64 ns;
  u32 abort;
  spin_report report;
};

/// Block 0 measures; where there is a block 1, it answers each post with one. A block posts its own
/// semaphores and waits on the other's.
__global__ void __launch_bounds__(block_threads)
    move(motion what, ping_stage stage, ping_memory* memory) {
  stage.link.word = &memory->words[blockIdx.x];
  cusync::detail::find_input<0>(stage).semaphores = memory->semaphores[1 - blockIdx.x];
  static_cast<output_ref<0, RowSync>&>(stage).semaphores = memory->semaphores[blockIdx.x];
  stage.start();
  const u64 begin = now_ns();
  for (u32 round = 0; round < rounds; ++round) {
    const tile_coord tile{round, 0, 0};
    if (what == motion::post || (what == motion::ping && blockIdx.x == 0)) stage.post(tile);
    if (what != motion::post) stage.wait_all(previous, tile);
    if (what == motion::ping && blockIdx.x == 1) stage.post(tile);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) memory->ns = now_ns() - begin;
}

ping_stage view_of(ping_memory* memory) {
  ping_stage view;
  view.grid = {rounds, 1, 1};
  view.link.duties = duty::draws | duty::waits | duty::posts;
  view.link.tiles = rounds;
  view.link.tickets = rounds;
  view.link.abort = &memory->abort;
  view.link.report = &memory->report;
  view.link.semaphores = &memory->semaphores[0][0];
  view.link.semaphore_total = 2 * rounds;
  view.link.spin_limit_ns = 2'000'000'000;
  auto& input = cusync::detail::find_input<0>(view);
  input.policy = {view.grid};
  input.dependence = {{rounds, 1}, {1, 1}, 1, 1, 1};
  static_cast<output_ref<0, RowSync>&>(view).policy = {view.grid};
  return view;
}

/// Nanoseconds of one round, a value a sample. All waits are satisfied unless two blocks play.
timing move_times(motion what, u32 samples) {
  const device_memory<ping_memory> memory(1);
  const gpu_stream stream;
  timing times;
  for (u32 sample = 0; sample < samples + 3; ++sample) {
    memory.fill_bytes(0, stream);
    if (what == motion::wait)
      check(cudaMemsetAsync(memory.get(), 1, sizeof(ping_memory::semaphores), stream),
            "post all semaphores");
    move<<<what == motion::ping ? 2 : 1, block_threads, 0, stream>>>(what, view_of(memory.get()),
                                                                     memory.get());
    check(cudaGetLastError(), "launch the ping kernel");
    const ping_memory found = memory.read(stream).front();
    if (found.abort != 0)
      throw wait_timeout("handover: a block waited for more than 2 s for the other's post");
    if (sample >= 3) times.us.push_back(static_cast<double>(found.ns) / rounds);
  }
  return times;
}

table moves(u32 samples) {
  table rows({"of one", "ns", "10%", "90%"});
  const auto add = [&](const char* name, motion what, double hand_overs) {
    const timing times = move_times(what, samples);
    rows.add({name, cell(times.median() / hand_overs, 0), cell(times.low() / hand_overs, 0),
              cell(times.high() / hand_overs, 0)});
  };
  add("hand-over, post to return of the wait", motion::ping, 2); // there and back
  add("wait that is satisfied", motion::wait, 1);
  add("post", motion::post, 1);
  return rows;
}

// --- whole stages -----------------------------------------------------------------------------------

const std::vector<synthetic_variant> stage_variants = {
    {sync_kind::stream, launch_mode::serial},
    {sync_kind::grid, launch_mode::pdl},
    {sync_kind::row, launch_mode::pdl},
    {sync_kind::row, launch_mode::streams},
};

/// The eight-stage chains of whole and partial waves.
std::vector<synthetic_problem> stage_problems() {
  std::vector<synthetic_problem> problems;
  const auto add = [&](u32 rows, u32 per_sm, double tile_us) {
    synthetic_problem problem;
    problem.rows = rows;
    problem.stages = 8;
    problem.tile_us = tile_us;
    problem.blocks_per_sm = per_sm;
    problems.push_back(problem);
  };
  add(22, 2, 1);
  add(33, 2, 1);
  add(22, 1, 4);
  add(33, 1, 4);
  add(33, 1, 10);
  add(11, 1, 10);
  return problems;
}

/// Tiles that must run one after the other: the waves of each stage where a whole stage is waited for,
/// else those of all together, but at least a tile a stage.
u32 waves_of(const synthetic_row& row, u32 sms) {
  const u32 places = sms * row.problem.blocks_per_sm;
  const bool whole =
      row.variant.policy == sync_kind::stream || row.variant.policy == sync_kind::grid;
  return whole ? row.problem.stages * ceil_div(row.problem.tiles(), places)
               : std::max(row.problem.stages,
                          ceil_div(row.problem.stages * row.problem.tiles(), places));
}

table stages_of(const std::vector<synthetic_row>& rows, u32 sms) {
  table result({"tiles", "blocks an SM", "tile us", "launch", "form", "us", "10%", "90%", "waves",
                "us a stage above", "numbers"});
  for (const synthetic_row& row : rows) {
    const bool ran = row.us > 0;
    const u32 waves = waves_of(row, sms);
    const double cost = (row.us - waves * row.problem.tile_us) / row.problem.stages;
    result.add({row.problem.tiles(), row.problem.blocks_per_sm, cell(row.problem.tile_us, 0),
                row.variant.name(), row.form.empty() ? cell() : cell(row.form),
                ran ? cell(row.us, 1) : cell(), ran ? cell(row.low, 1) : cell(),
                ran ? cell(row.high, 1) : cell(), waves, ran ? cell(cost, 2) : cell(),
                !row.refused.empty()  ? cell(row.refused)
                : row.wrong_runs == 0 ? cell("ok")
                                      : cell("wrong")});
  }
  return result;
}

} // namespace

u64 post_ns_on_gpu(u32 samples) {
  return static_cast<u64>(std::llround(move_times(motion::post, samples).median()));
}

void handover_on_gpu(results& found, const common_options& options) {
  found.add("A post and a wait of a block of 128 threads", moves(samples_of(options)));
  synthetic_request request;
  request.problems = stage_problems();
  request.variants = stage_variants;
  request.eager = false;
  request.samples = samples_of(options);
  request.checks = 50;
  const std::vector<synthetic_row> rows = synthetic_on_gpu(request);
  found.add("Eight stages", stages_of(rows, current_gpu().sms));
  for (const synthetic_row& row : rows)
    if (row.wrong_runs != 0)
      found.wrong(row.variant.name() + ": wrong words in " + std::to_string(row.wrong_runs) +
                  " runs");
  found.note("us a stage above: (time - waves * tile) / stages; waves of each stage where whole "
             "stages are waited for, else of all stages together, but at least one a stage.");
  found.note("streams is launched eagerly, all else in graphs.");
}

} // namespace cusync::cli
