// SPDX-License-Identifier: MIT
#include "json_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>  // any_of, count
#include <filesystem> // is_directory
#include <fstream>    // ifstream
#include <iterator>   // istreambuf_iterator
#include <utility>    // move

namespace cusync::cli {

// --- where a value stands -------------------------------------------------------------------------

namespace {

/// Walks valid JSON text, for the sake of lines, which the parser does not keep.
class scanner {
public:
  explicit scanner(std::string_view text) : text_(text) {}

  /// The offset of the value at `pointer`, whose parts follow the first '/'.
  std::size_t find(std::string_view pointer) {
    skip_space();
    if (pointer.empty()) return at_;
    pointer.remove_prefix(1);
    const std::size_t slash = pointer.find('/');
    const std::string_view part = pointer.substr(0, slash);
    const std::string_view rest =
        slash == std::string_view::npos ? std::string_view{} : pointer.substr(slash);
    const bool object = text_[at_++] == '{';
    for (std::size_t index = 0;; ++index) {
      skip_space();
      bool here = std::to_string(index) == part;
      if (object) {
        const std::size_t key = at_ + 1;
        skip_string();
        here = text_.substr(key, at_ - 1 - key) == part;
        skip_space();
        ++at_; // the colon
      }
      if (here) return find(rest);
      skip_value();
      skip_space();
      ++at_; // the comma: the value exists, so the list goes on
    }
  }

private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  void skip_string() {
    for (++at_; text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }
  /// Strings aside, a value ends where its brackets do, or ahead of a comma or a closing bracket.
  void skip_value() {
    skip_space();
    for (int depth = 0; at_ < text_.size();) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == ']' || c == '}')) return;
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::size_t line_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

} // namespace

std::size_t line_of(std::string_view text, std::string_view pointer) {
  return line_at(text, scanner(text).find(pointer));
}

// --- the file -------------------------------------------------------------------------------------

struct json_value::document {
  std::string name;
  std::string text;
  nlohmann::json root;
};

json_value json_value::of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    throw invalid_argument(path + ": cannot be read; name a JSON file");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw invalid_argument(path + ": cannot be read; name a JSON file");
  return of_text(std::move(text), path);
}

json_value json_value::of_text(std::string text, const std::string& name) {
  auto made = std::make_shared<document>();
  made->name = name;
  made->text = std::move(text);
  try {
    made->root = nlohmann::json::parse(made->text);
  } catch (const nlohmann::json::parse_error& failure) {
    const std::string what = failure.what();
    const std::size_t colon = what.find(": ");
    const std::size_t offset = failure.byte == 0 ? 0 : failure.byte - 1;
    throw file_error(file_error::about::form,
                     name + ":" + std::to_string(line_at(made->text, offset)) + ": not JSON" +
                         (colon == std::string::npos ? "" : what.substr(colon)));
  }
  const nlohmann::json& root = made->root;
  return {std::move(made), root, ""};
}

void json_value::refuse(const std::string& why, file_error::about what) const {
  throw file_error(what, in_->name + ":" + std::to_string(line_of(in_->text, path_)) + ": " +
                             (path_.empty() ? "/" : path_) + ": " + why);
}

// --- values ---------------------------------------------------------------------------------------

bool json_value::has(std::string_view key) const {
  return at_->is_object() && at_->contains(std::string(key));
}

json_value json_value::operator[](std::string_view key) const {
  if (!at_->is_object()) refuse("not an object", file_error::about::form);
  if (!has(key)) refuse("has no \"" + std::string(key) + "\"", file_error::about::form);
  const std::string name(key);
  return {in_, (*at_)[name], path_ + "/" + name};
}

json_value json_value::operator[](std::size_t index) const {
  return {in_, (*at_)[index], path_ + "/" + std::to_string(index)};
}

std::size_t json_value::size() const {
  if (!at_->is_array()) refuse("not an array", file_error::about::form);
  return at_->size();
}

bool json_value::is_text() const { return at_->is_string(); }

void json_value::require_keys(std::initializer_list<const char*> known) const {
  if (!at_->is_object()) refuse("not an object", file_error::about::form);
  for (const auto& item : at_->items()) {
    const std::string& key = item.key();
    if (std::any_of(known.begin(), known.end(), [&](const char* each) { return key == each; }))
      continue;
    std::string list;
    for (const char* each : known) list += (list.empty() ? "" : ", ") + std::string(each);
    json_value(in_, item.value(), path_ + "/" + key)
        .refuse("nothing of that name is known; choose from " + list, file_error::about::form);
  }
}

std::string json_value::text() const {
  if (!is_text()) refuse("not a string", file_error::about::form);
  return at_->get<std::string>();
}

u32 json_value::count(u32 least, const std::string& what, u32 most) const {
  const auto form = file_error::about::form;
  if (!at_->is_number_unsigned()) refuse(at_->dump() + " is not a whole number from 0", form);
  const auto value = at_->get<std::uint64_t>();
  if (value < least)
    refuse(std::to_string(value) +
               (what.empty() ? " is too small; it must be at least " + std::to_string(least)
                             : " " + what),
           form);
  if (value > most)
    refuse(std::to_string(value) + " is too large; it must be at most " + std::to_string(most),
           form);
  return static_cast<u32>(value);
}

double json_value::number() const {
  if (!at_->is_number() || !(at_->get<double>() >= 0))
    refuse(at_->dump() + " is not a number from 0", file_error::about::form);
  return at_->get<double>();
}

} // namespace cusync::cli
