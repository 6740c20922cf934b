// SPDX-License-Identifier: MIT
#include "gpu_part.hpp"

#ifndef CUSYNC_HAS_CUDA

namespace cusync::cli {

std::string why_no_gpu() { return "this program was built without CUDA"; }

namespace {
[[noreturn]] void refuse() { throw invalid_argument(why_no_gpu()); }
} // namespace

facts gpu_facts() { refuse(); }
sim::gpu current_gpu() { refuse(); }
std::vector<mlp_batch> mlp_on_gpu(const mlp_request&) { refuse(); }
std::vector<synthetic_row> synthetic_on_gpu(const synthetic_request&) { refuse(); }
u64 post_ns_on_gpu(u32) { refuse(); }
void handover_on_gpu(results&, const common_options&) { refuse(); }
void hooks_on_gpu(results&, const common_options&) { refuse(); }

} // namespace cusync::cli

#endif
