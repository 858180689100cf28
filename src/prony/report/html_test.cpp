#include "prony/report/html.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <string>

#include "prony/core/rng.hpp"

namespace prony::report {
namespace {

std::string escaped(std::string_view text) {
  return Html().text(text).str();
}

// Independent of the code under test: length of the valid UTF-8 sequence at `at`, 0 if there is
// none.
size_t sequence_length(const std::string& s, size_t at) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return tail(at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    if (!tail(at + 1) || !tail(at + 2)) return 0;
    const unsigned code = (lead & 15U) << 12 | (byte(at + 1) & 63U) << 6 | (byte(at + 2) & 63U);
    return code < 0x800 || (code >= 0xD800 && code < 0xE000) ? 0 : 3;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    if (!tail(at + 1) || !tail(at + 2) || !tail(at + 3)) return 0;
    const unsigned code = (lead & 7U) << 18 | (byte(at + 1) & 63U) << 12 |
                          (byte(at + 2) & 63U) << 6 | (byte(at + 3) & 63U);
    return code < 0x10000 || code > 0x10FFFF ? 0 : 4;
  }
  return 0;
}

bool is_valid_utf8(const std::string& s) {
  for (size_t at = 0; at < s.size();) {
    const size_t length = sequence_length(s, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

TEST(Html, EscapesWhatCouldOpenOrCloseMarkup) {
  EXPECT_EQ(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escaped("</script><script>alert(1)</script>"),
            "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
  EXPECT_EQ(escaped("&lt;"), "&amp;lt;");
}

TEST(Html, KeepsOrdinaryText) {
  EXPECT_EQ(escaped("Qwen2.5\xE2\x80\x91 7B \xF0\x9F\x98\x80 \xC3\xA9\n\t"),
            "Qwen2.5\xE2\x80\x91 7B \xF0\x9F\x98\x80 \xC3\xA9\n\t");
  EXPECT_EQ(escaped(""), "");
}

TEST(Html, ReplacesInvalidUtf8ControlsAndOverrides) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped("a\xFF"
                    "b"),
            "a" + bad + "b");
  EXPECT_EQ(escaped("\xC0\xAF"), bad + bad);            // overlong slash
  EXPECT_EQ(escaped("\xED\xA0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(escaped("\xE2\x82"), bad);                  // cut at the end: one maximal subpart
  EXPECT_EQ(escaped("\xE2\x82<"), bad + "&lt;");        // the cut swallows no markup
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a" + bad + "b");
  EXPECT_EQ(escaped("\x1B[31m"), bad + "[31m");
  EXPECT_EQ(escaped("\xE2\x80\xAE"
                    "abc\xE2\x81\xA6"),
            bad + "abc" + bad);
}

// Any bytes at all: what comes out is valid UTF-8 without a character that markup is made of.
TEST(Html, AnyBytesBecomeInertText) {
  core::Rng rng(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    const auto length = rng.below(40);
    for (uint64_t i = 0; i < length; ++i) {
      // Half of them from the characters that matter, so that they meet each other.
      const char special[] = "<>&\"'/\xE2\x80\xA8\xF0\xED\xC0";
      bytes.push_back(rng.below(2) == 0 ? special[rng.below(sizeof special - 1)]
                                        : static_cast<char>(rng.below(256)));
    }
    const std::string out = escaped(bytes);
    EXPECT_TRUE(is_valid_utf8(out));
    EXPECT_EQ(out.find_first_of("<>\"'"), std::string::npos) << out;
    for (size_t at = out.find('&'); at != std::string::npos; at = out.find('&', at + 1)) {
      const std::string_view rest = std::string_view(out).substr(at);
      EXPECT_TRUE(rest.starts_with("&amp;") || rest.starts_with("&lt;") ||
                  rest.starts_with("&gt;") || rest.starts_with("&quot;") ||
                  rest.starts_with("&#39;"))
          << out;
    }
  }
}

TEST(Html, JsonCannotEndItsScriptAndReadsBackEqual) {
  const core::Json json = {{"</script>", "<!-- <script> ]]> & \xE2\x80\xA8\xE2\x80\xA9 \" \\ \n"},
                           {"numbers", {1, -2.5, 1e-9, nullptr, true}}};
  Html html;
  ASSERT_TRUE(html.json(json).ok());
  const std::string& out = html.str();
  EXPECT_EQ(out.find_first_of("<>&"), std::string::npos) << out;
  EXPECT_EQ(out.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(out.find("\xE2\x80\xA9"), std::string::npos);
  const auto back = core::parse_json(out, "page");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, json);
}

TEST(Html, JsonWithoutFiniteNumberIsAnError) {
  Html html;
  const auto result = html.json({{"a", {1.0, std::numeric_limits<double>::quiet_NaN()}}});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("/a/1"), std::string::npos) << result.error().message;
}

TEST(Html, ShortenCutsBetweenCharacters) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc\xE2\x80\xA6");
  EXPECT_EQ(shorten("\xF0\x9F\x98\x80\xF0\x9F\x98\x80", 1), "\xF0\x9F\x98\x80\xE2\x80\xA6");
  EXPECT_EQ(shorten(std::string(1 << 20, 'x'), 10).size(), 13U);
  EXPECT_EQ(shorten("", 0), "");
}

}  // namespace
}  // namespace prony::report
