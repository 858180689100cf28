#include "prony/token/byte_alphabet.hpp"

#include <array>
#include <cstdint>

namespace prony::token {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kAlphabetEnd = 256 + 68;

struct Tables {
  std::array<int16_t, 256> character{};      // of a byte
  std::array<int16_t, kAlphabetEnd> byte{};  // of a character; -1: none
};

constexpr Tables make_tables() {
  Tables tables;
  for (auto& byte : tables.byte) byte = -1;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = stands_for_itself(byte) ? byte : next++;
    tables.character[static_cast<size_t>(byte)] = static_cast<int16_t>(character);
    tables.byte[static_cast<size_t>(character)] = static_cast<int16_t>(byte);
  }
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    int character = lead;
    if (lead >= 0x80) {  // the alphabet ends below U+0800: two bytes at most
      if (lead < 0xC2 || lead > 0xC5 || i + 1 == text.size()) return std::nullopt;
      character = (lead & 0x1F) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F);
    }
    if (character >= kAlphabetEnd || kTables.byte[static_cast<size_t>(character)] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kTables.byte[static_cast<size_t>(character)]);
  }
  return bytes;
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const int character = kTables.character[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  return text;
}

}  // namespace prony::token
