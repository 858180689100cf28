// Tests of the schema checker: each keyword alone, references, depth and messages.
#include "prony/record/json_schema.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace prony::record {
namespace {

using core::Json;

std::string check(std::string_view schema, std::string_view document) {
  const auto result = check_schema(core::parse_json(document, "d").value(),
                                   core::parse_json(schema, "s").value(), "d");
  return result.ok() ? "ok" : result.error().message;
}

TEST(JsonSchema, Types) {
  EXPECT_EQ(check(R"({"type":"integer"})", "3"), "ok");
  EXPECT_EQ(check(R"({"type":"integer"})", "3.0"), "ok");  // as the standard has it
  EXPECT_EQ(check(R"({"type":"integer"})", "3.5"), "d: /: found 3.5, expected a whole number");
  EXPECT_EQ(check(R"({"type":"integer"})", "1e300"), "d: /: found 1e+300, expected a whole number");
  EXPECT_EQ(check(R"({"type":"number"})", "3"), "ok");
  EXPECT_EQ(check(R"({"type":["number","null"]})", "null"), "ok");
  EXPECT_EQ(check(R"({"type":["number","null"]})", "true"),
            "d: /: found true, expected a number or null");
  EXPECT_EQ(check(R"({"type":"string"})", "[1]"), "d: /: found an array, expected a string");
  EXPECT_EQ(check(R"({"type":"boolean"})", "{}"), "d: /: found an object, expected true or false");
}

TEST(JsonSchema, ValuesAndBounds) {
  EXPECT_EQ(check(R"({"enum":["a",1]})", "1"), "ok");
  EXPECT_EQ(check(R"({"enum":["a",1]})", "\"b\""), "d: /: found 'b', expected one of 'a', 1");
  EXPECT_EQ(check(R"({"const":"a"})", "\"b\""), "d: /: found 'b', expected 'a'");
  EXPECT_EQ(check(R"({"minimum":0,"maximum":1})", "0.5"), "ok");
  EXPECT_EQ(check(R"({"minimum":0})", "-0.5"), "d: /: found -0.5, expected at least 0");
  EXPECT_EQ(check(R"({"maximum":1})", "18446744073709551615"),
            "d: /: found 18446744073709551615, expected at most 1");
  EXPECT_EQ(check(R"({"minimum":0})", "null"), "ok");  // bounds speak of numbers alone
  EXPECT_EQ(check(R"({"minItems":1})", "[]"), "d: /: found 0 elements, expected at least 1");
  EXPECT_EQ(check(R"({"maxItems":1})", "[1,2]"), "d: /: found 2 elements, expected at most 1");
}

TEST(JsonSchema, ObjectsAndArrays) {
  constexpr auto kSchema =
      R"({"type":"object","required":["a"],"properties":{"a":{"type":"number"}},
          "additionalProperties":false})";
  EXPECT_EQ(check(kSchema, R"({"a":1})"), "ok");
  EXPECT_EQ(check(kSchema, R"({})"), "d: /a: missing");
  EXPECT_EQ(check(kSchema, R"({"a":1,"b":2})"), "d: /b: unknown key");
  EXPECT_EQ(check(kSchema, R"({"a":"x"})"), "d: /a: found 'x', expected a number");
  EXPECT_EQ(check(R"({"additionalProperties":{"type":"integer"}})", R"({"x":1,"y":"z"})"),
            "d: /y: found 'z', expected a whole number");
  EXPECT_EQ(check(R"({"items":{"type":"integer"}})", R"([1,2,"x"])"),
            "d: /2: found 'x', expected a whole number");
  EXPECT_EQ(check("true", R"([{"anything":1}])"), "ok");
}

TEST(JsonSchema, References) {
  constexpr auto kSchema =
      R"({"items":{"$ref":"#/$defs/pair"},
          "$defs":{"pair":{"type":"array","minItems":2,"items":{"$ref":"#/$defs/n"}},
                   "n":{"type":"number"}}})";
  EXPECT_EQ(check(kSchema, "[[1,2]]"), "ok");
  EXPECT_EQ(check(kSchema, "[[1,2],[1]]"), "d: /1: found 1 elements, expected at least 2");
  EXPECT_EQ(check(kSchema, "[[1,null]]"), "d: /0/1: found null, expected a number");
}

TEST(JsonSchema, FiniteAndNotTooDeepEverywhere) {
  Json deep = std::nan("");
  EXPECT_EQ(check_schema(Json{{"a", {1.0, deep}}}, true, "d").error().message,
            "d: /a/1: found nan, expected a finite number");
  deep = 0;
  for (int i = 0; i < kDepthMax; ++i) deep = Json::array({std::move(deep)});
  EXPECT_TRUE(check_schema(deep, true, "d").ok());
  EXPECT_FALSE(check_schema(Json::array({deep}), true, "d").ok());
}

TEST(JsonSchema, LongTextIsCutInMessages) {
  const auto text = describe(std::string(500, 'x'));
  EXPECT_EQ(text, "'" + std::string(40, 'x') + "...'");
}

TEST(JsonSchema, MessagesAreOneLine) {
  EXPECT_EQ(check(R"({"type":"number"})", R"("a\nb\u0000\u007f")"),
            "d: /: found 'a?b?\?', expected a number");
  EXPECT_EQ(check(R"({"additionalProperties":false})", R"({"a\nb":1})"), "d: /a?b: unknown key");
  // Cut before the two bytes of the second e acute, not between them.
  EXPECT_EQ(one_line("\u00e9\u00e9", 3), "\u00e9...");
  EXPECT_EQ(one_line("\u00e9\u00e9", 4), "\u00e9\u00e9");
}

TEST(JsonSchema, KeywordsItDoesNotKnowAreABug) {
  EXPECT_DEATH(check(R"({"pattern":"a"})", "1"), "unsupported keyword");
  EXPECT_DEATH(check(R"({"type":"float"})", "1"), "unknown type");
}

}  // namespace
}  // namespace prony::record
