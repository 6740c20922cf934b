// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp> // invalid_argument
#include <cusync/tile.hpp>   // u32

#include <nlohmann/json_fwd.hpp>

#include <cstddef>          // size_t
#include <initializer_list> // initializer_list
#include <memory>           // shared_ptr
#include <string>           // string
#include <string_view>      // string_view

namespace cusync::cli {

/// A file that says something wrong: "chain.json:12: /stages/1/grid/0: 0 rows; ...".
struct file_error : invalid_argument {
  enum class about {
    form,   ///< What a JSON Schema can see: a missing key, a wrong type, a number out of range.
    meaning ///< What it cannot: a name that is not declared, grids that do not match.
  };
  about concerns;
  file_error(about what, const std::string& message) : invalid_argument(message), concerns(what) {}
};

/// A value of a JSON file, which knows where it stands.
class json_value {
public:
  /// Reads and parses a file. Throws `file_error` with the line where it is no JSON.
  static json_value of_file(const std::string& path);
  /// The same for text; `name` stands for it in messages.
  static json_value of_text(std::string text, const std::string& name);

  // All throw `file_error` that names file, line, path and remedy.

  bool has(std::string_view key) const;
  json_value operator[](std::string_view key) const; ///< Refuses an object without it.
  json_value operator[](std::size_t index) const;
  std::size_t size() const; ///< Of an array.
  bool is_text() const;

  /// Refuses anything but an object whose keys are among these.
  void require_keys(std::initializer_list<const char*> known) const;

  std::string text() const;
  /// A whole number from `least` to `most`; `what` says of what, "rows; a grid needs at least 1".
  u32 count(u32 least, const std::string& what = "", u32 most = 0x7fffffff) const;
  double number() const; ///< At least 0.

  [[noreturn]] void refuse(const std::string& why,
                           file_error::about what = file_error::about::meaning) const;

private:
  struct document;
  json_value(std::shared_ptr<const document> in, const nlohmann::json& at, std::string path)
      : in_(std::move(in)), at_(&at), path_(std::move(path)) {}

  std::shared_ptr<const document> in_;
  const nlohmann::json* at_;
  std::string path_; ///< A JSON pointer.
};

/// The line on which the value at a JSON pointer begins, counted from 1. `text` is valid JSON.
std::size_t line_of(std::string_view text, std::string_view pointer);

} // namespace cusync::cli
