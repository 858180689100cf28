// Tests of names: which file or preset each kind of model name leads to, and what a slip is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/model_check.hpp"
#include "prony/catalog/nearest_name.hpp"
#include "prony/catalog/presets.hpp"
#include "prony/core/file.hpp"

namespace prony::catalog {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A folder that is gone at the end of the test, with PRONY_DATA untouched.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = ::testing::TempDir() + "prony_catalog_XXXXXX";
    PRONY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    const fs::path target = fs::path(path_) / name;
    fs::create_directories(target.parent_path());
    PRONY_CHECK(core::write_file_atomic(target.string(), text).ok());
  }

 private:
  std::string path_;
};

// The tests' own data folder, wherever the build folder is.
const bool kUsesSourceData = ::setenv("PRONY_DATA", PRONY_SOURCE_DIR "/data", 1) == 0;

// Another data folder for a while.
class ScopedData {
 public:
  explicit ScopedData(const std::string& folder) { ::setenv("PRONY_DATA", folder.c_str(), 1); }
  ~ScopedData() { ::setenv("PRONY_DATA", PRONY_SOURCE_DIR "/data", 1); }
};

std::string source_text(const std::string& path) {
  return core::read_file(std::string(PRONY_SOURCE_DIR) + "/" + path).value();
}

TEST(Catalog, EveryEntryLoads) {
  ASSERT_TRUE(kUsesSourceData);
  const auto ids = model_ids();
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  EXPECT_EQ(ids->size(), 21U);
  for (const std::string& id : *ids) {
    const auto spec = load_model(id);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    EXPECT_EQ(spec->id, id);
    EXPECT_FALSE(spec->ref.empty());
    EXPECT_FALSE(spec->huggingface_id.empty());
    EXPECT_TRUE(spec->published_parameters.has_value());
  }
}

TEST(Catalog, PresetsAreSaneAndOfTheirPromisedSize) {
  for (const std::string& name : preset_names()) {
    const auto spec = find_preset(name);
    ASSERT_TRUE(spec.has_value());
    EXPECT_EQ(spec->id, "dummy:" + name);
    EXPECT_TRUE(check_model(*spec, PlainLabels(name)).ok());
    EXPECT_GE(spec->vocab, 258);
    EXPECT_EQ(spec->bos_id, 256);
    EXPECT_THAT(spec->eos_ids, ElementsAre(257));
  }
  EXPECT_THAT(preset_names(), ElementsAre("demo", "small", "test"));
  EXPECT_EQ(find_preset("demo")->max_context, 4096);
}

TEST(Catalog, DummyNames) {
  EXPECT_TRUE(is_dummy("dummy:demo"));
  EXPECT_FALSE(is_dummy("demo"));
  EXPECT_EQ(resolve_model("dummy:test")->hidden, 64);
  const auto dummy = resolve_model("dummy:llama-3.1-8b");
  ASSERT_TRUE(dummy.ok()) << dummy.error().message;
  EXPECT_EQ(dummy->id, "dummy:llama-3.1-8b");  // a record never shows random weights as the model
  EXPECT_EQ(dummy->hidden, 4096);
  EXPECT_THAT(resolve_model("dummy:dummy:demo").error().message, HasSubstr("one 'dummy:' only"));
}

TEST(Catalog, UnknownNamesAreToldTheNearest) {
  EXPECT_THAT(resolve_model("lama-3.1-8b").error().message,
              StartsWith("unknown model 'lama-3.1-8b', did you mean 'llama-3.1-8b', expected a "
                         "catalogue id (deepseek-r1, "));
  EXPECT_THAT(resolve_model("dummy:dmeo").error().message, HasSubstr("did you mean 'dummy:demo'"));
  EXPECT_THAT(resolve_model("Llama-3.1-8B-Instruct").error().message,
              HasSubstr("did you mean 'llama-3.1-8b'"));
  EXPECT_THAT(resolve_model("").error().message, HasSubstr("unknown model ''"));
  EXPECT_THAT(load_model("../models/llama-3.1-8b").error().message, HasSubstr("unknown model"));
  EXPECT_EQ(resolve_model("nothing-like-it").error().code, ErrorCode::kInvalidArgument);
}

TEST(Catalog, HuggingFaceIdsAreAliases) {
  EXPECT_EQ(resolve_model("meta-llama/Llama-3.1-8B")->id, "llama-3.1-8b");
  EXPECT_EQ(resolve_model("meta-llama/llama-3.1-8b")->id, "llama-3.1-8b");
  EXPECT_EQ(resolve_model("dummy:Qwen/Qwen3-8B")->id, "dummy:Qwen/Qwen3-8B");
  EXPECT_THAT(resolve_model("meta-llama/Llama-3.1-8B-Instruct").error().message,
              HasSubstr("did you mean 'llama-3.1-8b'"));
}

TEST(Catalog, FoldersAndFiles) {
  const TemporaryFolder temporary;
  temporary.write("My-Model/config.json", source_text("tests/data/catalog/hf/llama-3.1-8b.json"));
  temporary.write("My-Model/generation_config.json", R"({"eos_token_id": [128001, 128009]})");
  const auto folder = resolve_model(temporary.path() + "/My-Model/");
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(folder->id, "My-Model");
  EXPECT_THAT(folder->eos_ids, ElementsAre(128001, 128009));
  EXPECT_EQ(resolve_model("dummy:" + temporary.path() + "/My-Model")->hidden, 4096);

  temporary.write("own.yaml", source_text("data/models/qwen3-8b.yaml"));
  EXPECT_EQ(resolve_model(temporary.path() + "/own.yaml")->id, "qwen3-8b");
  EXPECT_EQ(resolve_model(temporary.path() + "/My-Model/config.json")->id, "config");
  temporary.write("weights.bin", "x");
  EXPECT_THAT(resolve_model(temporary.path() + "/weights.bin").error().message,
              HasSubstr("expected a folder, .yaml or .json"));
  temporary.write("empty/other.txt", "x");
  EXPECT_THAT(resolve_model(temporary.path() + "/empty").error().message,
              HasSubstr("no config.json"));
  temporary.write("My-Model/generation_config.json", "{");
  EXPECT_THAT(resolve_model(temporary.path() + "/My-Model").error().message,
              HasSubstr("generation_config.json: not JSON"));
}

TEST(Catalog, DataFolderFromTheEnvironment) {
  const TemporaryFolder temporary;
  {
    const ScopedData data(temporary.path());
    EXPECT_EQ(data_folder().error().message,
              "PRONY_DATA is '" + temporary.path() + "', expected a folder with models/ in it");
    EXPECT_EQ(resolve_model("llama-3.1-8b").error().code, ErrorCode::kEnvironment);
    EXPECT_TRUE(resolve_model("dummy:demo").ok());  // needs no data folder
    temporary.write("models/mine.yaml", source_text("data/models/qwen3-8b.yaml"));
    EXPECT_THAT(model_ids().value(), ElementsAre("mine"));
    EXPECT_THAT(resolve_model("mine").error().message,
                HasSubstr("id is 'qwen3-8b', expected the file's name"));
  }
  EXPECT_THAT(model_ids().value(), Contains("llama-3.1-8b"));
}

TEST(Catalog, DataFolderBesideOrAboveTheProgram) {
  const TemporaryFolder temporary;
  const std::string& root = temporary.path();
  fs::create_directories(root + "/build/release");
  temporary.write("build/data/other.txt", "a data folder of something else");
  EXPECT_THAT(find_data_folder(root + "/build/release").error().message,
              StartsWith("no data folder beside " + root + "/build/release or in a folder above"));
  temporary.write("data/models/a.yaml", "");
  EXPECT_EQ(find_data_folder(root + "/build/release").value(), root + "/data");
  temporary.write("build/release/data/models/a.yaml", "");
  EXPECT_EQ(find_data_folder(root + "/build/release").value(), root + "/build/release/data");
}

TEST(NearestName, EditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", "ABC"), 0U);
  EXPECT_EQ(edit_distance("abc", "acb"), 1U);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);  // restricted: no edit inside a swap
}

TEST(NearestName, FarNamesGetNoAdvice) {
  const std::vector<std::string> known = {"llama-3.1-8b", "qwen3-8b"};
  EXPECT_EQ(nearest_name("qwen3-8", known), "qwen3-8b");
  EXPECT_EQ(nearest_name("gpt-4", known), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(200, 'x'), known), std::nullopt);
  EXPECT_EQ(nearest_name("qwen3", known), "qwen3-8b");
}

}  // namespace
}  // namespace prony::catalog
