// SPDX-License-Identifier: MIT
#include <cusync/policy/row_sync.hpp> // RowSync

#include <cstdio> // puts

__global__ void semaphore_of(cusync::RowSync policy, cusync::u32* semaphore) {
  *semaphore = policy.semaphore_of({threadIdx.x, 0, 0});
}

int main() {
  std::puts("a kernel with a policy compiles and links");
  return 0;
}
