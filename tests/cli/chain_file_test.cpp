// SPDX-License-Identifier: MIT
// The reader of chain descriptions, and the JSON Schema that is published for them: what one refuses
// for its form, the other refuses too.

#include "chain_file.hpp"
#include "json_file.hpp"

#include <cusync/sim/described_chain.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <rapidjson/document.h>
#include <rapidjson/schema.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cusync::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path root = CUSYNC_SOURCE_DIR;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> examples() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples/chains"))
    found.push_back(entry.path());
  return found;
}

const rapidjson::SchemaDocument& schema() {
  static const auto made = [] {
    rapidjson::Document document;
    document.Parse(contents(root / "docs/chain.schema.json").c_str());
    EXPECT_FALSE(document.HasParseError());
    return std::make_unique<rapidjson::SchemaDocument>(document);
  }();
  return *made;
}

bool schema_accepts(const std::string& text) {
  rapidjson::Document document;
  document.Parse(text.c_str());
  EXPECT_FALSE(document.HasParseError()) << text;
  rapidjson::SchemaValidator validator(schema());
  return document.Accept(validator);
}

enum class verdict { accepted, form, meaning };

verdict verdict_of(const std::string& text) {
  try {
    parse_chain(text, "chain.json");
    return verdict::accepted;
  } catch (const file_error& refusal) {
    EXPECT_THAT(refusal.what(), testing::MatchesRegex("chain.json:[0-9]+: /.*: .*"));
    return refusal.concerns == file_error::about::form ? verdict::form : verdict::meaning;
  }
}

std::string refusal_of_text(const std::string& text) {
  try {
    parse_chain(text, "chain.json");
  } catch (const invalid_argument& refusal) {
    return refusal.what();
  }
  return "accepted";
}

// --- the examples ---------------------------------------------------------------------------------

TEST(ChainFile, ExamplesAreValidAndRun) {
  ASSERT_GE(examples().size(), 4u);
  for (const auto& path : examples()) {
    EXPECT_TRUE(schema_accepts(contents(path))) << path;
    sim::described_chain chain(read_chain(path.string()));
    EXPECT_GT(chain.predict().makespan_ns, 0u) << path;
  }
}

// --- bad files ------------------------------------------------------------------------------------

/// JSON pointers to all values, arrays and objects too.
std::set<std::string> places_in(const json& from) {
  std::set<std::string> found;
  const json leaves = from.flatten();
  for (const auto& [pointer, value] : leaves.items())
    for (json::json_pointer at(pointer); !at.empty(); at.pop_back()) found.insert(at.to_string());
  return found;
}

/// Calls `visit` for every file that differs from `from` in one place: a value replaced, a key left
/// out, a key added.
template <class Visit> void for_each_mutation(const json& from, const Visit& visit) {
  for (const std::string& pointer : places_in(from)) {
    const json::json_pointer at(pointer);
    for (const json& other :
         {json(nullptr), json(0), json(-1), json(1), json(1.5), json("?"), json(3000000000u),
          json::array(), json::array({1}), json::array({1, 2, 3, 4, 5, 6}), json::object()}) {
      json changed = from;
      changed[at] = other;
      visit(changed, pointer);
    }
    json added = from;
    if (!at.empty() && added[at.parent_pointer()].is_object()) {
      added[at.parent_pointer()]["unknown"] = 1;
      visit(added, pointer);
      json removed = from;
      removed[at.parent_pointer()].erase(at.back());
      visit(removed, pointer);
    }
  }
}

TEST(ChainFile, SchemaAndReaderRefuseTheSameForms) {
  u32 refused = 0, accepted = 0;
  std::vector<std::filesystem::path> files = examples();
  files.push_back(root / "tests/data/every_kind.json");
  for (const auto& path : files)
    for_each_mutation(json::parse(contents(path)), [&](const json& changed, const std::string& at) {
      const std::string text = changed.dump(1);
      const bool form = verdict_of(text) == verdict::form;
      ASSERT_EQ(schema_accepts(text), !form)
          << path << " " << at << ": " << refusal_of_text(text) << "\n";
      ++(form ? refused : accepted);
    });
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(accepted, 100u);
}

std::string with(const std::string& stage, const std::string& rest = "") {
  return "{\n \"stages\": [\n  {\"name\": \"a\", \"grid\": [1, 1]},\n  " + stage + "\n ]" + rest +
         "\n}\n";
}

TEST(ChainFile, NamesLineAndPathOfWhatIsWrong) {
  EXPECT_EQ(refusal_of_text(with("{\"name\": \"b\",\n   \"grid\": [0, 4]}")),
            "chain.json:5: /stages/1/grid/0: 0 rows; a grid needs at least 1");
  EXPECT_EQ(refusal_of_text(with("{\"name\": \"a\", \"grid\": [1, 4]}")),
            "chain.json:4: /stages/1/name: 'a' is declared already");
  EXPECT_THAT(refusal_of_text(with("{\"name\": \"b\", \"grid\": [70000, 70000]}")),
              AllOf(HasSubstr("chain.json:4: /stages/1/grid: "), HasSubstr("2147483647 tiles")));
  EXPECT_THAT(refusal_of_text(with("{\"name\": \"b\"}")),
              HasSubstr("chain.json:4: /stages/1: has no \"grid\""));
  EXPECT_THAT(refusal_of_text("{\"stages\": [,]}"), HasSubstr("chain.json:1: not JSON"));
  EXPECT_THAT(refusal_of_text("{\n\"stages\":\n\n?"), HasSubstr("chain.json:4: not JSON"));
}

std::string edge(const std::string& text) {
  return with("{\"name\": \"b\", \"grid\": [2, 2]}",
              ",\n \"buffers\": [{\"name\": \"X\"}],\n \"dependences\": [\n  " + text + "\n ]");
}

TEST(ChainFile, NamesWhatTheSchemaCannotSee) {
  const std::string grid = R"("reads": {"kind": "grid"}, "policy": "GridSync"})";
  EXPECT_EQ(refusal_of_text(edge(R"({"producer": "a", "consumer": "b", )" + grid)), "accepted");
  EXPECT_EQ(refusal_of_text(edge(R"({"producer": "c", "consumer": "b", )" + grid)),
            "chain.json:8: /dependences/0/producer: no stage is named 'c'; choose from a, b");
  EXPECT_THAT(refusal_of_text(edge(R"({"producer": "b", "consumer": "b", )" + grid)),
              HasSubstr("/dependences/0/consumer: 'b' reads itself"));
  EXPECT_THAT(refusal_of_text(edge(R"({"buffer": "Y", "consumer": "b", )" + grid)),
              HasSubstr("/dependences/0/policy: "));
  EXPECT_THAT(
      refusal_of_text(edge(
          R"({"producer": "a", "consumer": "b", "reads": {"kind": "tiles"}, "policy": "RowSync"})")),
      AllOf(HasSubstr("/dependences/0/reads: "), HasSubstr("2 x 2 x 1"), HasSubstr("1 x 1 x 1")));
  EXPECT_THAT(refusal_of_text(edge(R"({"producer": "a", "consumer": "b", )" + grid + ",\n" +
                                   R"({"producer": "b", "consumer": "a", )" + grid)),
              AllOf(HasSubstr("chain.json:7: /dependences: "), HasSubstr("cycle")));
}

TEST(ChainFile, TakesWaitsOfAnArithmeticPatternOnly) {
  const auto waits = [](const std::string& list) {
    return refusal_of_text(
        R"({"stages": [{"name": "a", "grid": [1, 5]}, {"name": "b", "grid": [1, 1]}],
            "dependences": [{"producer": "a", "consumer": "b", "reads": {"kind": "grid"},
            "policy": {"kind": "table", "semaphores": [0, 1, 2, 3, 4], "posts": [1, 1, 1, 1, 1],
            "waits": [)" +
        list + "]}}]}");
  };
  for (const char* good : {"[]", "[3]", "[4, 1]", "[0, 2, 4]", "[0, 1, 3, 4]"})
    EXPECT_EQ(waits(good), "accepted");
  EXPECT_THAT(waits("[0, 1, 3]"), HasSubstr("/dependences/0/policy/waits/0: semaphores of one"));
  EXPECT_THAT(waits("[5]"), HasSubstr("/dependences/0/policy/waits/0/0: semaphore 5 of 5"));
}

TEST(ChainFile, FindsLinesPastStringsWithBrackets) {
  const std::string text = "{\"a\": \"]}\\\"[{,\",\n \"b\": [1,\n {\"c\": [],\n \"d\": 2}]}";
  EXPECT_EQ(line_of(text, ""), 1u);
  EXPECT_EQ(line_of(text, "/b"), 2u);
  EXPECT_EQ(line_of(text, "/b/1"), 3u);
  EXPECT_EQ(line_of(text, "/b/1/d"), 4u);
}

} // namespace
} // namespace cusync::cli
