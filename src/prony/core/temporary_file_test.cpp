// TemporaryFile: what was appended is read back, nothing is left in the folder, and a full disk is
// an Error that spoils nothing.
#include "prony/core/temporary_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

namespace prony::core {
namespace {

class TemporaryFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("prony-" + std::to_string(::getpid()) + "-temporary");
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(TemporaryFileTest, GivesBackWhatWasAppendedAndHasNoName) {
  auto file = TemporaryFile::create(folder_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->append("first").value(), 0);
  EXPECT_EQ(file->append(std::string(1 << 20, 'x')).value(), 5);
  EXPECT_EQ(file->append("last").value(), 5 + (1 << 20));
  EXPECT_EQ(file->size(), 9 + (1 << 20));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  char text[5] = {};
  ASSERT_TRUE(file->read_at(5 + (1 << 20), text, 4).ok());
  EXPECT_STREQ(text, "last");
  TemporaryFile moved = std::move(*file);
  ASSERT_TRUE(moved.read_at(0, text, 4).ok());
  EXPECT_STREQ(text, "firs");
  const auto beyond = moved.read_at(moved.size() - 2, text, 4);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().message,
            "cannot read a temporary file in " + folder_.string() + ": it is too short");
}

TEST_F(TemporaryFileTest, AFolderThatIsNotThereIsAnError) {
  const auto file = TemporaryFile::create(folder_ / "missing");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kEnvironment);
  EXPECT_EQ(file.error().message, "cannot create a temporary file in " +
                                      (folder_ / "missing").string() +
                                      ": No such file or directory");
}

TEST_F(TemporaryFileTest, AFullDiskIsAnErrorAndKeepsWhatWasThere) {
  auto file = TemporaryFile::create(folder_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append("kept").ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = file->append(std::string(10'000, 'x'));
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message,
            "cannot write a temporary file in " + folder_.string() + ": File too large");
  EXPECT_EQ(file->append("more").value(), 4);  // in the place of what failed
  char text[9] = {};
  ASSERT_TRUE(file->read_at(0, text, 8).ok());
  EXPECT_STREQ(text, "keptmore");
}

}  // namespace
}  // namespace prony::core
