// SPDX-License-Identifier: MIT
#include <cusync/tile.hpp> // tile_extent

#include <boost/context/fiber.hpp> // fiber: what cusync::sim brings along

#include <utility> // move

int main() {
  cusync::u64 tiles = 0;
  boost::context::fiber block{[&](boost::context::fiber&& caller) {
    tiles = cusync::tile_extent{2, 3, 4}.count();
    return std::move(caller);
  }};
  block = std::move(block).resume();
  return tiles == 24 ? 0 : 1;
}
