// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include <cusync/dependence/conv2d_dependence.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace cusync {

namespace {

/// The first and the last pixel of a set, flattened; empty while first > last.
struct hull {
  long first = 1;
  long last = 0;

  bool empty() const { return first > last; }
  void add(hull other) {
    if (other.empty()) return;
    *this = empty() ? other : hull{std::min(first, other.first), std::max(last, other.last)};
  }
};

bool fits(long at, u32 extent, u32 filter, const conv2d_dependence& conv) {
  const long last_tap = at * conv.stride + (long{filter} - 1) * conv.dilation;
  return last_tap < long{extent} + 2 * long{conv.padding};
}

/// The pixels that one output pixel reads, tap after tap.
hull pixels_under(long image, long row, long col, const conv2d_dependence& conv) {
  hull read;
  for (long down = 0; down < conv.filter_height; ++down)
    for (long right = 0; right < conv.filter_width; ++right) {
      const long y = row * conv.stride + down * conv.dilation - conv.padding;
      const long x = col * conv.stride + right * conv.dilation - conv.padding;
      if (y < 0 || y >= conv.height || x < 0 || x >= conv.width) continue;
      const long pixel = (image * conv.height + y) * conv.width + x;
      read.add({pixel, pixel});
    }
  return read;
}

/// What each output pixel reads, in flattened order.
std::vector<hull> hulls_of(const conv2d_dependence& conv) {
  std::vector<hull> hulls;
  for (long image = 0; image < conv.images; ++image)
    for (long row = 0; fits(row, conv.height, conv.filter_height, conv); ++row)
      for (long col = 0; fits(col, conv.width, conv.filter_width, conv); ++col)
        hulls.push_back(pixels_under(image, row, col, conv));
  return hulls;
}

/// The hull in tiles: its ends are tiles that hold a pixel that is read, and all others lie between.
tile_range tiles_of(hull read, u32 tile) {
  if (read.empty()) return {0, 0, 0, 1};
  return {static_cast<u32>(read.first) / tile, static_cast<u32>(read.last) / tile + 1, 0, 1};
}

std::string to_text(const conv2d_dependence& conv) {
  std::ostringstream text;
  text << conv.images << " images of " << conv.height << " x " << conv.width << ", filter "
       << conv.filter_height << " x " << conv.filter_width << ", padding " << conv.padding
       << ", stride " << conv.stride << ", dilation " << conv.dilation << ", "
       << conv.producer_tile.rows << " pixels a producer tile, " << conv.consumer_pixels
       << " a consumer tile";
  return text.str();
}

void expect_hull_of_every_tile(const conv2d_dependence& conv, const std::vector<hull>& hulls) {
  ASSERT_EQ(conv.output_pixels(), hulls.size());
  for (u32 tile = 0; tile < conv.consumer().rows; ++tile) {
    hull read;
    const u32 begin = tile * conv.consumer_pixels;
    const u32 end = begin + conv.consumer_pixels;
    for (u32 output = begin; output < end && output < hulls.size(); ++output)
      read.add(hulls[output]);
    const tile_range range = conv.reads({tile, 0, 0});
    ASSERT_EQ(range, tiles_of(read, conv.producer_tile.rows)) << to_text(conv) << ", tile " << tile;
    ASSERT_LE(range.row_end, conv.producer().rows);
  }
}

/// All tile sizes for one shape: tiles inside a row, from the middle of one into another, over images.
void expect_hulls(conv2d_dependence conv) {
  const std::vector<hull> hulls = hulls_of(conv);
  for (const u32 consumer : {1u, 2u, 3u, 5u, 8u, 16u, 50u})
    for (const u32 producer : {1u, 4u, 10u}) {
      conv.consumer_pixels = consumer;
      conv.producer_tile.rows = producer;
      expect_hull_of_every_tile(conv, hulls);
      if (testing::Test::HasFatalFailure()) return;
    }
}

constexpr conv2d_dependence image_of(u32 images, u32 height, u32 width) {
  return {.images = images,
          .height = height,
          .width = width,
          .channels = 1,
          .producer_tile = {1, 1},
          .consumer_pixels = 1,
          .consumer_cols = 1,
          .step_channels = 1};
}

/// Paddings, strides and dilations for one image and filter.
void expect_hulls_of_every_window(conv2d_dependence conv) {
  for (conv.dilation = 1; conv.dilation <= 3; ++conv.dilation) {
    const u32 reach = (std::min(conv.filter_height, conv.filter_width) - 1) * conv.dilation + 1;
    for (conv.padding = 0; conv.padding <= 3 && conv.padding < reach; ++conv.padding)
      for (conv.stride = 1; conv.stride <= 4; ++conv.stride) {
        ASSERT_NO_THROW(conv.validate());
        ASSERT_NO_FATAL_FAILURE(expect_hulls(conv));
      }
  }
}

constexpr element_extent filters[] = {{1, 1}, {2, 2}, {1, 3}, {3, 1}, {3, 3}, {2, 4},
                                      {1, 5}, {5, 1}, {3, 5}, {5, 3}, {5, 5}, {7, 7}};

TEST(Conv2DDependence, RangeIsTheHullOfThePixelsUnderTheFilter) {
  for (const element_extent filter : filters)
    for (u32 images = 1; images <= 3; ++images)
      for (u32 height = 0; height <= 9; ++height)
        for (u32 width = 0; width <= 9; ++width) {
          conv2d_dependence conv = image_of(images, height, width);
          conv.filter_height = filter.rows;
          conv.filter_width = filter.cols;
          ASSERT_NO_FATAL_FAILURE(expect_hulls_of_every_window(conv));
        }
}

constexpr conv2d_dependence conv_of_5x5 = [] {
  conv2d_dependence conv = image_of(2, 5, 5);
  conv.consumer_pixels = 5;
  return conv;
}();

TEST(Conv2DDependence, ReadsTheHaloAboveAndBelow) {
  static_assert(conv_of_5x5.reads({0, 0, 0}) == tile_range{0, 10, 0, 1}); // no row above the image
  static_assert(conv_of_5x5.reads({2, 0, 0}) == tile_range{5, 20, 0, 1});
  static_assert(conv_of_5x5.reads({4, 0, 0}) == tile_range{15, 25, 0, 1}); // none from the next
  static_assert(conv_of_5x5.reads({5, 0, 0}) == tile_range{25, 35, 0, 1});
}

// A tap left of the image is no pixel: the hull once began a few pixels before the first one.
TEST(Conv2DDependence, ATileAtTheBorderDoesNotReadBeforeTheImage) {
  conv2d_dependence conv = image_of(1, 4, 4);
  conv.dilation = 2;
  EXPECT_EQ(conv.reads({0, 0, 0}), (tile_range{5, 16, 0, 1})); // taps at -1, 1, 3
}

// Taps at -1 and 1 of a single pixel: the window reads zeros only.
TEST(Conv2DDependence, TapsThatStepOverASmallImageReadNothing) {
  conv2d_dependence conv = image_of(2, 1, 1);
  conv.dilation = 2;
  conv.padding = 2;
  EXPECT_EQ(conv.output_pixels(), 2u);
  EXPECT_EQ(conv.reads({0, 0, 0}), (tile_range{0, 1, 0, 1})); // taps at -2, 0, 2
  conv.filter_height = conv.filter_width = 2;
  conv.padding = 1;
  EXPECT_EQ(conv.output_pixels(), 2u);
  EXPECT_TRUE(conv.reads({0, 0, 0}).empty()); // taps at -1, 1
}

TEST(Conv2DDependence, StepsReadTheirBlockOfChannels) {
  for (const u32 channels : {0u, 1u, 3u, 63u, 64u, 65u, 128u})
    for (const u32 producer : {1u, 32u, 64u})
      for (const u32 step : {1u, 24u, 64u, 100u})
        for (const u32 slices : {1u, 2u, 3u}) {
          conv2d_dependence conv = image_of(1, 3, 3);
          conv.channels = channels;
          conv.producer_tile.cols = producer;
          conv.step_channels = step;
          conv.consumer_slices = slices;
          u32 next = 0;
          for (u32 slice = 0; slice < slices; ++slice) {
            const step_range visited = conv.steps({0, 0, slice});
            EXPECT_EQ(visited.begin, next);
            for (; next < visited.end; ++next) {
              const tile_range range = conv.reads({4, 0, slice}, next);
              EXPECT_EQ(range.col_begin, next * step / producer);
              EXPECT_EQ(range.col_end, (std::min((next + 1) * step, channels) - 1) / producer + 1);
              EXPECT_EQ(range.rows(), 9u);
            }
            EXPECT_EQ(conv.reads({4, 0, slice}).empty(), visited.begin == visited.end);
          }
          EXPECT_EQ(next, ceil_div(channels, step));
        }
}

template <class Change> std::string refusal_of_changed(Change change) {
  conv2d_dependence conv = image_of(2, 5, 5);
  change(conv);
  return refusal_of([&] { conv.validate(); });
}

TEST(FieldCase29, ConvolutionsThatWouldDivideByZeroAreRefused) {
  const auto zero = [](u32 conv2d_dependence::*field) {
    return refusal_of_changed([=](auto& conv) { conv.*field = 0; });
  };
  const std::string rest = " is 0; it must be at least 1";
  EXPECT_EQ(zero(&conv2d_dependence::filter_height), "conv2d_dependence.filter_height" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::filter_width), "conv2d_dependence.filter_width" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::stride), "conv2d_dependence.stride" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::dilation), "conv2d_dependence.dilation" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::consumer_pixels), "conv2d_dependence.consumer_pixels" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::step_channels), "conv2d_dependence.step_channels" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::producer_slices), "conv2d_dependence.producer_slices" + rest);
  EXPECT_EQ(zero(&conv2d_dependence::consumer_slices), "conv2d_dependence.consumer_slices" + rest);
  EXPECT_EQ(refusal_of_changed([](auto& conv) { conv.producer_tile.rows = 0; }),
            "conv2d_dependence.producer_tile.rows" + rest);
}

TEST(FieldCase29, ConvolutionsWithoutPixelsOrChannelsAreAccepted) {
  for (u32 conv2d_dependence::*field : {&conv2d_dependence::images, &conv2d_dependence::height,
                                        &conv2d_dependence::width, &conv2d_dependence::channels}) {
    EXPECT_EQ(refusal_of_changed([=](auto& conv) { conv.*field = 0; }), "accepted");
  }
}

TEST(FieldCase29, WindowsThatHoldOnlyPaddingAreRefused) {
  EXPECT_EQ(refusal_of_changed([](auto& conv) { conv.padding = 3; }),
            "conv2d_dependence.padding 3 is not below the filter's reach of 3 along the height, so "
            "that some windows would hold only zeros; use at most 2");
  EXPECT_EQ(refusal_of_changed([](auto& conv) { conv.filter_width = 1; }),
            "conv2d_dependence.padding 1 is not below the filter's reach of 1 along the width, so "
            "that some windows would hold only zeros; use at most 0");
}

TEST(FieldCase29, ConvolutionsThatPass32BitsAreRefused) {
  const auto image = [](u32 images, u32 height, u32 width, u32 padding = 1) {
    return refusal_of_changed([=](auto& conv) {
      conv.images = images;
      conv.height = height;
      conv.width = width;
      conv.padding = padding;
    });
  };
  EXPECT_EQ(image(127, 4096, 4096), "accepted");
  EXPECT_EQ(image(128, 4096, 4096),
            "conv2d_dependence: 128 x 4096 x 4096 input pixels are more than 2147483647; use fewer "
            "images a run");
  EXPECT_EQ(image(65536, 65536, 65536), // 2^48: wraps to 0 in 32 bits
            "conv2d_dependence: 65536 x 65536 x 65536 input pixels are more than 2147483647; use "
            "fewer images a run");
  EXPECT_EQ(
      image(1u << 30, 1, 1, 2),
      "conv2d_dependence: 1073741824 x 3 x 3 output pixels are more than 2147483647; use fewer "
      "images a run");
  EXPECT_EQ(image(1, 0xffffffff, 1),
            "conv2d_dependence.height 4294967295 with padding 1, reach 3 and stride 1 passes 32 "
            "bits; their sum must be at most 2147483647");
  EXPECT_EQ(refusal_of_changed([](auto& conv) { conv.dilation = 0x80000000; }),
            "conv2d_dependence.height 5 with padding 1, reach 4294967297 and stride 1 passes 32 "
            "bits; their sum must be at most 2147483647");
  EXPECT_EQ(
      refusal_of_changed([](auto& conv) { conv.producer_slices = 0x7fffffff; }),
      "conv2d_dependence: producer grid 50 x 1 x 2147483647 has more than 2147483647 tiles; use "
      "larger tiles or fewer slices");
}

TEST(FieldCase29, LastTileOfTheLargestConvolutionsIsRead) {
  conv2d_dependence conv = image_of(127, 4096, 4096);
  conv.producer_tile = {256, 1};
  conv.consumer_pixels = 192;
  const u32 last = conv.consumer().rows - 1;
  const u32 pixels = 127 * 4096 * 4096;
  ASSERT_NO_THROW(conv.validate());
  const u32 first_pixel = last * 192 - 4096 - 1; // one row up, one column left
  EXPECT_EQ(conv.reads({last, 0, 0}), (tile_range{first_pixel / 256, pixels / 256, 0, 1}));

  conv = image_of(1, 1, 0x7fffffff - 6); // the longest row; an output row as long
  conv.producer_tile = {1, 1};
  conv.consumer_pixels = 0x70000000; // the second tile ends beyond 32 bits
  ASSERT_NO_THROW(conv.validate());
  EXPECT_EQ(conv.reads({1, 0, 0}), (tile_range{0x70000000 - 1, 0x7fffffff - 6, 0, 1}));
}

} // namespace
} // namespace cusync
