// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/device/cuda_error.cuh> // check

#include <cuda_runtime_api.h>

#include <cstddef> // size_t
#include <vector>  // vector

namespace cusync::cli {

using cusync::detail::check;

/// An array on the current device.
template <class T> class device_memory {
public:
  explicit device_memory(std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, bytes()), "allocate " + std::to_string(bytes()) + " bytes on the GPU");
  }
  ~device_memory() { cudaFree(data_); }
  device_memory(const device_memory&) = delete; // owns
  device_memory& operator=(const device_memory&) = delete;

  T* get() const { return data_; }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  void fill_bytes(int byte, cudaStream_t stream) const {
    check(cudaMemsetAsync(data_, byte, bytes(), stream), "fill memory on the GPU");
  }
  void write(const T& first, cudaStream_t stream) const {
    check(cudaMemcpyAsync(data_, &first, sizeof first, cudaMemcpyHostToDevice, stream),
          "copy to the GPU");
  }
  /// Waits for `stream`.
  std::vector<T> read(cudaStream_t stream) const {
    std::vector<T> copy(count_);
    check(cudaMemcpyAsync(copy.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream),
          "copy from the GPU");
    check(cudaStreamSynchronize(stream), "wait for the GPU");
    return copy;
  }

private:
  std::size_t count_;
  T* data_ = nullptr;
};

class gpu_stream {
public:
  gpu_stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~gpu_stream() { cudaStreamDestroy(stream_); }
  gpu_stream(const gpu_stream&) = delete; // owns
  gpu_stream& operator=(const gpu_stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "wait for the GPU"); }

private:
  cudaStream_t stream_ = nullptr;
};

} // namespace cusync::cli
