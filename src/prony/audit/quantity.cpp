#include "prony/audit/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace prony::audit {
namespace {

constexpr std::string_view kNames[kBases] = {"B", "FLOP", "s", "token", "req", "USD", "J", "param"};

constexpr Dimension of(Base base, int exponent = 1) {
  Dimension out{};
  out[static_cast<size_t>(base)] = exponent;
  return out;
}

constexpr Dimension rate(Base base) {
  Dimension out = of(base);
  out[static_cast<size_t>(Base::kSecond)] -= 1;
  return out;
}

struct Symbol {
  std::string_view name;
  double factor;
  Dimension dimension;
  bool prefixed;  // k, M, G, T, P in front
};

constexpr double kHour = 3600, kKibi = 1024;
constexpr Symbol kSymbols[] = {
    {"B", 1, of(Base::kByte), true},
    {"bit", 0.125, of(Base::kByte), true},
    {"KiB", kKibi, of(Base::kByte), false},
    {"MiB", kKibi* kKibi, of(Base::kByte), false},
    {"GiB", kKibi* kKibi* kKibi, of(Base::kByte), false},
    {"TiB", kKibi* kKibi* kKibi* kKibi, of(Base::kByte), false},
    {"FLOP", 1, of(Base::kFlop), true},
    {"FLOPS", 1, rate(Base::kFlop), true},
    {"s", 1, of(Base::kSecond), false},
    {"ms", 1e-3, of(Base::kSecond), false},
    {"us", 1e-6, of(Base::kSecond), false},
    {"ns", 1e-9, of(Base::kSecond), false},
    {"min", 60, of(Base::kSecond), false},
    {"h", kHour, of(Base::kSecond), false},
    {"day", 24 * kHour, of(Base::kSecond), false},
    {"year", 8760 * kHour, of(Base::kSecond), false},
    {"Hz", 1, of(Base::kSecond, -1), true},
    {"token", 1, of(Base::kToken), true},
    {"req", 1, of(Base::kRequest), true},
    {"USD", 1, of(Base::kUsd), true},
    {"J", 1, of(Base::kJoule), true},
    {"Wh", kHour, of(Base::kJoule), true},
    {"W", 1, rate(Base::kJoule), true},
    {"param", 1, of(Base::kParameter), true},
    {"1", 1, Dimension{}, false},
    {"%", 0.01, Dimension{}, false},
};

std::optional<Quantity> find_symbol(std::string_view name) {
  for (const auto& symbol : kSymbols) {
    if (symbol.name == name) return Quantity{symbol.factor, symbol.dimension};
  }
  if (name.size() < 2) return std::nullopt;
  constexpr std::string_view kPrefixes = "kMGTP";
  const auto prefix = kPrefixes.find(name.front());
  if (prefix == std::string_view::npos) return std::nullopt;
  for (const auto& symbol : kSymbols) {
    if (symbol.prefixed && symbol.name == name.substr(1)) {
      return Quantity{symbol.factor * std::pow(1000.0, static_cast<double>(prefix) + 1),
                      symbol.dimension};
    }
  }
  return std::nullopt;
}

}  // namespace

Quantity operator*(const Quantity& a, const Quantity& b) {
  Quantity out{a.value * b.value, a.dimension};
  for (size_t i = 0; i < kBases; ++i) out.dimension[i] += b.dimension[i];
  return out;
}

Quantity operator/(const Quantity& a, const Quantity& b) {
  Quantity out{a.value / b.value, a.dimension};
  for (size_t i = 0; i < kBases; ++i) out.dimension[i] -= b.dimension[i];
  return out;
}

Result<Quantity> parse_unit(std::string_view text) {
  Quantity out{1, {}};
  std::string_view rest = text;
  bool divide = false;
  while (true) {
    const auto end = rest.find_first_of("*/");
    const auto part = rest.substr(0, end);
    const auto symbol = find_symbol(part);
    if (!symbol) {
      return invalid_argument(fmt::format("unit '{}': unknown part '{}'", text, part));
    }
    out = divide ? out / *symbol : out * *symbol;
    if (end == std::string_view::npos) return out;
    divide = rest[end] == '/';
    rest.remove_prefix(end + 1);
  }
}

Result<Quantity> parse_quantity(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !std::isfinite(value)) {
    return invalid_argument(fmt::format("found '{}', expected a number and its unit", text));
  }
  auto unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty()) return Quantity{value, {}};
  const auto factor = parse_unit(unit);
  if (!factor) return factor.error();
  return Quantity{value * factor->value, factor->dimension};
}

std::string dimension_text(const Dimension& dimension) {
  std::string over, under;
  const auto add = [](std::string& text, std::string_view name, int exponent) {
    if (!text.empty()) text += '*';
    text += name;
    if (exponent > 1) text += fmt::format("^{}", exponent);
  };
  for (size_t i = 0; i < kBases; ++i) {
    if (dimension[i] > 0) add(over, kNames[i], dimension[i]);
    if (dimension[i] < 0) add(under, kNames[i], -dimension[i]);
  }
  if (over.empty()) over = "1";
  return under.empty() ? over : over + "/" + under;
}

std::string quantity_text(const Quantity& quantity) {
  const std::string unit = dimension_text(quantity.dimension);
  if (unit == "1") return fmt::format("{:.4g}", quantity.value);
  const bool power = unit == "J/s";
  const std::string name = power ? "W" : unit;
  const double size = std::abs(quantity.value);
  if (unit == "s") {
    if (size >= 1e-9 && size < 1e-6) return fmt::format("{:.4g} ns", quantity.value * 1e9);
    if (size >= 1e-6 && size < 1e-3) return fmt::format("{:.4g} us", quantity.value * 1e6);
    if (size >= 1e-3 && size < 1) return fmt::format("{:.4g} ms", quantity.value * 1e3);
    return fmt::format("{:.4g} s", quantity.value);
  }
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  const bool prefixed =
      power || name.starts_with("B") || name.starts_with("FLOP") || name.starts_with("param");
  size_t prefix = 0;
  double value = quantity.value;
  while (prefixed && std::abs(value) >= 1000 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", value, kPrefixes[prefix], name);
}

}  // namespace prony::audit
