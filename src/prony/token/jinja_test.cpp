// Chat templates against Python's jinja2: one line a construct and templates in the manner of the
// published ones over ten conversations (tests/data/jinja, made by scripts/make_jinja_goldens.py);
// then what jinja2 cannot say: bounds, marks of foreign text, messages of errors.
#include "prony/token/jinja.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prony/core/file.hpp"

namespace prony::token::jinja {
namespace {

namespace fs = std::filesystem;
using core::Json;
using testing::HasSubstr;

const fs::path kFolder = fs::path(PRONY_SOURCE_DIR) / "tests/data/jinja";

std::string file(const fs::path& path) {
  auto text = core::read_file(path.string());
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? std::move(text).value() : std::string();
}

Json json_file(const fs::path& path) {
  auto json = core::parse_json(file(path), path.string());
  EXPECT_TRUE(json.ok());
  return json.ok() ? std::move(json).value() : Json();
}

// What a template gives; an error's message behind "error: ".
std::string render(std::string_view text, const Json& context = Json::object(),
                   const RenderLimits& limits = {}) {
  const auto parsed = Template::parse(text, "t");
  if (!parsed) return "error: " + parsed.error().message;
  const auto out = parsed->render(context, limits);
  return out.ok() ? *out : "error: " + out.error().message;
}

TEST(Jinja, EqualsPython) {
  const Json conversations = json_file(kFolder / "conversations.json");
  const Json rows = json_file(kFolder / "goldens.json");
  ASSERT_GT(rows.size(), 100u);
  for (const Json& row : rows) {
    std::string text = row["template"];
    Json context = row["context"];
    if (context.is_string()) {
      text = file(kFolder / "templates" / text);
      const Json conversation = conversations[context.get<std::string>()];
      context = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_generation_prompt", true}};
      context.update(conversation);
    }
    const std::string got = render(text, context);
    if (row.contains("error")) {
      EXPECT_TRUE(got.starts_with("error: ")) << row["name"] << ": " << got;
    } else {
      EXPECT_EQ(got, row["text"].get<std::string>()) << row["name"];
    }
  }
}

TEST(Jinja, ErrorsNameThePlace) {
  EXPECT_EQ(render("a\n{{ x | nope }}"),
            "error: t:2: found filter 'nope', expected one of docs/chat-templates.md");
  EXPECT_EQ(render("{% if x %}a"), "error: t:1: found the end, expected {% endif %} of line 1");
  EXPECT_EQ(render("{{ (1 "), "error: t:1: found no }}, expected the tag to end");
  EXPECT_EQ(render("{% break %}"), "error: t:1: found 'break', expected it inside a loop");
  EXPECT_EQ(render("\n\n{{ a.b.c }}", {{"a", Json::object()}}),
            "error: t:3: 'dict object' has no attribute 'b'");
  EXPECT_EQ(render("{{ 1 / 0 }}"), "error: t:1: division by zero");
  EXPECT_EQ(render("{{ 9223372036854775807 + 1 }}"),
            "error: t:1: found an integer of more than 64 bits, expected a smaller one");
  EXPECT_EQ(render("{{ raise_exception('no\nsystem') }}"), "error: no system");
  EXPECT_THAT(render("{% include 'x' %}"), HasSubstr("found block 'include'"));
  EXPECT_THAT(render("\xff"), HasSubstr("no UTF-8"));
}

TEST(Jinja, NothingRunsWithoutBound) {
  EXPECT_THAT(render("{% for i in range(100000000) %}{% endfor %}"), HasSubstr("more than"));
  EXPECT_THAT(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("deeper than"));
  EXPECT_THAT(render("{{ 'x' * 10000000000 }}"), HasSubstr("shorter text"));
  EXPECT_THAT(render("{% set n = namespace(s='ab') %}{% for i in range(60) %}"
                     "{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}"),
              HasSubstr("more than"));
  EXPECT_THAT(render("{% set n = namespace(l=[1]) %}{% for i in range(60) %}"
                     "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}"),
              HasSubstr("error: "));
  EXPECT_THAT(render("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
              HasSubstr("levels of nesting"));
  EXPECT_THAT(render("{{ " + std::string(100000, '-') + "1 }}"), HasSubstr("levels of nesting"));
  std::string chain = "{{ 1";
  for (int i = 0; i < 5000; ++i) chain += " + 1";
  EXPECT_THAT(render(chain + " }}"), HasSubstr("levels"));
  EXPECT_THAT(render("{% set l = [] %}{% set _ = l.append(l) %}{{ l }}"), HasSubstr("deeper than"));
  RenderLimits small;
  small.output_bytes = 10;
  EXPECT_THAT(render("{{ 'x' * 11 }}", {}, small), HasSubstr("longer than 10 bytes"));
}

TEST(Jinja, ForeignTextStaysMarked) {
  const auto parsed = Template::parse(
      "<{{ m.role }}>{{ m.text | trim }}|{{ m.text[1:3] }}|{{ (m.text ~ '-').split('x')[1] }}|"
      "{{ m | tojson }}|{{ m.text | upper }}|{{ '%s!' % m.text }}|{{ [m.text] | join }}",
      "t");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  RenderOptions options;
  options.foreign = {"m"};
  const auto out = parsed->render({{"m", {{"role", "user"}, {"text", " axb"}}}}, options);
  ASSERT_TRUE(out.ok()) << out.error().message;
  std::string shown;
  for (size_t i = 0; i < out->bytes.size(); ++i) {
    bool foreign = false;
    for (const auto& range : out->foreign) foreign |= range.begin <= i && i < range.end;
    shown += foreign ? '#' : out->bytes[i];
  }
  EXPECT_EQ(out->bytes, "<user>axb|ax|b-|{\"role\": \"user\", \"text\": \" axb\"}| AXB| axb!| axb");
  EXPECT_EQ(shown, "<user>###|##|#-|{######: \"user\", ######: ######}|####|####!|####");
}

TEST(Jinja, TimeIsTheCallers) {
  const auto parsed = Template::parse("{{ strftime_now('%d %b %Y') }}", "t");
  ASSERT_TRUE(parsed.ok());
  RenderOptions options;
  options.now_s = 1'750'000'000;
  EXPECT_EQ(parsed->render(Json::object(), options)->bytes, "15 Jun 2025");
}

}  // namespace
}  // namespace prony::token::jinja
