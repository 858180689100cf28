// Golden messages: every file of tests/data/catalog/broken has one fault, and errors.txt says what
// a user reads. PRONY_UPDATE_GOLDEN=1 rewrites errors.txt; read its diff before committing it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "prony/catalog/hf_config.hpp"
#include "prony/catalog/model_file.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"

namespace prony::catalog {
namespace {

namespace fs = std::filesystem;

TEST(BrokenFiles, EachIsRefusedWithItsGoldenMessage) {
  const fs::path folder = fs::path(PRONY_SOURCE_DIR) / "tests/data/catalog";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder / "broken")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GT(files.size(), 80U);

  std::string messages;
  for (const fs::path& file : files) {
    const std::string text = core::read_file(file.string()).value();
    const std::string name = file.filename().string();
    const auto spec =
        file.extension() == ".yaml" ? parse_model_file(text, name) : parse_hf_config(text, name);
    ASSERT_FALSE(spec.ok()) << name << " was accepted";
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument) << name;
    const std::string& message = spec.error().message;
    EXPECT_EQ(message.rfind(name, 0), 0U) << "does not start with the file: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "not one line: " << message;
    messages += message + "\n";
  }

  const std::string golden = (folder / "errors.txt").string();
  if (core::environment_variable("PRONY_UPDATE_GOLDEN")) {
    ASSERT_TRUE(core::write_file_atomic(golden, messages).ok());
  }
  EXPECT_EQ(messages, core::read_file(golden).value());
}

}  // namespace
}  // namespace prony::catalog
