// SPDX-License-Identifier: MIT
#include "mlp_cpu.hpp"
#include "format.hpp"
#include "normal.hpp"

#include <cusync/kernels/gemm_host.hpp>      // gemm_host
#include <cusync/kernels/gemm_reference.hpp> // gemm_reference
#include <cusync/kernels/sim_gemm_views.hpp> // sim_gemm_views
#include <cusync/sim/cusync.hpp>             // sim::CuSync

#include <algorithm> // fill, max, min
#include <cmath>     // sqrt
#include <memory>    // unique_ptr
#include <vector>    // vector

namespace cusync::cli {
namespace {

std::vector<half> normal_halves(u64 seed, std::size_t count, double deviation) {
  std::vector<half> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = half(static_cast<float>(deviation) * normal_at(seed, i));
  return values;
}

/// Operands, results and references of one batch. Every value of a matrix is about 1 in size.
class mlp_data {
public:
  mlp_data(const mlp_shape& shape, u64 seed)
      : shape_(shape), x_(normal_halves(seed * 4, count(shape.batch, shape.hidden), 1)),
        w1_(normal_halves(seed * 4 + 1, count(shape.hidden, shape.columns),
                          1 / std::sqrt(shape.hidden))),
        w2_(normal_halves(seed * 4 + 2, count(shape.columns, shape.hidden),
                          1 / std::sqrt(shape.columns))),
        xw1_(count(shape.batch, shape.columns)), y_(count(shape.batch, shape.hidden)) {}

  gemm_arguments first() { return shape_.first(x_.data(), w1_.data(), xw1_.data()); }
  gemm_arguments second() { return shape_.second(xw1_.data(), w2_.data(), y_.data()); }
  u64 results() const { return xw1_.size() + y_.size(); }

  /// Whoever reads what is not written yet then gets NaN.
  void poison() {
    std::fill(xw1_.begin(), xw1_.end(), half::from_bits(0xffff));
    std::fill(y_.begin(), y_.end(), half::from_bits(0xffff));
  }

  /// Elements that are not what double precision says. The second product's reference starts from the
  /// first one's result, as it is after the first run, which this has just checked.
  u64 wrong() {
    if (!reference1_) reference1_ = std::make_unique<gemm_reference>(first());
    const u64 wrong_in_first = mismatches(*reference1_, xw1_, shape_.columns);
    if (!reference2_) reference2_ = std::make_unique<gemm_reference>(second());
    return wrong_in_first + mismatches(*reference2_, y_, shape_.hidden);
  }

private:
  static std::size_t count(u32 rows, u32 cols) { return std::size_t{rows} * cols; }

  u64 mismatches(const gemm_reference& reference, const std::vector<half>& got, u32 cols) const {
    u64 wrong = 0;
    for (u32 row = 0; row < shape_.batch; ++row)
      for (u32 col = 0; col < cols; ++col)
        wrong += !reference.accepts(row, col, got[std::size_t{row} * cols + col]);
    return wrong;
  }

  mlp_shape shape_;
  std::vector<half> x_, w1_, w2_, xw1_, y_;
  std::unique_ptr<gemm_reference> reference1_, reference2_;
};

// --- the model ----------------------------------------------------------------------------------

/// A tile multiplies whole fragments, also beyond the matrix's edge. Each operand comes from memory
/// once, whoever reads it again finds it in the L2: a tile's share of that.
sim::tile_cost cost_of(const gemm_arguments& args, gemm_tile tile) {
  const double m = args.m, n = args.n, k = args.k;
  const double tiles = static_cast<double>(gemm_grid(args.m, args.n, tile).count());
  return {.flops = 2.0 * tile.m * tile.n * k, .bytes = 2 * (m * k + k * n + m * n) / tiles};
}

sim::block_resources resources_of(const sim::gpu& gpu, const tile_info& tile) {
  const u32 registers = gpu.registers_per_sm / (tile.threads * tile.blocks_per_sm);
  return {tile.threads, std::min(registers, sim::gpu::registers_per_thread), tile.shared_bytes};
}

/// What R takes off a tile's time: while the wait's round trip lasts, the weights' first k-tiles are
/// on their way. It helps as far as the tile is held up by memory.
u64 head_start_ns(const sim::gpu& gpu, const sim::tile_time& time, const gemm_arguments& args,
                  const tile_info& tile) {
  const double tiles = static_cast<double>(gemm_grid(args.m, args.n, tile.tile).count());
  const double ahead = std::min(1.0 * args.k, 1.0 * tile.ahead * tile.tile.k);
  const double bytes_ns = 2 * ahead * args.n / tiles / time.gb_s;
  const double slack_ns = std::max(0.0, time.bytes_ns - time.flops_ns);
  return std::min(static_cast<u64>(std::min(bytes_ns, slack_ns)), gpu.satisfied_wait_ns);
}

// --- one row ------------------------------------------------------------------------------------

class mlp_bench {
public:
  mlp_bench(const mlp_request& request, const sim::gpu& gpu, const mlp_shape& shape,
            const tile_info& tile)
      : request_(request), gpu_(gpu), tile_(tile), data_(shape, request.seed + shape.batch) {
    found_.shape = shape;
    found_.tile = tile;
    found_.checked = data_.results();
  }

  void run(const sync_choice& choice) {
    with_policy(choice.policy, [&](auto tag) { run<typename decltype(tag)::type>(choice); });
  }
  mlp_batch found() const { return found_; }

private:
  template <class Policy> void run(const sync_choice& choice) {
    sim::CuSync chain(gpu_,
                      {.mode = choice.baseline() ? launch_mode::serial : request_.mode,
                       .gate = choice.w ? sim::gate_kind::as_needed : sim::gate_kind::all_blocks,
                       .seed = request_.seed});
    auto [first, second] = declare_mlp<Policy>(chain, found_.shape, tile_.tile);
    auto gemm1 = bind(chain, first, data_.first(), cost_of(data_.first(), tile_.tile));
    auto gemm2 = bind(chain, second, data_.second(), second_cost(choice));
    mlp_row row{choice, chain.mode()};
    row.proved = !choice.w || chain.gate_needless();
    if (row.proved) execute(chain, row, gemm1(), gemm2());
    if (choice.baseline()) explain(chain, first, second);
    note_mode(choice, chain.mode_reason());
    found_.rows.push_back(row);
  }

  template <class Stage>
  auto bind(sim::CuSync& chain, Stage& stage, const gemm_arguments& args,
            const sim::tile_cost& cost) {
    const sim_gemm_views views{tile_.tile, {tile_.tile.m, tile_.tile.n}};
    return chain.kernel(
        stage,
        [=, tile = tile_.tile](auto ref) {
          gemm_host({args, tile}, ref, views);
        },
        resources_of(gpu_, tile_), cost);
  }

  sim::tile_cost second_cost(const sync_choice& choice) {
    const gemm_arguments args = data_.second();
    const sim::tile_cost cost = cost_of(args, tile_.tile);
    if (!choice.r || request_.mode == launch_mode::serial) return cost;
    const u32 blocks = static_cast<u32>(found_.grid(1).count());
    const u32 per_sm = sim::occupancy(gpu_, resources_of(gpu_, tile_));
    const sim::tile_time time = sim::time_of(gpu_, cost, std::max(1u, per_sm), blocks);
    return {.ns = time.ns - head_start_ns(gpu_, time, args, tile_)};
  }

  void execute(sim::CuSync& chain, mlp_row& row, const sim::stage_call& gemm1,
               const sim::stage_call& gemm2) {
    data_.poison();
    const sim::report report = chain.launch(gemm1, gemm2);
    row.us = static_cast<double>(report.makespan_ns - report.stages.front().start_ns) * 1e-3;
    row.wrong = data_.wrong();
    for (u32 stage : {0u, 1u}) found_.blocks_per_wave[stage] = report.stages[stage].blocks_per_wave;
  }

  void explain(sim::CuSync& chain, const any_stage& first, const any_stage& second) {
    for (const any_stage* stage : {&first, &second})
      found_.notes.push_back(formatted("batch {}, {}: {}", found_.shape.batch, stage->name(),
                                       sim::explain(chain.time_of(*stage))));
  }

  void note_mode(const sync_choice& choice, const std::string& reason) {
    if (choice.baseline() || reason.empty() || noted_) return;
    noted_ = true;
    found_.notes.push_back(formatted("batch {}: mode {} was asked for: {}", found_.shape.batch,
                                     name_of(request_.mode), reason));
  }

  const mlp_request& request_;
  const sim::gpu& gpu_;
  tile_info tile_;
  mlp_data data_;
  mlp_batch found_;
  bool noted_ = false;
};

/// Where none is asked for. At the usual size each gives 24 and 48 tiles of the usual batches: 1.2 and
/// 2.4 waves of ten SMs with two blocks each, as the paper's batch 1024 has them.
tile_info usual_tile(u32 batch) {
  if (batch <= 128) return info_of(tile_64x64x64{});
  return batch <= 256 ? info_of(tile_64x128x64{}) : info_of(tile_128x128x32{});
}

} // namespace

std::vector<mlp_batch> mlp_on_virtual_gpu(const mlp_request& request, const sim::gpu& gpu) {
  const std::vector<sync_choice> rows =
      choices(request.policies, request.mode == launch_mode::streams);
  const std::size_t tiles = std::max<std::size_t>(1, request.tiles.size());
  progress bar(request.batches.size() * tiles * rows.size());
  std::vector<mlp_batch> found;
  for (const u32 batch : request.batches)
    for (const tile_info& tile :
         request.tiles.empty() ? std::vector{usual_tile(batch)} : request.tiles) {
      mlp_bench bench(request, gpu, request.shape(batch), tile);
      for (const sync_choice& choice : rows) {
        bar.step(formatted("batch {}, {}", batch, choice.name()));
        bench.run(choice);
      }
      found.push_back(bench.found());
    }
  return found;
}

} // namespace cusync::cli
