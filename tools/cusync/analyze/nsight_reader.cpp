// SPDX-License-Identifier: MIT
#include "nsight_reader.hpp"
#include "numbers.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <sqlite3.h>

#include <algorithm>        // binary_search, min, sort
#include <cctype>           // isalnum
#include <cstring>          // memcpy
#include <initializer_list> // initializer_list
#include <limits>           // numeric_limits
#include <memory>           // unique_ptr

namespace cusync::analyze {
namespace {

constexpr i64 most_u32 = std::numeric_limits<u32>::max();
constexpr i64 most_i64 = std::numeric_limits<i64>::max();

// --- SQLite -----------------------------------------------------------------------------------------

struct closer {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class database {
public:
  explicit database(sqlite3* opened) : opened_(opened) {
    // The schema is the file's author's: no functions of ours in it, no writing through it.
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 24);
  }

  [[noreturn]] void refuse() const {
    throw invalid_argument("the SQLite database is damaged or of another kind (" +
                           std::string(sqlite3_errmsg(opened_.get())) +
                           "); export the report again: nsys export --type sqlite");
  }
  std::unique_ptr<sqlite3_stmt, closer> prepare(const std::string& text) const {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(opened_.get(), text.c_str(), -1, &made, nullptr) != SQLITE_OK) refuse();
    return std::unique_ptr<sqlite3_stmt, closer>(made);
  }
  bool step(sqlite3_stmt& statement) const {
    const int outcome = sqlite3_step(&statement);
    if (outcome != SQLITE_ROW && outcome != SQLITE_DONE) refuse();
    return outcome == SQLITE_ROW;
  }

private:
  std::unique_ptr<sqlite3, closer> opened_;
};

std::string_view text_at(sqlite3_stmt& row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(&row, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(&row, column))};
}

/// None where the value is missing, or no number in that range.
std::optional<i64> number_at(sqlite3_stmt& row, int column, i64 least, i64 most) {
  if (sqlite3_column_type(&row, column) == SQLITE_NULL) return {};
  if (sqlite3_column_type(&row, column) != SQLITE_INTEGER)
    return whole_number_of(text_at(row, column), least, most);
  const i64 value = sqlite3_column_int64(&row, column);
  if (value < least || value > most) return {};
  return value;
}

// --- the reader -------------------------------------------------------------------------------------

constexpr const char* kernel_table = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* call_table = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* copy_table = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* set_table = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* wait_table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* graph_table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* gpu_table = "TARGET_INFO_GPU";
constexpr const char* cuda_table = "TARGET_INFO_CUDA_DEVICE";
constexpr const char* string_table = "StringIds";
constexpr const char* range_table = "NVTX_EVENTS";

/// A global id holds the process above 24 bits of thread.
u64 process_of(i64 global_id) { return static_cast<u64>(global_id) >> 24; }

class reader {
public:
  reader(sqlite3* opened, const progress_report& report) : data_(opened), report_(report) {}

  trace read() {
    found_.source = "Nsight Systems export";
    count_rows();
    read_gpus();
    read_kernels();
    read_calls();
    read_others(copy_table, other_work::kind::copy);
    read_others(set_table, other_work::kind::set);
    read_others(wait_table, other_work::kind::event_wait);
    read_graphs();
    read_steps();
    return std::move(found_);
  }

private:
  // --- tables and columns -------------------------------------------------------------------------

  /// Tables alone: a view of a hostile file can compute for ever.
  bool has(const char* table) const {
    const auto found =
        data_.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND sql NOT "
                      "LIKE 'CREATE VIRTUAL%'");
    sqlite3_bind_text(found.get(), 1, table, -1, SQLITE_STATIC);
    return data_.step(*found);
  }
  bool has(const char* table, std::string_view column) const {
    const auto columns = data_.prepare("PRAGMA table_info(" + std::string(table) + ")");
    while (data_.step(*columns))
      if (text_at(*columns, 1) == column) return true;
    return false;
  }

  /// Reads these columns, NULL in place of those that are not there.
  auto select(const char* table, std::initializer_list<const char*> columns) const {
    std::string text = "SELECT ";
    const char* comma = "";
    for (const char* column : columns) {
      const std::string quoted = '"' + std::string(column) + '"';
      text += comma + (has(table, column) ? quoted : "NULL");
      comma = ", ";
    }
    return data_.prepare(text + " FROM " + table);
  }

  void require(const char* table, std::string_view column) const {
    if (!has(table, column))
      throw invalid_argument("the table " + std::string(table) + " has no column '" +
                             std::string(column) + "'; export the report with a current nsys");
  }

  void count_rows() {
    for (const char* table : {kernel_table, call_table, copy_table, set_table}) {
      if (!has(table)) continue;
      const auto last = data_.prepare("SELECT max(rowid) FROM " + std::string(table));
      if (data_.step(*last)) rows_ += sqlite3_column_double(last.get(), 0);
    }
  }
  void row_read() {
    ++found_.events;
    constexpr u64 now_and_then = 4096;
    if (report_ && rows_ > 0 && found_.events % now_and_then == 0)
      report_(std::min(1.0, static_cast<double>(found_.events) / rows_));
  }

  // --- strings ------------------------------------------------------------------------------------

  /// A name: an id into the strings, or the text itself, as older exports have it.
  std::string string_at(sqlite3_stmt& row, int column) {
    if (sqlite3_column_type(&row, column) == SQLITE_TEXT) return std::string(text_at(row, column));
    const std::optional<i64> id = number_at(row, column, 0, most_i64);
    return id ? string_of(*id) : std::string();
  }

  const std::string& string_of(i64 id) {
    const auto [at, is_new] = strings_.try_emplace(id);
    if (!is_new || !has_strings()) return at->second;
    if (!by_id_) by_id_ = data_.prepare("SELECT value FROM StringIds WHERE id = ?1");
    sqlite3_reset(by_id_.get());
    sqlite3_bind_int64(by_id_.get(), 1, id);
    if (data_.step(*by_id_)) at->second = text_at(*by_id_, 0);
    return at->second;
  }

  bool has_strings() {
    if (!has_strings_)
      has_strings_ = has(string_table) && has(string_table, "id") && has(string_table, "value");
    return *has_strings_;
  }

  // --- GPUs ---------------------------------------------------------------------------------------

  void read_gpus() {
    if (has(cuda_table)) {
      const auto rows = select(cuda_table, {"pid", "cudaId", "gpuId"});
      while (data_.step(*rows)) {
        const auto pid = number_at(*rows, 0, 0, most_u32);
        const auto cuda = number_at(*rows, 1, 0, most_u32);
        const auto gpu = number_at(*rows, 2, 0, most_u32);
        if (pid && cuda && gpu) gpus_[{*pid, *cuda}] = *gpu;
      }
    }
    if (!has(gpu_table)) return;
    const auto rows =
        select(gpu_table, {"id", "name", "computeMajor", "computeMinor", "smCount", "maxWarpsPerSm",
                           "threadsPerWarp", "maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm",
                           "maxShmemPerBlockOptin"});
    while (data_.step(*rows)) add_gpu(*rows);
  }

  void add_gpu(sqlite3_stmt& row) {
    const auto number = [&row](int column) {
      return static_cast<u32>(number_at(row, column, 0, 1 << 30).value_or(0));
    };
    device_properties gpu;
    gpu.id = number_at(row, 0, 0, most_u32).value_or(0);
    gpu.name = text_at(row, 1);
    gpu.major = number(2);
    gpu.minor = number(3);
    gpu.sms = number(4);
    gpu.warp = number(6);
    gpu.threads_per_sm = static_cast<u32>(std::min<u64>(u64{number(5)} * gpu.warp, 1u << 30));
    gpu.blocks_per_sm = number(7);
    gpu.registers_per_sm = number(8);
    gpu.shared_per_sm = number(9);
    gpu.shared_per_block = number(10);
    found_.devices.push_back(gpu);
  }

  /// A process counts the GPUs that it sees from 0.
  i64 gpu_of(u64 process, i64 device) const {
    constexpr u64 pid_bits = 0xffffff;
    const auto known = gpus_.find({static_cast<i64>(process & pid_bits), device});
    return known == gpus_.end() ? device : known->second;
  }

  /// Of the columns deviceId, contextId, streamId, globalPid from `first` on.
  u32 lane_at(sqlite3_stmt& row, int first) {
    const u64 process = process_of(
        number_at(row, first + 3, std::numeric_limits<i64>::min(), most_i64).value_or(0));
    return found_.lane_of({process, gpu_of(process, number_at(row, first, 0, most_u32).value_or(0)),
                           number_at(row, first + 1, 0, most_u32).value_or(0),
                           number_at(row, first + 2, 0, most_u32).value_or(0)});
  }

  // --- what ran -----------------------------------------------------------------------------------

  void read_kernels() {
    if (!has(kernel_table)) return;
    require(kernel_table, "start");
    require(kernel_table, "end");
    const auto rows = select(kernel_table, {"start",
                                            "end",
                                            "deviceId",
                                            "contextId",
                                            "streamId",
                                            "globalPid",
                                            "demangledName",
                                            "mangledName",
                                            "shortName",
                                            "correlationId",
                                            "graphNodeId",
                                            "registersPerThread",
                                            "staticSharedMemory",
                                            "dynamicSharedMemory",
                                            "gridX",
                                            "gridY",
                                            "gridZ",
                                            "blockX",
                                            "blockY",
                                            "blockZ",
                                            "clusterX",
                                            "clusterY",
                                            "clusterZ"});
    while (data_.step(*rows)) {
      row_read();
      add_kernel(*rows);
    }
  }

  void add_kernel(sqlite3_stmt& row) {
    const auto start = number_at(row, 0, -most_ns, most_ns);
    const auto end = number_at(row, 1, -most_ns, most_ns);
    std::string name = string_at(row, 6);
    if (name.empty()) name = string_at(row, 7);
    if (name.empty()) name = string_at(row, 8);
    if (!start || !end || *end < *start || name.empty()) {
      ++found_.unusable;
      return;
    }
    kernel_record kernel;
    kernel.start = *start;
    kernel.duration = *end - *start;
    kernel.lane = lane_at(row, 2);
    kernel.name = found_.name_of(name);
    kernel.correlation = static_cast<u64>(number_at(row, 9, 1, most_i64).value_or(0));
    kernel.in_graph = number_at(row, 10, 1, most_i64).has_value();
    kernel.launch = launch_at(row);
    found_.kernels.push_back(kernel);
  }

  static analyze::launch launch_at(sqlite3_stmt& row) {
    const auto number = [&row](int column) {
      return number_at(row, column, 0, most_u32).value_or(0);
    };
    analyze::launch made;
    made.registers = static_cast<u32>(number(11) <= 255 ? number(11) : 0);
    made.shared_bytes = static_cast<u32>(std::min(number(12) + number(13), most_u32));
    made.grid = grid_of(number(14), number(15), number(16));
    made.block = block_of(number(17), number(18), number(19));
    made.cluster = cluster_of(number(20), number(21), number(22));
    return made;
  }

  void read_calls() {
    if (!has(call_table)) return;
    std::vector<u64> wanted;
    for (const kernel_record& kernel : found_.kernels) wanted.push_back(kernel.correlation);
    std::sort(wanted.begin(), wanted.end());
    const auto rows = select(call_table, {"start", "end", "globalTid", "correlationId", "nameId"});
    while (data_.step(*rows)) {
      row_read();
      const auto start = number_at(*rows, 0, -most_ns, most_ns);
      const auto end = number_at(*rows, 1, -most_ns, most_ns);
      const auto thread = number_at(*rows, 2, std::numeric_limits<i64>::min(), most_i64);
      const auto correlation = number_at(*rows, 3, 1, most_i64);
      if (!start || !end || *end < *start || !correlation) continue;
      const std::string name = string_at(*rows, 4);
      const bool graph = name.find("GraphLaunch") != std::string::npos;
      const u64 number = static_cast<u64>(*correlation);
      if (!graph && !std::binary_search(wanted.begin(), wanted.end(), number)) continue;
      found_.calls.push_back(
          {process_of(thread.value_or(0)), number, *start, *end - *start, graph});
    }
  }

  void read_others(const char* table, other_work::kind what) {
    if (!has(table) || !has(table, "start")) return;
    const auto rows =
        select(table, {"start", "deviceId", "contextId", "streamId", "globalPid", "syncType"});
    constexpr i64 stream_wait_event = 2; // CUpti_ActivitySynchronizationType
    while (data_.step(*rows)) {
      row_read();
      const auto start = number_at(*rows, 0, -most_ns, most_ns);
      if (what == other_work::kind::event_wait &&
          number_at(*rows, 5, 0, most_u32) != stream_wait_event)
        continue;
      if (start) found_.others.push_back({what, lane_at(*rows, 1), *start});
    }
  }

  void read_graphs() {
    if (!has(graph_table)) return;
    const auto rows = select(graph_table, {"start"});
    while (data_.step(*rows)) ++found_.graph_rows;
  }

  /// PyTorch marks its steps with NVTX ranges where it is told to. Other ranges stay in the database.
  void read_steps() {
    if (!has(range_table) || !has(range_table, "start") || !has(range_table, "end")) return;
    std::string which;
    if (has(range_table, "text")) which = "text LIKE 'ProfilerStep#%'";
    if (has(range_table, "textId") && has_strings())
      which += std::string(which.empty() ? "" : " OR ") +
               "textId IN (SELECT id FROM StringIds WHERE value LIKE 'ProfilerStep#%')";
    if (which.empty()) return;
    const auto rows = data_.prepare("SELECT \"start\", \"end\" FROM " + std::string(range_table) +
                                    " WHERE " + which);
    while (data_.step(*rows)) {
      const auto start = number_at(*rows, 0, -most_ns, most_ns);
      const auto end = number_at(*rows, 1, -most_ns, most_ns);
      if (start && end && *end >= *start) found_.steps.push_back({*start, *end});
    }
  }

  database data_;
  const progress_report& report_;
  double rows_ = 0;
  trace found_;
  std::map<std::pair<i64, i64>, i64> gpus_; ///< By process and its own number.
  std::unordered_map<i64, std::string> strings_;
  std::unique_ptr<sqlite3_stmt, closer> by_id_; // behind the database: goes first
  std::optional<bool> has_strings_;
};

/// Where nothing beside the file is looked at, and nothing is locked: an export is complete.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr char digits[] = "0123456789abcdef";
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_')
      uri += c;
    else
      uri += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return uri + "?immutable=1";
}

} // namespace

trace read_nsight(const std::string& path, const progress_report& report) {
  sqlite3* opened = nullptr;
  const int outcome = sqlite3_open_v2(uri_of(path).c_str(), &opened,
                                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  reader reads(opened, report); // owns what was opened, also where that failed
  if (outcome != SQLITE_OK) throw invalid_argument("cannot open '" + path + "' with SQLite");
  return reads.read();
}

trace read_nsight_image(std::string_view image) {
  sqlite3* opened = nullptr;
  sqlite3_open(":memory:", &opened);
  const progress_report quiet;
  reader reads(opened, quiet);
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(image.size() + 1));
  if (copy == nullptr) throw invalid_argument("out of memory");
  std::memcpy(copy, image.data(), image.size());
  const auto size = static_cast<sqlite3_int64>(image.size());
  sqlite3_deserialize(opened, "main", copy, size, size,
                      SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  return reads.read();
}

} // namespace cusync::analyze
