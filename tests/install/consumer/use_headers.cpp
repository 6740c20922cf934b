// SPDX-License-Identifier: MIT
#include <cusync/policy/row_sync.hpp> // RowSync

int main() {
  constexpr cusync::RowSync policy{{4, 3, 1}};
  static_assert(policy.semaphore_count() == 4);
  return policy.posts_expected(0) == 3 ? 0 : 1;
}
