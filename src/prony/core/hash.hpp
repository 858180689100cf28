// Fnv1a: the 64-bit FNV-1a hash, the same on every machine, for names that must not collide by
// accident (tensors, salts, digests of schedules). No defence against forgery.
// Source: Fowler, Noll & Vo, http://www.isthe.com/chongo/tech/comp/fnv/. Thread safety: a value.
#pragma once
#include <cstdint>
#include <string_view>

namespace prony::core {

class Fnv1a {
 public:
  constexpr void add_byte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3; }
  constexpr void add(std::string_view text) {
    for (const char byte : text) add_byte(static_cast<uint8_t>(byte));
  }
  /// The eight bytes of `value`, lowest first.
  constexpr void add(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<uint8_t>(value >> shift));
  }
  constexpr uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

constexpr uint64_t fnv1a(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.value();
}

}  // namespace prony::core
