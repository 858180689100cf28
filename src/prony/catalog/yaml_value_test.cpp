// Tests of the strict YAML reader: what yaml-cpp would drop or guess is kept or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "prony/catalog/yaml_map.hpp"
#include "prony/catalog/yaml_value.hpp"

namespace prony::catalog {
namespace {

using ::testing::HasSubstr;
using Kind = YamlValue::Kind;

TEST(YamlValue, KeepsOrderLinesAndQuotes) {
  const auto top = parse_yaml("b: 1\na:\n  - x\n  - \"y\"\nc: {d: ''}\n", "f.yaml");
  ASSERT_TRUE(top.ok()) << top.error().message;
  ASSERT_EQ(top->entries.size(), 3U);
  EXPECT_EQ(top->entries[0].key, "b");
  EXPECT_EQ(top->entries[1].line, 2);
  const YamlValue& list = top->entries[1].value;
  ASSERT_EQ(list.kind, Kind::kList);
  EXPECT_EQ(list.items[1].line, 4);
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(top->find("c")->value.find("d")->value.kind, Kind::kScalar);
  EXPECT_EQ(top->find("d"), nullptr);
}

TEST(YamlValue, RefusesAliasesSoThatNoSmallFileExpandsWithoutBound) {
  EXPECT_EQ(parse_yaml("a: &x [1, 2]\nb: *x\n", "f.yaml").error().message,
            "f.yaml:2: an alias, expected the value itself");
}

TEST(YamlValue, RefusesTooManyValues) {
  std::string text = "a: [1";
  for (int i = 0; i < 20'000; ++i) text += ",1";
  EXPECT_EQ(parse_yaml(text + "]\n", "f.yaml").error().message, "f.yaml:1: more than 16384 values");
}

// yaml-cpp 0.7's LoadAll never returns from this text.
TEST(YamlValue, EndsOnTextThatDoesNotAdvanceTheParser) {
  const auto top = parse_yaml(",\n \"hidden_size\": 1024,\n \"intermediate\": 307`eod: pri{", "f");
  EXPECT_FALSE(top.ok());
}

TEST(YamlValue, RefusesOversizedText) {
  const auto top = parse_yaml("a: " + std::string((1 << 20) + 1, 'x'), "big.yaml");
  ASSERT_FALSE(top.ok());
  EXPECT_THAT(top.error().message, HasSubstr("big.yaml: 1048580 bytes"));
}

TEST(YamlValue, RefusesEveryPrefixCleanlyOrReadsIt) {
  const std::string text = "a: [1, {b: \"c\"}]\nd: |\n  block\n  text\ne: 'x'\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    const auto top = parse_yaml(text.substr(0, size), "cut.yaml");
    if (!top.ok()) {
      EXPECT_EQ(top.error().message.rfind("cut.yaml:", 0), 0U);
    }
  }
}

TEST(YamlMap, ReadsQuantitiesWithUnitsInTheProgramsUnit) {
  const auto top = parse_yaml(
      "refs: {sheet: maker's sheet}\n"
      "bandwidth: {value: 3.35, unit: TB/s, origin: datasheet, ref: sheet}\n",
      "hw.yaml");
  ASSERT_TRUE(top.ok());
  YamlErrors errors("hw.yaml");
  YamlMap map(*top, "", errors);
  const YamlMap refs = map.refs("refs");
  constexpr Unit kUnits[] = {{"GB/s", 1e9}, {"TB/s", 1e12}};
  const Quantity bandwidth = map.quantity("bandwidth", kUnits, 0, 1e15, refs);
  map.done();
  EXPECT_TRUE(errors.empty());
  EXPECT_DOUBLE_EQ(bandwidth.value, 3.35e12);
  EXPECT_EQ(bandwidth.origin, Origin::kDatasheet);
  EXPECT_EQ(bandwidth.ref, "maker's sheet");
  EXPECT_EQ(bandwidth.line, 2);
}

TEST(YamlMap, KeepsTheFirstErrorAndGoesOnHarmlessly) {
  const auto top = parse_yaml("a: x\nb: y\n", "f.yaml");
  ASSERT_TRUE(top.ok());
  YamlErrors errors("f.yaml");
  YamlMap map(*top, "top.", errors);
  EXPECT_EQ(map.integer("a", 3, 9), 3);
  EXPECT_EQ(map.number("b", 0.5, 1), 0.5);
  EXPECT_EQ(map.map("absent").integer("deep", 1, 2), 1);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.first().message, "f.yaml:1: top.a is 'x', expected a whole number from 3 to 9");
}

TEST(YamlMap, NumbersAreDecimalAndInRange) {
  const auto accepts = [](const std::string& text) {
    const auto top = parse_yaml("a: " + text + "\n", "f.yaml");
    if (!top.ok()) return false;
    YamlErrors errors("f.yaml");
    YamlMap(*top, "", errors).number("a", -10, 10);
    return errors.empty();
  };
  for (const char* good : {"0", "-3", "9.5", "1e-5", "1E0", "10"}) EXPECT_TRUE(accepts(good));
  for (const char* bad : {"10.01", "0x5", "1_0", ".5", "+1", "5 GB", "'1'", "inf", "nan", ".nan",
                          "-", "1e999", "1:30", "true", "~"}) {
    EXPECT_FALSE(accepts(bad)) << bad;
  }
}

TEST(YamlMap, TextIsNeverAWordThatYamlReadsOtherwise) {
  const auto accepts = [](const std::string& text) {
    const auto top = parse_yaml("a: " + text + "\n", "f.yaml");
    if (!top.ok()) return false;
    YamlErrors errors("f.yaml");
    YamlMap(*top, "", errors).text("a");
    return errors.empty();
  };
  for (const char* good : {"word", "'no'", "\"1.10\"", "v1.10", "nothing"}) {
    EXPECT_TRUE(accepts(good)) << good;
  }
  for (const char* bad : {"no", "NO", "Off", "true", "y", "~", "null", "1.10", "7", "[a]", "''"}) {
    EXPECT_FALSE(accepts(bad)) << bad;
  }
}

}  // namespace
}  // namespace prony::catalog
