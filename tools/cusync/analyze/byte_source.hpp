// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/tile.hpp> // u64

#include <cstddef>     // size_t
#include <cstdio>      // FILE
#include <functional>  // function
#include <memory>      // unique_ptr
#include <string>      // string
#include <string_view> // string_view

namespace cusync::analyze {

/// Called now and then with the part of the file that was read, 0 to 1.
using progress_report = std::function<void(double)>;

/// The bytes of a text, from wherever.
class byte_source {
public:
  byte_source() = default;
  virtual ~byte_source() = default;
  byte_source(const byte_source&) = delete; // a position in a file
  byte_source& operator=(const byte_source&) = delete;

  /// Fills `to` with up to `size` bytes; 0 only at the end. Throws `invalid_argument`.
  virtual std::size_t read(char* to, std::size_t size) = 0;
};

enum class file_kind { json, gzip, sqlite, unknown };

/// A file that is read once, front to back, so that a pipe will do.
class trace_file final : public byte_source {
public:
  /// Throws `invalid_argument` where there is no such file, or an empty one.
  explicit trace_file(const std::string& path, progress_report report = {});
  ~trace_file() override;

  /// By its first bytes.
  file_kind kind() const;
  std::size_t read(char* to, std::size_t size) override;

private:
  std::string path_;
  progress_report report_;
  std::FILE* file_;
  u64 size_ = 0; ///< 0: not known.
  u64 read_ = 0;
  std::string ahead_; ///< Read to tell the kind, handed out first.
};

/// What a gzip file unpacks to; several of them one behind the other are one, as for gzip itself.
/// `packed` outlives it.
std::unique_ptr<byte_source> unpacked(byte_source& packed);

/// A text in memory, for tests.
class text_source final : public byte_source {
public:
  explicit text_source(std::string_view text) : text_(text) {}
  std::size_t read(char* to, std::size_t size) override;

private:
  std::string_view text_;
};

} // namespace cusync::analyze
