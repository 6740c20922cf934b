// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"
#include "trace_text.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <iterator>

namespace cusync::analyze {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string unpacked_text(const std::string& packed) {
  text_source source(packed);
  const auto text = unpacked(source);
  std::string all(1 << 20, '\0');
  all.resize(text->read(all.data(), all.size()));
  for (std::string more(1 << 20, '\0');;) {
    const std::size_t part = text->read(more.data(), more.size());
    if (part == 0) return all;
    all.append(more, 0, part);
  }
}

TEST(KinetoReader, CountsTheKernelsOfRealTraces) {
  for (const auto& [name, kernels] : {std::pair{"gpt3_tp8_3layers_b512_h200", 33},
                                      {"gpt3_tp8_3layers_b1_h200", 36},
                                      {"llama8b_2layers_b256_h200", 24},
                                      {"resnet34_b4_h200", 196},
                                      {"alexnet_a100", 79}}) {
    const trace read = read_trace(traces + name + ".json.gz");
    EXPECT_EQ(read.kernels.size(), std::size_t(kernels)) << name;
    EXPECT_EQ(read.calls.size(), read.kernels.size()) << name; // each was launched
    EXPECT_EQ(read.unusable, 0u) << name;
  }
}

TEST(KinetoReader, TakesPlainTextToo) {
  const std::string packed = bytes_of(traces + "llama8b_2layers_b256_h200.json.gz");
  EXPECT_EQ(read_text(unpacked_text(packed)).kernels.size(), 24u);
}

TEST(KinetoReader, KeepsWhatTheModelNeeds) {
  text_kernel kernel;
  kernel.name = R"(void f\u003cint\u003e("x")\n)";
  kernel.name = R"(caf\u00e9 \"k\")";
  kernel.grid = "[3, 2, 544]";
  kernel.registers = 122;
  kernel.shared = 24576;
  kernel.stream = 20;
  const trace read = read_text(trace_json(kernel.json()));
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_EQ(read.names[0], "caf\xc3\xa9 \"k\"");
  EXPECT_EQ(read.kernels[0].launch.grid, (extent3{3, 2, 544}));
  EXPECT_EQ(read.kernels[0].launch.registers, 122u);
  EXPECT_EQ(read.kernels[0].launch.shared_bytes, 24576u);
  EXPECT_EQ(read.lanes[0].stream, 20);
  EXPECT_EQ(read.devices[0].sms, 132u);
}

// A double has no nanoseconds left at 2^50 microseconds: gaps came out as multiples of 250 ns.
TEST(KinetoReader, KeepsNanosecondsOfLargeTimes) {
  text_kernel kernel;
  kernel.start = "1695835573023613.127";
  kernel.duration = "0.001";
  const trace read = read_text(trace_json(kernel.json()));
  EXPECT_EQ(read.kernels[0].start, 1695835573023613127);
  EXPECT_EQ(read.kernels[0].duration, 1);
}

TEST(KinetoReader, TakesNumbersInOtherForms) {
  text_kernel kernel;
  kernel.start = R"("1.5e3")";
  kernel.duration = "1e1";
  const trace read = read_text(trace_json(kernel.json()));
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_EQ(read.kernels[0].start, 1'500'000);
  EXPECT_EQ(read.kernels[0].duration, 10'000);
}

TEST(KinetoReader, LeavesOutKernelsWithoutUsableTimes) {
  for (const char* time : {"NaN", "Infinity", "-Infinity", "null", "true", "\"soon\"", "1e300",
                           "[1]", "99999999999999999999"}) {
    text_kernel kernel;
    kernel.start = time;
    const trace read = read_text(trace_json(kernel.json()));
    EXPECT_EQ(read.kernels.size(), 0u) << time;
    EXPECT_EQ(read.unusable, 1u) << time;
  }
  text_kernel backwards;
  backwards.duration = "-1";
  EXPECT_EQ(read_text(trace_json(backwards.json())).unusable, 1u);
}

TEST(KinetoReader, TakesNoGridThatCannotBeLaunched) {
  for (const char* grid :
       {"[-4, 1, 1]", "[0, 1, 1]", "[4294967296, 1, 1]", "[1, 70000, 1]", "[1, 1]", "[1, 1, 1, 1]",
        "\"132\"", "{}", "[[1], 1, 1]", "[null, 1, 1]"}) {
    text_kernel kernel;
    kernel.grid = grid;
    const trace read = read_text(trace_json(kernel.json()));
    ASSERT_EQ(read.kernels.size(), 1u) << grid;
    EXPECT_FALSE(read.kernels[0].launch.has_shape()) << grid;
  }
  text_kernel largest;
  largest.grid = "[2147483647, 65535, 65535]";
  EXPECT_EQ(read_text(trace_json(largest.json())).kernels[0].launch.grid.count(),
            2147483647ull * 65535 * 65535);
}

TEST(KinetoReader, IgnoresOtherPhasesAndArgumentsInAnyOrder) {
  const std::string early = R"({"args": {"grid": [8, 1, 1], "block": [32, 1, 1], "stream": 3,
    "other": {"grid": [9, 9, 9], "stream": 4}}, "dur": 2, "ts": 1, "name": "k", "cat": "kernel", "ph": "X"})";
  const std::string begin = R"({"ph": "B", "cat": "kernel", "name": "k", "ts": 1, "dur": 1})";
  const trace read = read_text(trace_json(early + "," + begin));
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_EQ(read.kernels[0].launch.grid.x, 8u);
  EXPECT_EQ(read.lanes[0].stream, 3);
}

TEST(KinetoReader, TakesABareListOfEvents) {
  EXPECT_EQ(read_text("[" + text_kernel{}.json() + "]").kernels.size(), 1u);
}

// The window moves on between events: a trace of many windows reads as a small one does.
TEST(KinetoReader, ReadsTracesOfManyWindows) {
  std::string events;
  const std::string other = R"({"ph": "X", "cat": "cpu_op", "name": ")" + std::string(3000, 'x') +
                            R"(", "ts": 1, "dur": 1})";
  for (int i = 0; i < 4000; ++i) {
    text_kernel kernel;
    kernel.start = std::to_string(i * 100);
    kernel.name = "k" + std::to_string(i % 7);
    events += kernel.json() + "," + other + (i < 3999 ? "," : "");
  }
  ASSERT_GT(events.size(), 12u << 20);
  const trace read = read_text(trace_json(events));
  ASSERT_EQ(read.kernels.size(), 4000u);
  EXPECT_EQ(read.names.size(), 7u);
  for (u32 i = 0; i < 4000; ++i) ASSERT_EQ(read.kernels[i].start, i64{i} * 100'000);
}

TEST(KinetoReader, RefusesAnythingElseInOneLine) {
  const std::string whole = trace_json(text_kernel{}.json());
  const std::pair<std::string, const char*> files[] = {
      {whole.substr(0, whole.size() - 3), "ends early"},
      {whole.substr(0, whole.size() / 2), "ends early"},
      {"{}", "no 'traceEvents'"},
      {"{\"traceEvents\": 5}", "not a list"},
      {"{\"traceEvents\": {\"a\": 1}}", "not a list"},
      {"5", "no 'traceEvents'"},
      {"", "ends early"},
      {"{\"traceEvents\": [}", "wrong at byte"},
      {whole + "x", "wrong at byte"},
      {std::string(100000, '['), "nested too deeply"},
      {"{\"a\": \"" + std::string(6 << 20, 'x') + "\"}", "more than 1 MB"},
      {std::string("{\"traceEvents\": [\0]}", 20), "wrong at byte"},
  };
  for (const auto& [text, why] : files) {
    const std::string refusal = refusal_of([&, &content = text] { read_text(content); });
    EXPECT_THAT(refusal, HasSubstr(why)) << text.substr(0, 40);
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  }
}

TEST(KinetoReader, RefusesDamagedGzip) {
  const std::string packed = bytes_of(traces + "llama8b_2layers_b256_h200.json.gz");
  EXPECT_THAT(refusal_of([&] { unpacked_text(packed.substr(0, packed.size() / 2)); }),
              HasSubstr("ends early"));
  std::string damaged = packed;
  for (std::size_t i = 1000; i < 1100; ++i) damaged[i] = '\x55';
  EXPECT_THAT(refusal_of([&] { unpacked_text(damaged); }), HasSubstr("damaged"));
}

TEST(KinetoReader, TakesSeveralGzipMembersAsOne) {
  const std::string packed = bytes_of(traces + "llama8b_2layers_b256_h200.json.gz");
  const std::string once = unpacked_text(packed);
  EXPECT_EQ(unpacked_text(packed + packed), once + once);
  EXPECT_EQ(unpacked_text(packed + std::string(512, '\0')), once);
}

TEST(ReadTrace, SaysWhatAFileIsNot) {
  EXPECT_THAT(refusal_of([] { read_trace("/nowhere.json"); }),
              AllOf(HasSubstr("/nowhere.json"), HasSubstr("No such file")));
  EXPECT_THAT(refusal_of([] { read_trace("/"); }), HasSubstr("directory"));
  EXPECT_THAT(refusal_of([] { read_trace("/dev/null"); }), HasSubstr("empty"));
  EXPECT_THAT(refusal_of([] { read_trace(traces + "README.md"); }),
              AllOf(HasSubstr("README.md"), HasSubstr("neither JSON, gzip nor SQLite")));
}

} // namespace
} // namespace cusync::analyze
