// Replays the fuzz corpus (trace_fuzz.cpp) in every test run, and every beginning of its files.
#include <gtest/gtest.h>

#include <filesystem>

#include "prony/core/file.hpp"
#include "prony/workload/trace_fuzz.hpp"

namespace prony::workload {
namespace {

TEST(TraceCorpus, EveryInputIsKeptOrRefused) {
  int files = 0, accepted = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(PRONY_SOURCE_DIR "/tests/fuzz/trace")) {
    const auto content = core::read_file(entry.path().string()).value();
    ++files;
    accepted += read_everything(content);
    for (size_t n = 0; n < content.size(); n += 1 + content.size() / 40) {
      read_everything(std::string_view(content).substr(0, n));
    }
  }
  EXPECT_GE(files, 15);
  EXPECT_GE(accepted, 15);
}

}  // namespace
}  // namespace prony::workload
