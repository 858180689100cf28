// Safetensors files of every broken kind: one line that says what is wrong, never a crash and never
// an allocation of a claimed size; and the oracle checkpoints, which another library wrote.
#include "prony/engine/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "prony/core/file.hpp"
#include "prony/core/rng.hpp"

namespace prony::engine {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  std::string file;
  for (size_t i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i)));
  return file + header + data;
}

std::string error_of(const std::string& content) {
  const auto parsed = SafetensorsFile::parse(content, "w.safetensors");
  return parsed.ok() ? "no error" : parsed.error().message;
}

const std::string kTwo = R"({"__metadata__":{"format":"pt"},)"
                         R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                         R"("a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}})";

TEST(Safetensors, ReadsTensorsByName) {
  const std::string file = file_of(kTwo, "0123456789ab");
  const auto tensors = SafetensorsFile::parse(file, "w.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].dtype, TensorDtype::kBf16);
  EXPECT_EQ((*tensors)[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ((*tensors)[0].bytes, "0123");
  EXPECT_EQ((*tensors)[1].bytes, "456789ab");
}

TEST(Safetensors, AcceptsScalarsAndEmptyTensors) {
  const std::string header = R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                             R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  const std::string file = file_of(header, "0123");
  EXPECT_TRUE(SafetensorsFile::parse(file, "w").ok()) << error_of(file);
}

TEST(Safetensors, SaysWhatIsBroken) {
  const auto one = [](const std::string& tensor) {
    return error_of(file_of(R"({"t":)" + tensor + "}", "01234567"));
  };
  EXPECT_THAT(error_of(""), HasSubstr("0 bytes, expected a safetensors file"));
  EXPECT_THAT(error_of("1234567"), HasSubstr("7 bytes"));
  EXPECT_THAT(error_of(std::string(8, '\xff') + "{}"), HasSubstr("cut short"));
  EXPECT_THAT(error_of(file_of("[]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of(file_of("{", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of(file_of("", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(one("3"), HasSubstr("tensor 't': found no object"));
  EXPECT_THAT(one(R"({"shape":[2],"data_offsets":[0,8]})"), HasSubstr("no dtype"));
  EXPECT_THAT(one(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"),
              HasSubstr(R"(unknown dtype "F31")"));
  EXPECT_THAT(one(R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})"), HasSubstr("unknown dtype 7"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), HasSubstr("no shape"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("size"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})"), HasSubstr("size"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]})"),
              HasSubstr("more bytes than a file can"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})"),
              HasSubstr("at most 8"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"),
              HasSubstr("byte positions"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})"), HasSubstr("cut short"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
              HasSubstr("data_offsets [8, 0]"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
              HasSubstr("8 bytes at data_offsets, expected 4 for F32 [1]"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("4 bytes at its end"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
              HasSubstr("bytes before it that no tensor owns"));
  EXPECT_THAT(error_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
                               "012345")),
              HasSubstr("tensor 'b': its bytes overlap"));
  EXPECT_THAT(error_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                               R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                               "0123")),
              HasSubstr("tensor 'a': appears twice"));
}

TEST(Safetensors, RefusesAnAbsurdHeader) {
  std::string file =
      file_of(std::string(static_cast<size_t>(SafetensorsFile::kHeaderBytesMax) + 1, ' '), "");
  EXPECT_THAT(error_of(file), HasSubstr("expected at most"));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string file = file_of(kTwo, "0123456789ab");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(SafetensorsFile::parse(std::string_view(file).substr(0, size), "w").ok()) << size;
  }
}

// Any byte may be any other: an answer or an error, and every view inside the file.
TEST(Safetensors, SurvivesFlippedBytes) {
  const std::string good = file_of(kTwo, "0123456789ab");
  core::Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = good;
    for (uint64_t flips = 1 + rng.below(3); flips-- > 0;) {
      file[rng.below(file.size())] = static_cast<char>(rng.below(256));
    }
    const auto tensors = SafetensorsFile::parse(file, "w");
    if (!tensors.ok()) continue;
    for (const auto& tensor : *tensors) {
      ASSERT_GE(tensor.bytes.data(), file.data());
      ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), file.data() + file.size());
    }
  }
}

TEST(Safetensors, OpensWhatTheReferenceLibraryWrote) {
  const auto file = SafetensorsFile::open(std::string(PRONY_SOURCE_DIR) +
                                          "/tests/data/checkpoints/llama-2/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 3u + 2u * 9u);
  EXPECT_EQ(SafetensorsFile::open("/no/such/file").error().code, ErrorCode::kEnvironment);
}

}  // namespace
}  // namespace prony::engine
