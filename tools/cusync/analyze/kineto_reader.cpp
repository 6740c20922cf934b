// SPDX-License-Identifier: MIT
#include "kineto_reader.hpp"
#include "numbers.hpp"

#include <cusync/errors.hpp> // invalid_argument

#if defined(__SSE2__)
#define RAPIDJSON_SSE2
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstring> // memmove
#include <limits>  // numeric_limits
#include <utility> // move

namespace cusync::analyze {
namespace {

constexpr u32 most_u32 = std::numeric_limits<u32>::max();
constexpr i64 most_i64 = std::numeric_limits<i64>::max();

// --- one event --------------------------------------------------------------------------------------

enum class category { other, kernel, copy, set, call, wait, mark };

category category_of(std::string_view text) {
  if (text == "cpu_op" || text == "ac2g") return category::other; // nearly all
  if (text == "kernel" || text == "Kernel") return category::kernel;
  if (text == "gpu_memcpy" || text == "Memcpy") return category::copy;
  if (text == "gpu_memset" || text == "Memset") return category::set;
  if (text == "cuda_runtime" || text == "cuda_driver" || text == "Runtime") return category::call;
  if (text == "cuda_sync") return category::wait;
  if (text == "user_annotation") return category::mark;
  return category::other;
}

struct event {
  bool complete = false; ///< "ph": "X".
  category what = category::other;
  bool ignored = false; ///< What was read of it says that the rest does not matter.
  std::string name;
  std::optional<i64> start, duration;
  std::optional<i64> pid, tid, device, context, stream, correlation, registers, shared;
  i64 triple[3] = {}; ///< What is being read of:
  u32 triple_size = 0;
  extent3 grid, block, cluster;
  bool graph_node = false;

  void clear() { // keeps the name's memory
    std::string kept = std::move(name);
    kept.clear();
    *this = event{};
    name = std::move(kept);
  }
};

enum class field {
  none,
  // of the file
  events,
  devices,
  information,
  rank,
  // of an event
  phase,
  category,
  name,
  start,
  duration,
  pid,
  tid,
  args,
  // of its arguments
  device,
  context,
  stream,
  correlation,
  registers,
  shared,
  grid,
  block,
  cluster,
  graph_node,
  // of a device
  id,
  major,
  minor,
  sms,
  threads_per_sm,
  blocks_per_sm,
  registers_per_sm,
  shared_per_sm,
  shared_per_block_optin,
  warp,
};

field file_field(std::string_view key) {
  if (key == "traceEvents") return field::events;
  if (key == "deviceProperties") return field::devices;
  if (key == "distributedInfo") return field::information;
  return field::none;
}

field event_field(std::string_view key) {
  switch (key.size()) {
  case 2:
    return key == "ph" ? field::phase : key == "ts" ? field::start : field::none;
  case 3:
    return key == "cat"   ? field::category
           : key == "dur" ? field::duration
           : key == "pid" ? field::pid
           : key == "tid" ? field::tid
                          : field::none;
  case 4:
    return key == "name" ? field::name : key == "args" ? field::args : field::none;
  default:
    return field::none;
  }
}

field args_field(std::string_view key) {
  switch (key.size()) {
  case 4:
    return key == "grid" ? field::grid : field::none;
  case 5:
    return key == "block" ? field::block : field::none;
  case 6:
    return key == "stream" ? field::stream : key == "device" ? field::device : field::none;
  case 7:
    return key == "context" ? field::context : key == "cluster" ? field::cluster : field::none;
  case 11:
    return key == "correlation" ? field::correlation : field::none;
  case 13:
    return key == "shared memory"   ? field::shared
           : key == "graph node id" ? field::graph_node
                                    : field::none;
  case 20:
    return key == "registers per thread" ? field::registers : field::none;
  default:
    return field::none;
  }
}

field device_field(std::string_view key) {
  constexpr std::pair<std::string_view, field> fields[] = {
      {"id", field::id},
      {"name", field::name},
      {"computeMajor", field::major},
      {"computeMinor", field::minor},
      {"numSms", field::sms},
      {"maxThreadsPerMultiprocessor", field::threads_per_sm},
      {"maxBlocksPerMultiProcessor", field::blocks_per_sm},
      {"regsPerMultiprocessor", field::registers_per_sm},
      {"sharedMemPerMultiprocessor", field::shared_per_sm},
      {"sharedMemPerBlockOptin", field::shared_per_block_optin},
      {"warpSize", field::warp},
  };
  for (const auto& [name, which] : fields)
    if (key == name) return which;
  return field::none;
}

// --- the text ---------------------------------------------------------------------------------------

/// A window on the text for RapidJSON's in-situ reader, whose vector code wants contiguous memory. It
/// moves on where no value is being read: then the reader has no copy of the position.
class window {
public:
  explicit window(byte_source& from) : from_(from), bytes_(size + padding), stream(bytes_.data()) {
    end_ = bytes_.data();
    move_on();
  }

  void move_on_if_low() {
    if (!ended_ && static_cast<std::size_t>(end_ - stream.src_) < low) move_on();
  }
  /// Of the first byte that was not read.
  u64 position() const { return before_ + static_cast<u64>(stream.src_ - bytes_.data()); }
  /// Whether the text goes on behind the window.
  bool ended() const { return ended_; }
  bool at_end() const { return stream.src_ >= end_; }

private:
  static constexpr std::size_t size = 4 << 20;
  static constexpr std::size_t padding = 64; // the vector code reads beyond the end

  void move_on() {
    const std::size_t left = static_cast<std::size_t>(end_ - stream.src_);
    before_ += static_cast<u64>(stream.src_ - bytes_.data());
    std::memmove(bytes_.data(), stream.src_, left);
    end_ = bytes_.data() + left;
    while (!ended_ && end_ < bytes_.data() + size) {
      const std::size_t part =
          from_.read(end_, static_cast<std::size_t>(bytes_.data() + size - end_));
      ended_ = part == 0;
      end_ += part;
    }
    *end_ = '\0'; // what ends a text for RapidJSON
    stream.src_ = stream.head_ = bytes_.data();
    stream.dst_ = nullptr;
  }

  byte_source& from_;
  std::vector<char> bytes_;
  char* end_ = nullptr;
  u64 before_ = 0;
  bool ended_ = false;

public:
  static constexpr std::size_t low = 1 << 20; ///< No value is longer.
  rapidjson::InsituStringStream stream;
};

// --- the reader -------------------------------------------------------------------------------------

/// RapidJSON calls it for each value. Whatever is not wanted costs a comparison or two.
class handler {
public:
  handler(trace& into, window& text) : into_(into), text_(text) {}

  bool has_events() const { return has_events_; }
  bool too_deep() const { return places_.size() >= most_levels; }

  bool Null() { return true; }
  bool Bool(bool) { return true; }
  bool Int(int) { return true; } // numbers arrive as text
  bool Uint(unsigned) { return true; }
  bool Int64(std::int64_t) { return true; }
  bool Uint64(std::uint64_t) { return true; }
  bool Double(double) { return true; }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return value({text, size}); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return value({text, size}); }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view key(text, size);
    switch (places_.back()) {
    case place::event:
      field_ = event_field(key);
      break;
    case place::args:
      field_ = args_field(key);
      break;
    case place::file:
      field_ = file_field(key);
      break;
    case place::device:
      field_ = device_field(key);
      break;
    case place::information:
      field_ = key == "rank" ? field::rank : field::none;
      break;
    default:
      field_ = field::none;
    }
    return true;
  }

  bool StartObject() { return enter(object_place()); }
  bool StartArray() { return enter(array_place()); }
  bool EndObject(rapidjson::SizeType) { return leave(); }
  bool EndArray(rapidjson::SizeType) { return leave(); }

private:
  enum class place { file, events, event, args, triple, devices, device, information, other };
  static constexpr std::size_t most_levels = 512;

  place object_place() {
    if (places_.empty()) return place::file;
    switch (places_.back()) {
    case place::events:
      event_.clear();
      return place::event;
    case place::event:
      return field_ == field::args && !event_.ignored ? place::args : place::other;
    case place::devices:
      device_ = {};
      return place::device;
    case place::file:
      require_list();
      return field_ == field::information ? place::information : place::other;
    default:
      return place::other;
    }
  }

  place array_place() {
    if (places_.empty() || (places_.back() == place::file && field_ == field::events)) {
      has_events_ = true;
      return place::events;
    }
    if (places_.back() == place::file && field_ == field::devices) return place::devices;
    const bool extents =
        field_ == field::grid || field_ == field::block || field_ == field::cluster;
    if (places_.back() != place::args || !extents) return place::other;
    event_.triple_size = 0;
    return place::triple;
  }

  bool enter(place into) {
    if (too_deep()) return false;
    places_.push_back(into);
    text_.move_on_if_low();
    return true;
  }

  bool leave() {
    switch (places_.back()) {
    case place::event:
      finish_event();
      break;
    case place::triple:
      finish_triple();
      break;
    case place::device:
      into_.devices.push_back(std::move(device_));
      break;
    default:
      break;
    }
    places_.pop_back();
    text_.move_on_if_low();
    return true;
  }

  bool value(std::string_view text) {
    if (places_.empty()) return true; // refused later: no events
    switch (places_.back()) {
    case place::event:
      set_event(text);
      break;
    case place::args:
      set_args(text);
      break;
    case place::triple:
      if (event_.triple_size < 3)
        event_.triple[event_.triple_size] = whole_number_of(text, 0, most_i64).value_or(0);
      ++event_.triple_size;
      break;
    case place::device:
      set_device(text);
      break;
    case place::information:
      if (field_ == field::rank) into_.rank = whole_number_of(text, 0, most_i64);
      break;
    case place::file:
      require_list();
      break;
    default:
      break;
    }
    return true;
  }

  void require_list() const {
    if (field_ == field::events)
      throw invalid_argument("'traceEvents' is not a list; this is no PyTorch profiler trace");
  }

  void set_event(std::string_view text) {
    if (event_.ignored) return;
    switch (field_) {
    case field::phase:
      event_.complete = text == "X";
      event_.ignored |= !event_.complete;
      break;
    case field::category:
      event_.what = category_of(text);
      event_.ignored |= event_.what == category::other;
      break;
    case field::name:
      event_.name = text;
      break;
    case field::start:
      event_.start = nanoseconds_of(text);
      break;
    case field::duration:
      event_.duration = nanoseconds_of(text);
      break;
    case field::pid:
      event_.pid = whole_number_of(text, 0, most_i64);
      break;
    case field::tid:
      event_.tid = whole_number_of(text, 0, most_i64);
      break;
    default:
      break;
    }
  }

  void set_args(std::string_view text) {
    switch (field_) {
    case field::device:
      event_.device = whole_number_of(text, 0, most_i64);
      break;
    case field::context:
      event_.context = whole_number_of(text, 0, most_i64);
      break;
    case field::stream:
      event_.stream = whole_number_of(text, 0, most_i64);
      break;
    case field::correlation:
      event_.correlation = whole_number_of(text, 1, most_i64);
      break;
    case field::registers:
      event_.registers = whole_number_of(text, 0, 255);
      break;
    case field::shared:
      event_.shared = whole_number_of(text, 0, most_u32);
      break;
    case field::graph_node:
      event_.graph_node = whole_number_of(text, 1, most_i64).has_value();
      break;
    default:
      break;
    }
  }

  void finish_triple() {
    const auto [x, y, z] = event_.triple;
    const bool three = event_.triple_size == 3;
    if (field_ == field::grid) event_.grid = three ? grid_of(x, y, z) : extent3{};
    if (field_ == field::block) event_.block = three ? block_of(x, y, z) : extent3{};
    if (field_ == field::cluster) event_.cluster = three ? cluster_of(x, y, z) : extent3{};
  }

  void set_device(std::string_view text) {
    if (field_ == field::name) device_.name = text;
    if (field_ == field::id) device_.id = whole_number_of(text, 0, most_i64).value_or(-1);
    const u32 number = static_cast<u32>(whole_number_of(text, 0, most_u32).value_or(0));
    switch (field_) {
    case field::major:
      device_.major = number;
      break;
    case field::minor:
      device_.minor = number;
      break;
    case field::sms:
      device_.sms = number;
      break;
    case field::threads_per_sm:
      device_.threads_per_sm = number;
      break;
    case field::blocks_per_sm:
      device_.blocks_per_sm = number;
      break;
    case field::registers_per_sm:
      device_.registers_per_sm = number;
      break;
    case field::shared_per_sm:
      device_.shared_per_sm = number;
      break;
    case field::shared_per_block_optin:
      device_.shared_per_block = number;
      break;
    case field::warp:
      device_.warp = number;
      break;
    default:
      break;
    }
  }

  // --- what an event is ---------------------------------------------------------------------------

  void finish_event() {
    ++into_.events;
    if (!event_.complete || event_.ignored) return;
    switch (event_.what) {
    case category::kernel:
      add_kernel();
      break;
    case category::copy:
      add_other(other_work::kind::copy);
      break;
    case category::set:
      add_other(other_work::kind::set);
      break;
    case category::wait:
      if (event_.name.find("Wait Event") != std::string::npos)
        add_other(other_work::kind::event_wait);
      break;
    case category::call:
      add_call();
      break;
    case category::mark:
      if (event_.name.starts_with("ProfilerStep#") && event_.start && timed())
        into_.steps.push_back({*event_.start, *event_.start + *event_.duration});
      break;
    case category::other:
      break;
    }
  }

  bool timed() const { return event_.start && event_.duration && *event_.duration >= 0; }

  u32 lane() {
    return into_.lane_of({0, event_.device.value_or(event_.pid.value_or(0)),
                          event_.context.value_or(0),
                          event_.stream.value_or(event_.tid.value_or(0))});
  }

  void add_kernel() {
    if (!timed() || event_.name.empty()) {
      ++into_.unusable;
      return;
    }
    kernel_record kernel;
    kernel.start = *event_.start;
    kernel.duration = *event_.duration;
    kernel.lane = lane();
    kernel.name = into_.name_of(event_.name);
    kernel.launch = {event_.grid, event_.block, static_cast<u32>(event_.registers.value_or(0)),
                     static_cast<u32>(event_.shared.value_or(0)), event_.cluster};
    kernel.correlation = static_cast<u64>(event_.correlation.value_or(0));
    kernel.in_graph = event_.graph_node;
    into_.kernels.push_back(kernel);
  }

  void add_other(other_work::kind what) {
    if (event_.start) into_.others.push_back({what, lane(), *event_.start});
  }

  void add_call() {
    if (event_.name.starts_with("hip")) into_.hip = true;
    const bool launches = event_.name.find("Launch") != std::string::npos;
    if (!launches || !timed() || !event_.correlation) return;
    into_.calls.push_back({0, static_cast<u64>(*event_.correlation), *event_.start,
                           *event_.duration, event_.name.find("GraphLaunch") != std::string::npos});
  }

  trace& into_;
  window& text_;
  std::vector<place> places_;
  field field_ = field::none;
  event event_;
  device_properties device_;
  bool has_events_ = false;
};

[[noreturn]] void refuse(const rapidjson::ParseResult& outcome, const window& text,
                         const handler& found) {
  const std::string where = " at byte " + std::to_string(text.position());
  if (found.too_deep())
    throw invalid_argument("the JSON is nested too deeply" + where +
                           "; this is no PyTorch profiler trace");
  if (text.at_end() && text.ended())
    throw invalid_argument("the JSON ends early" + where +
                           "; record the trace again, or wait until it is written");
  if (text.at_end())
    throw invalid_argument("a value of more than " + std::to_string(window::low >> 20) +
                           " MB begins" + where + "; this is no PyTorch profiler trace");
  std::string why = rapidjson::GetParseError_En(outcome.Code());
  if (why.ends_with('.')) why.pop_back();
  throw invalid_argument("the JSON is wrong" + where + " (" + why + "); record the trace again");
}

} // namespace

trace read_kineto(byte_source& source) {
  trace found;
  found.source = "PyTorch profiler trace";
  window text(source);
  handler reads(found, text);
  rapidjson::Reader reader;
  // Recursive, a fifth faster than RapidJSON's iterative parser; the handler bounds the depth.
  constexpr unsigned flags = rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag |
                             rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult outcome = reader.Parse<flags>(text.stream, reads);
  if (outcome.IsError()) refuse(outcome, text, reads);
  if (!reads.has_events())
    throw invalid_argument("the JSON has no 'traceEvents'; this is no PyTorch profiler trace");
  return found;
}

} // namespace cusync::analyze
