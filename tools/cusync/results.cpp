// SPDX-License-Identifier: MIT
#include "results.hpp"
#include "format.hpp"

#include <cusync/config.hpp> // CUSYNC_VERSION_MAJOR
#include <cusync/errors.hpp> // invalid_argument

#include <nlohmann/json.hpp>

#include <algorithm> // any_of, max
#include <cstdio>    // fputs
#include <ctime>     // gmtime
#include <fstream>   // ofstream

// CMake passes the commit that was checked out when it configured.
#ifndef CUSYNC_COMMIT
#define CUSYNC_COMMIT "unknown"
#endif

namespace cusync::cli {

// --- tables -------------------------------------------------------------------------------------

std::string cell::text() const {
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  if (const auto* count = std::get_if<u64>(&value)) return std::to_string(*count);
  if (const auto* real = std::get_if<number>(&value))
    return formatted("{:.{}f}", real->value, real->decimals);
  return "-";
}

bool table::holds_numbers(std::size_t column) const {
  return std::any_of(rows.begin(), rows.end(),
                     [column](const auto& row) { return row[column].is_number(); });
}

std::string table::text() const {
  std::string lines;
  const auto append = [&](const auto& text_of) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::size_t width = columns[i].size();
      for (const auto& row : rows) width = std::max(width, row[i].text().size());
      line += holds_numbers(i) ? formatted("{:>{}}  ", text_of(i), width)
                               : formatted("{:<{}}  ", text_of(i), width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + "\n";
  };
  append([&](std::size_t i) { return columns[i]; });
  for (const auto& row : rows) append([&](std::size_t i) { return row[i].text(); });
  return lines;
}

std::string table::markdown() const {
  std::string text = "|";
  for (const std::string& column : columns) text += " " + column + " |";
  text += "\n|";
  for (std::size_t i = 0; i < columns.size(); ++i) text += holds_numbers(i) ? " ---: |" : " --- |";
  for (const auto& row : rows) {
    text += "\n|";
    for (const cell& each : row) text += " " + each.text() + " |";
  }
  return text + "\n";
}

namespace {

nlohmann::ordered_json json_of(const cell& each) {
  if (const auto* word = std::get_if<std::string>(&each.value)) return *word;
  if (const auto* count = std::get_if<u64>(&each.value)) return *count;
  if (const auto* real = std::get_if<cell::number>(&each.value)) return real->value;
  return nullptr;
}

nlohmann::ordered_json json_of(const table& from) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : from.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) object[from.columns[i]] = json_of(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  return text;
}

} // namespace

void require_writable(const std::string& option, const std::string& path) {
  if (!std::ofstream(path, std::ios::app))
    throw invalid_argument(option + ": cannot write '" + path +
                           "'; name a file in an existing folder");
}

// --- results ------------------------------------------------------------------------------------

std::string version() {
  return formatted("{}.{}.{}", CUSYNC_VERSION_MAJOR, CUSYNC_VERSION_MINOR, CUSYNC_VERSION_PATCH);
}

std::string commit() { return CUSYNC_COMMIT; }

std::string& command_line() {
  static std::string text;
  return text;
}

results::results(std::string title, const common_options& options)
    : title_(std::move(title)), options_(options) {
  if (!options.markdown.empty()) require_writable("--markdown", options.markdown);
  fact("command", command_line());
  fact("commit", options.commit.empty() ? commit() : options.commit);
  fact("date", today());
}

int results::publish() const {
  std::fputs((options_.json ? json() : text()).c_str(), stdout);
  if (!options_.markdown.empty()) std::ofstream(options_.markdown) << markdown();
  for (const std::string& what : wrong_)
    std::fputs(("cusync: WRONG: " + what + "\n").c_str(), stderr);
  return wrong_.empty() ? 0 : 1;
}

std::string results::text() const {
  std::string text = title_ + "\n";
  for (const auto& [name, value] : facts_)
    if (name != "command" && name != "date" && name != "commit")
      text += formatted("{}: {}\n", name, value);
  for (const auto& [heading, rows] : tables_)
    text += "\n" + (heading.empty() ? "" : heading + "\n") + rows.text();
  if (!notes_.empty()) text += "\n";
  for (const std::string& note : notes_) text += note + "\n";
  return text;
}

std::string results::json() const {
  nlohmann::ordered_json all;
  all["title"] = title_;
  all["version"] = version();
  for (const auto& [name, value] : facts_) all[name] = value;
  for (const auto& [name, value] : counts_) all[name] = value;
  all["tables"] = nlohmann::ordered_json::array();
  for (const auto& [heading, rows] : tables_)
    all["tables"].push_back({{"heading", heading}, {"rows", json_of(rows)}});
  all["notes"] = notes_;
  all["wrong"] = wrong_;
  return all.dump(2) + "\n";
}

std::string results::markdown() const {
  std::string text = "# " + title_ + "\n\n";
  for (const auto& [name, value] : facts_)
    text += name == "command" ? formatted("- {}: `{}`\n", name, value)
                              : formatted("- {}: {}\n", name, value);
  for (const auto& [heading, rows] : tables_)
    text += "\n" + (heading.empty() ? "" : "## " + heading + "\n\n") + rows.markdown();
  if (!notes_.empty()) text += "\n";
  for (const std::string& note : notes_) text += "- " + note + "\n";
  for (const std::string& what : wrong_) text += "- WRONG: " + what + "\n";
  return text;
}

} // namespace cusync::cli
