// SPDX-License-Identifier: MIT
#include "read_trace.hpp"
#include "kineto_reader.hpp"
#include "nsight_reader.hpp"

#include <cusync/errors.hpp> // invalid_argument

#include <new> // bad_alloc

namespace cusync::analyze {
namespace {

trace read_known(trace_file& file, const std::string& path, const progress_report& report) {
  switch (file.kind()) {
  case file_kind::json:
    return read_kineto(file);
  case file_kind::gzip:
    return read_kineto(*unpacked(file));
  case file_kind::sqlite:
    return read_nsight(path, report);
  case file_kind::unknown:
    break;
  }
  throw invalid_argument("neither JSON, gzip nor SQLite; give a PyTorch profiler trace, or export "
                         "an .nsys-rep with: nsys export --type sqlite");
}

} // namespace

trace read_trace(const std::string& path, const progress_report& report) {
  trace_file file(path, report);
  try {
    return read_known(file, path, report);
  } catch (const invalid_argument& refusal) {
    throw invalid_argument(path + ": " + refusal.what());
  } catch (const std::bad_alloc&) {
    throw invalid_argument(path + ": not enough memory for its kernels");
  }
}

} // namespace cusync::analyze
