// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp> // error

#include <cuda_runtime_api.h> // cudaError_t

#include <string> // string

namespace cusync {

/// A CUDA call that failed; `code` is CUDA's own.
struct cuda_error : error {
  cudaError_t code;
  cuda_error(cudaError_t failed, const std::string& what)
      : error(what + ": " + cudaGetErrorName(failed) + " (" + cudaGetErrorString(failed) + ")"),
        code(failed) {}
};

namespace detail {

/// Throws unless `result` is success; `what` says what was tried. Clears CUDA's last error, which
/// would else surface in an unrelated call of the user's.
inline void check(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw cuda_error(result, what);
}

} // namespace detail
} // namespace cusync
