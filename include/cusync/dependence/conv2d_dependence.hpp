// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/dependence.hpp> // dependence

namespace cusync {

/// A forward 2-D convolution over NHWC images, as an implicit GEMM: row tiles run over the pixels
/// of all images, (image, row, column) flattened; column tiles run over channels.
///
/// A consumer tile reads the window of its output pixels: halo, padding, stride and dilation
/// included, over image borders and several images. The range is the hull [first pixel read, last
/// pixel read] in flattened order: both ends are read, and every pixel read lies between.
struct conv2d_dependence {
  u32 images;
  u32 height, width, channels;             ///< Of the image between the two stages.
  u32 filter_height = 3, filter_width = 3; ///< At least 1.
  u32 padding = 1;                         ///< Pixels of zeros on each side; fewer than the reach.
  u32 stride = 1, dilation = 1;            ///< At least 1.
  element_extent producer_tile;            ///< Pixels x channels of one producer tile.
  u32 consumer_pixels;                     ///< Output pixels of one consumer tile.
  u32 consumer_cols; ///< Column tiles (output channels) of the consumer's grid.
  u32 step_channels; ///< Channels that the consumer reads a step.
  u32 producer_slices = 1;
  u32 consumer_slices = 1; ///< They share the steps (`share_of`).

  /// Height (width) of the output: floor((extent + 2 padding - reach) / stride) + 1, reach being
  /// the pixels that the dilated filter spans. Zero where the filter does not fit.
  CUSYNC_HOST_DEVICE constexpr u32 output_height() const { return output(height, filter_height); }
  CUSYNC_HOST_DEVICE constexpr u32 output_width() const { return output(width, filter_width); }
  CUSYNC_HOST_DEVICE constexpr u32 output_pixels() const {
    return images * output_height() * output_width();
  }

  CUSYNC_HOST_DEVICE constexpr tile_extent producer() const {
    return grid_of({images * height * width, channels}, producer_tile, producer_slices);
  }
  CUSYNC_HOST_DEVICE constexpr tile_extent consumer() const {
    return {ceil_div(output_pixels(), consumer_pixels), consumer_cols, consumer_slices};
  }
  /// A step is one block of `step_channels` channels, at every position of the filter.
  CUSYNC_HOST_DEVICE constexpr step_range steps(tile_coord tile) const {
    return share_of(ceil_div(channels, step_channels), tile.slice, consumer_slices);
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile, u32 step) const {
    return visited_by(tile, {step, step + 1});
  }
  CUSYNC_HOST_DEVICE constexpr tile_range reads(tile_coord tile) const {
    return visited_by(tile, steps(tile));
  }

  /// Host only. Throws `invalid_argument`.
  void validate() const {
    require_positive(filter_height, "conv2d_dependence.filter_height");
    require_positive(filter_width, "conv2d_dependence.filter_width");
    require_positive(stride, "conv2d_dependence.stride");
    require_positive(dilation, "conv2d_dependence.dilation");
    require_positive(producer_tile, "conv2d_dependence.producer_tile");
    require_positive(consumer_pixels, "conv2d_dependence.consumer_pixels");
    require_positive(step_channels, "conv2d_dependence.step_channels");
    require_positive(producer_slices, "conv2d_dependence.producer_slices");
    require_positive(consumer_slices, "conv2d_dependence.consumer_slices");
    require_axis(height, filter_height, "height");
    require_axis(width, filter_width, "width");
    require_pixels(height, width, "input");
    require_pixels(output_height(), output_width(), "output");
    require_countable(producer(), "conv2d_dependence: producer grid");
    require_countable(consumer(), "conv2d_dependence: consumer grid");
  }

private:
  /// One axis of image and output. Signed, since taps also lie in the padding before the image.
  struct axis {
    int extent, outputs, reach, stride, dilation;
    int start; ///< Where the first tap of output 0 lies.

    CUSYNC_HOST_DEVICE constexpr int first_tap(int output) const { return start + output * stride; }

    /// The first tap of `output` that is inside; not below `extent` where dilation steps over all of
    /// a small image. (The last tap is never before the image, since the padding is below the reach.)
    CUSYNC_HOST_DEVICE constexpr int first_inside(int output) const {
      const int tap = first_tap(output);
      if (tap >= 0) return tap;
      const int rest = tap % dilation; // in (-dilation, 0]
      return rest == 0 ? 0 : rest + dilation;
    }
    /// The least of them over outputs [begin, end): they ascend from the first that the border does
    /// not clip, so the loop takes at most padding / stride + 1 turns.
    CUSYNC_HOST_DEVICE constexpr int lowest(int begin, int end) const {
      int low = first_inside(begin);
      for (int output = begin + 1; output < end && first_tap(output - 1) < 0; ++output)
        low = detail::min(low, first_inside(output));
      return low;
    }
    /// The same axis counted from its other end.
    CUSYNC_HOST_DEVICE constexpr axis mirrored() const {
      const int last_tap = first_tap(outputs - 1) + reach - 1;
      return {extent, outputs, reach, stride, dilation, extent - 1 - last_tap};
    }
  };

  struct plane {
    axis rows, cols;

    /// The first pixel that outputs [begin, end) read, flattened; `none` if they read none.
    ///
    /// One turn an output row, whose pixels all see the same input rows. Inside an image one turn
    /// does; a later row reads lower pixels only where the border clips the earlier one.
    CUSYNC_HOST_DEVICE constexpr int lowest(int begin, int end, int none) const {
      int low = none;
      while (begin < end) {
        const int row = begin / cols.outputs % rows.outputs;
        const int col = begin % cols.outputs;
        const int length = detail::min(end - begin, cols.outputs - col);
        const int y = rows.first_inside(row);
        const int x = cols.lowest(col, col + length);
        const int image = begin / cols.outputs / rows.outputs;
        if (y < rows.extent && x < cols.extent)
          low = detail::min(low, (image * rows.extent + y) * cols.extent + x);
        if (low != none && rows.first_tap(row) >= 0) break;
        begin += length;
      }
      return low;
    }
    CUSYNC_HOST_DEVICE constexpr plane mirrored() const {
      return {rows.mirrored(), cols.mirrored()};
    }
  };

  CUSYNC_HOST_DEVICE constexpr u32 reach(u32 filter) const { return (filter - 1) * dilation + 1; }
  CUSYNC_HOST_DEVICE constexpr u32 output(u32 extent, u32 filter) const {
    const u32 padded = extent + 2 * padding;
    return padded < reach(filter) ? 0 : (padded - reach(filter)) / stride + 1;
  }
  CUSYNC_HOST_DEVICE constexpr axis along(u32 extent, u32 filter) const {
    return {static_cast<int>(extent),        static_cast<int>(output(extent, filter)),
            static_cast<int>(reach(filter)), static_cast<int>(stride),
            static_cast<int>(dilation),      -static_cast<int>(padding)};
  }

  /// The hull of the pixels that `outputs` read. Its end is found as its beginning is, in the mirror:
  /// a convolution read from the last pixel backwards is one with other padding.
  CUSYNC_HOST_DEVICE constexpr axis_range pixels_under(axis_range outputs) const {
    const plane image{along(height, filter_height), along(width, filter_width)};
    const int pixels = static_cast<int>(images * height * width);
    const int all = static_cast<int>(output_pixels());
    const int begin = static_cast<int>(outputs.begin);
    const int end = static_cast<int>(outputs.end);
    const int first = image.lowest(begin, end, pixels);
    const int behind_last = pixels - image.mirrored().lowest(all - end, all - begin, pixels);
    return {static_cast<u32>(first), static_cast<u32>(behind_last)};
  }
  CUSYNC_HOST_DEVICE constexpr tile_range visited_by(tile_coord tile, step_range visited) const {
    const axis_range outputs =
        elements_of(tile.row, tile.row + 1, consumer_pixels, output_pixels());
    const axis_range pixels = tiles_over(pixels_under(outputs), producer_tile.rows);
    const axis_range cols = tiles_over(
        elements_of(visited.begin, visited.end, step_channels, channels), producer_tile.cols);
    return {pixels.begin, pixels.end, cols.begin, cols.end};
  }

  void require_axis(u32 extent, u32 filter, const std::string& name) const {
    const u64 reached = u64{filter - 1} * dilation + 1;
    if (padding >= reached)
      throw invalid_argument("conv2d_dependence.padding " + std::to_string(padding) +
                             " is not below the filter's reach of " + std::to_string(reached) +
                             " along the " + name +
                             ", so that some windows would hold only zeros; use at most " +
                             std::to_string(reached - 1));
    if (extent + 2 * u64{padding} + reached + stride > max_tiles)
      throw invalid_argument("conv2d_dependence." + name + " " + std::to_string(extent) +
                             " with padding " + std::to_string(padding) + ", reach " +
                             std::to_string(reached) + " and stride " + std::to_string(stride) +
                             " passes 32 bits; their sum must be at most " +
                             std::to_string(max_tiles));
  }
  void require_pixels(u32 rows, u32 cols, const std::string& side) const {
    if (countable(images, rows, cols)) return;
    throw invalid_argument("conv2d_dependence: " + to_string(tile_extent{images, rows, cols}) +
                           " " + side + " pixels are more than " + std::to_string(max_tiles) +
                           "; use fewer images a run");
  }
};

static_assert(dependence<conv2d_dependence>);
template <> inline constexpr bool same_reads_in_a_row<conv2d_dependence> = true;

} // namespace cusync
