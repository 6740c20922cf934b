// SPDX-License-Identifier: MIT
#include "refusal_of.hpp"

#include "analyze/analysis.hpp"
#include "analyze/nsight_reader.hpp"
#include "analyze/read_trace.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace cusync::analyze {
namespace {

using testing::Contains;
using testing::HasSubstr;

// After NVIDIA's SQLite schema reference (release 2026.4, schema 3.28.1), less what is not read.
constexpr const char* schema = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, smCount INTEGER,
  maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER,
  threadsPerWarp INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, computeMajor INTEGER,
  computeMinor INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL,
  uuid TEXT, numMultiprocessors INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
  gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER,
  clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  globalPid INTEGER, bytes INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  globalPid INTEGER, syncType INTEGER NOT NULL);
)";

// Process 77 sees GPU 3 as its device 0. Two kernels of 1.5 waves in stream 7, the second launched late.
constexpr const char* rows = R"(
INSERT INTO StringIds VALUES (1, 'void ns::gemm<float>(float*)'), (2, 'gemm'), (3, '_ZN2ns4gemmE'),
  (4, 'cudaLaunchKernel_v7000'), (5, 'cudaGraphLaunch_v10000');
INSERT INTO TARGET_INFO_GPU VALUES (0, 3, 'NVIDIA H200', 132, 232448, 233472, 65536, 32, 64, 32, 9, 0);
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 77, 'GPU-x', 132);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (100000, 120000, 0, 1, 0, 7, 11, 77 << 24, 1, 2, 3, 168, 6, 33, 1, 384, 1, 1, 1024, 199000, NULL, 2, 1, 1),
  (160000, 180000, 0, 1, 0, 7, 12, 77 << 24, 1, 2, 3, 168, 6, 33, 1, 384, 1, 1, 1024, 199000, NULL, 2, 1, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
  (90000, 95000, 0, (77 << 24) + 5, 11, 4, 0), (140000, 145000, 0, (77 << 24) + 5, 12, 4, 0),
  (130000, 131000, 0, (78 << 24) + 5, 12, 4, 0);
)";

/// A database's bytes.
std::string image_of(const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_open(":memory:", &database);
  char* failure = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &failure), SQLITE_OK)
      << (failure != nullptr ? failure : "");
  sqlite3_free(failure);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string image(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return image;
}

std::string export_with(const std::string& more = {}) {
  return image_of(std::string(schema) + rows + more);
}

TEST(NsightReader, ReadsWhatTheSchemaSays) {
  const trace read = read_nsight_image(export_with());
  ASSERT_EQ(read.kernels.size(), 2u);
  EXPECT_EQ(read.names[read.kernels[0].name], "void ns::gemm<float>(float*)");
  EXPECT_EQ(read.kernels[0].launch, (launch{{6, 33, 1}, {384, 1, 1}, 168, 200024, {2, 1, 1}}));
  EXPECT_EQ(read.lanes[0].stream, 7);
  EXPECT_EQ(read.lanes[0].device, 3); // the GPU, not what the process calls it
  ASSERT_EQ(read.devices.size(), 1u);
  EXPECT_EQ(read.devices[0].threads_per_sm, 2048u);
}

TEST(NsightReader, GivesTheSameAnalysisAsAnyTrace) {
  const analysis found = analyse(read_nsight_image(export_with()));
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_DOUBLE_EQ(found.shapes[0].waves, 1.5);
  EXPECT_EQ(found.pairs[0].gap, 40'000);
  EXPECT_EQ(found.pairs[0].host, 20'000); // by the call of its own process
  EXPECT_EQ(found.pairs[0].call, 5'000);
  EXPECT_THAT(found.gpus[0].from, "limits from the trace");
  EXPECT_THAT(found.notes, Contains(HasSubstr("Clusters: 2 kernels ran in clusters")));
  EXPECT_THAT(found.summary, HasSubstr("2 kernels in 1 stream on 1 GPU (NVIDIA H200)"));
}

TEST(NsightReader, GoesWithoutMissingTables) {
  for (const char* table : {"TARGET_INFO_CUDA_DEVICE", "CUPTI_ACTIVITY_KIND_RUNTIME",
                            "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"})
    EXPECT_EQ(read_nsight_image(export_with("DROP TABLE " + std::string(table))).kernels.size(), 2u)
        << table;
  EXPECT_EQ(read_nsight_image(export_with("DROP TABLE StringIds")).unusable, 2u);
  EXPECT_EQ(read_nsight_image(export_with("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")).kernels.size(),
            0u);
}

TEST(NsightReader, GoesWithoutMissingColumns) {
  for (const char* column : {"contextId", "streamId", "correlationId", "globalPid", "shortName",
                             "mangledName", "graphNodeId", "clusterX", "deviceId"}) {
    const trace read = read_nsight_image(
        export_with("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN " + std::string(column)));
    EXPECT_EQ(read.kernels.size(), 2u) << column;
  }
  const trace shapeless =
      read_nsight_image(export_with("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridX"));
  EXPECT_FALSE(shapeless.kernels[0].launch.has_shape());
  EXPECT_THAT(refusal_of([] {
                read_nsight_image(
                    export_with("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN start"));
              }),
              HasSubstr("no column 'start'"));
}

TEST(NsightReader, TakesNamesAsTextToo) {
  const trace read = read_nsight_image(
      image_of("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 'k')"));
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_EQ(read.names[0], "k");
}

TEST(NsightReader, LeavesOutRowsOfWrongTypes) {
  const trace read = read_nsight_image(image_of(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName, gridX, gridY, gridZ);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('soon', 2, 'k', 1, 1, 1),"
      "(1, NULL, 'k', 1, 1, 1), (5, 2, 'k', 1, 1, 1), (x'00ff', 2, 'k', 1, 1, 1),"
      "(1, 2, x'', 1, 1, 1), (1, 9e99, 'k', 1, 1, 1), (1, 2, 'good', -1, 1, 1)"));
  EXPECT_EQ(read.unusable, 6u);
  ASSERT_EQ(read.kernels.size(), 1u);
  EXPECT_FALSE(read.kernels[0].launch.has_shape());
}

TEST(NsightReader, SaysThatGraphsHideTheirKernels) {
  const std::string image = image_of(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, graphId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2, 1), (3, 4, 1)");
  EXPECT_THAT(refusal_of([&] { analyse(read_nsight_image(image)); }),
              HasSubstr("--cuda-graph-trace=node"));
}

TEST(NsightReader, LetsMemsetsAndEventWaitsPartPairs) {
  const auto pairs = [](const std::string& more) {
    return analyse(read_nsight_image(export_with(more))).pairs.size();
  };
  EXPECT_EQ(
      pairs("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (130000, 131000, 0, 1, 7, 77 << 24, 4)"),
      0u);
  EXPECT_EQ(
      pairs("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (130000, 131000, 0, 1, 8, 77 << 24, 4)"),
      1u);
  const std::string wait =
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (130000, 131000, 0, 1, 7, "
      "77 << 24, ";
  EXPECT_EQ(pairs(wait + "2)"), 0u); // the stream waits
  EXPECT_EQ(pairs(wait + "3)"), 1u); // the host does
}

TEST(NsightReader, TakesStepsFromNvtx) {
  const analysis found = analyse(read_nsight_image(export_with(
      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER);"
      "INSERT INTO StringIds VALUES (9, 'ProfilerStep#2');"
      "INSERT INTO NVTX_EVENTS VALUES (80000, 280000, NULL, 9), (0, 10, 'other', NULL)")));
  EXPECT_EQ(found.steps, 1u);
  EXPECT_DOUBLE_EQ(found.base, 200'000);
}

TEST(NsightReader, DoesNotRunWhatAHostileFileComputes) {
  const trace read = read_nsight_image(
      image_of("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS "
               "(SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start AS end FROM n"));
  EXPECT_EQ(read.kernels.size(), 0u);
}

TEST(NsightReader, RefusesDamagedFilesInOneLine) {
  const std::string whole = export_with();
  std::string damaged = whole;
  for (std::size_t i = 100; i < damaged.size(); i += 7) damaged[i] = static_cast<char>(i * 31);
  for (const std::string& image : {whole.substr(0, 50), whole.substr(0, whole.size() / 2), damaged,
                                   std::string("SQLite format 3\0", 16)}) {
    const std::string refusal = refusal_of([&] { read_nsight_image(image); });
    EXPECT_NE(refusal, "accepted");
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  }
}

TEST(NsightReader, ReadsFilesWhoseNamesAreUris) {
  const std::string path = testing::TempDir() + "cusync 50%?a=#1.sqlite";
  std::ofstream(path, std::ios::binary) << export_with();
  EXPECT_EQ(read_trace(path).kernels.size(), 2u);
  std::remove(path.c_str());
}

} // namespace
} // namespace cusync::analyze
