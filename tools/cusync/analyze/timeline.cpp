// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm> // clamp, max, upper_bound

namespace cusync::analyze {

timeline::timeline(const analysis& found, const std::vector<u32>& shown) {
  std::vector<time_span> busy; // of any stream
  double total = 0;
  for (const u32 index : shown) {
    const kernel_record& kernel = found.kernels[index];
    total += static_cast<double>(kernel.duration);
    if (busy.empty() || kernel.start > busy.back().end)
      busy.push_back({kernel.start, kernel.end()});
    else
      busy.back().end = std::max(busy.back().end, kernel.end());
  }
  const double longest = std::max(1000.0, total / static_cast<double>(shown.size() + 1));
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (i > 0) {
      const i64 gap = busy[i].start - busy[i - 1].end;
      const bool is_cut = static_cast<double>(gap) > longest;
      const double drawn = is_cut ? longest : static_cast<double>(gap);
      if (is_cut) cuts_.push_back({length_, drawn, gap});
      add(busy[i - 1].end, busy[i].start, drawn);
    }
    const double length = static_cast<double>(busy[i].end - busy[i].start);
    add(busy[i].start, busy[i].end, std::max(1.0, length));
  }
}

void timeline::add(i64 start, i64 end, double length) {
  pieces_.push_back({start, end, length_, length});
  length_ += length;
}

double timeline::position(i64 time) const {
  const auto behind =
      std::upper_bound(pieces_.begin(), pieces_.end(), time,
                       [](i64 wanted, const piece& each) { return wanted < each.start; });
  if (behind == pieces_.begin()) return 0;
  const piece& in = *(behind - 1);
  const double part = in.end == in.start ? 0
                                         : static_cast<double>(time - in.start) /
                                               static_cast<double>(in.end - in.start);
  return in.at + in.length * std::clamp(part, 0.0, 1.0);
}

i64 timeline::time(double position) const {
  const auto behind =
      std::upper_bound(pieces_.begin(), pieces_.end(), position,
                       [](double wanted, const piece& each) { return wanted < each.at; });
  if (behind == pieces_.begin()) return pieces_.empty() ? 0 : pieces_.front().start;
  const piece& in = *(behind - 1);
  const double part = std::clamp((position - in.at) / in.length, 0.0, 1.0);
  return in.start + static_cast<i64>(part * static_cast<double>(in.end - in.start));
}

} // namespace cusync::analyze
