// SPDX-License-Identifier: MIT
#include "byte_source.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <zlib.h>

#include <algorithm>  // min
#include <cerrno>     // errno
#include <cstring>    // memcpy, strerror
#include <sys/stat.h> // fstat
#include <vector>     // vector

namespace cusync::analyze {

// --- a file ---------------------------------------------------------------------------------------

namespace {

constexpr std::size_t ahead_bytes = 4096;

std::string cannot_open(const std::string& path, const char* why) {
  return "cannot read '" + path + "': " + why +
         "; name a PyTorch profiler trace (.json, .json.gz) or an Nsight Systems export (.sqlite)";
}

} // namespace

trace_file::trace_file(const std::string& path, progress_report report)
    : path_(path), report_(std::move(report)), file_(std::fopen(path.c_str(), "rb")) {
  if (file_ == nullptr) throw invalid_argument(cannot_open(path, std::strerror(errno)));
  std::setvbuf(file_, nullptr, _IONBF, 0); // all reads are large
  struct stat about {};
  if (fstat(fileno(file_), &about) == 0 && S_ISREG(about.st_mode)) size_ = u64(about.st_size);
  ahead_.resize(ahead_bytes);
  errno = 0;
  ahead_.resize(std::fread(ahead_.data(), 1, ahead_.size(), file_));
  const int failure = errno;
  if (!ahead_.empty()) return;
  std::fclose(file_);
  throw invalid_argument(cannot_open(path, failure != 0 ? std::strerror(failure) : "it is empty"));
}

trace_file::~trace_file() { std::fclose(file_); }

file_kind trace_file::kind() const {
  constexpr std::string_view sqlite("SQLite format 3\0", 16);
  if (std::string_view(ahead_).starts_with(sqlite)) return file_kind::sqlite;
  if (std::string_view(ahead_).starts_with("\x1f\x8b")) return file_kind::gzip;
  const std::size_t first = ahead_.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && (ahead_[first] == '{' || ahead_[first] == '[');
  return json ? file_kind::json : file_kind::unknown;
}

std::size_t trace_file::read(char* to, std::size_t size) {
  if (!ahead_.empty()) {
    const std::size_t part = std::min(size, ahead_.size());
    std::memcpy(to, ahead_.data(), part);
    ahead_.erase(0, part);
    read_ += part;
    return part;
  }
  const std::size_t part = std::fread(to, 1, size, file_);
  if (part == 0 && std::ferror(file_) != 0)
    throw invalid_argument(cannot_open(path_, std::strerror(errno)));
  read_ += part;
  if (report_ && size_ != 0)
    report_(std::min(1.0, static_cast<double>(read_) / static_cast<double>(size_)));
  return part;
}

// --- gzip -----------------------------------------------------------------------------------------

namespace {

class gzip_source final : public byte_source {
public:
  explicit gzip_source(byte_source& packed) : packed_(packed), in_(256 * 1024) {
    constexpr int gzip_only = 15 + 16;
    if (inflateInit2(&state_, gzip_only) != Z_OK) throw invalid_argument("gzip: out of memory");
  }
  ~gzip_source() override { inflateEnd(&state_); }

  std::size_t read(char* to, std::size_t size) override {
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
    const uInt wanted = state_.avail_out;
    while (state_.avail_out == wanted && !done_) step();
    return wanted - state_.avail_out;
  }

private:
  void step() {
    if (state_.avail_in == 0) {
      state_.next_in = in_.data();
      state_.avail_in =
          static_cast<uInt>(packed_.read(reinterpret_cast<char*>(in_.data()), in_.size()));
      if (state_.avail_in == 0) return end();
    }
    if (between_) { // another member, or padding, which gzip ignores as well
      between_ = false;
      if (*state_.next_in != 0x1f) return void(done_ = true);
      inflateReset(&state_);
    }
    const int outcome = inflate(&state_, Z_NO_FLUSH);
    if (outcome == Z_STREAM_END)
      between_ = true;
    else if (outcome != Z_OK && outcome != Z_BUF_ERROR)
      throw invalid_argument("the gzip data is damaged (" +
                             std::string(state_.msg != nullptr ? state_.msg : "no dictionary") +
                             "); record or copy the trace again");
  }

  void end() {
    done_ = true;
    if (!between_)
      throw invalid_argument("the gzip data ends early; record or copy the trace again");
  }

  byte_source& packed_;
  std::vector<Bytef> in_;
  z_stream state_{};
  bool between_ = false; ///< A member is complete.
  bool done_ = false;
};

} // namespace

std::unique_ptr<byte_source> unpacked(byte_source& packed) {
  return std::make_unique<gzip_source>(packed);
}

// --- memory ---------------------------------------------------------------------------------------

std::size_t text_source::read(char* to, std::size_t size) {
  const std::size_t part = std::min(size, text_.size());
  if (part != 0) std::memcpy(to, text_.data(), part);
  text_.remove_prefix(part);
  return part;
}

} // namespace cusync::analyze
