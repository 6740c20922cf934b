// SPDX-License-Identifier: MIT
#pragma once

// CUSYNC_HOST_DEVICE marks a pure function that a kernel and the host call alike, CUSYNC_DEVICE one
// that runs inside a block: of a GPU under nvcc, of the virtual GPU elsewhere.
#if defined(__CUDACC__)
#define CUSYNC_HOST_DEVICE __host__ __device__
#define CUSYNC_DEVICE __device__ __forceinline__
#else
#define CUSYNC_HOST_DEVICE
#define CUSYNC_DEVICE inline
#endif

#define CUSYNC_VERSION_MAJOR 0
#define CUSYNC_VERSION_MINOR 1
#define CUSYNC_VERSION_PATCH 0
