#include "prony/audit/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace prony::audit {
namespace {

constexpr int kDepthMax = 64;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Recursive descent; the first error stops everything.
class Parser {
 public:
  Parser(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  Result<Value> run() {
    Value value = sum();
    skip();
    if (!error_ && place_ != text_.size()) fail("expected an operator");
    if (error_) return *error_;
    if (value.quantity && !std::isfinite(value.quantity->value)) {
      return invalid_argument(fmt::format("'{}' is not finite", text_));
    }
    return value;
  }

 private:
  void fail(std::string_view what) {
    if (error_) return;
    error_ = invalid_argument(fmt::format("'{}' at {}: {}", text_, place_ + 1, what));
  }
  void skip() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
  }
  bool take(char c) {
    skip();
    if (place_ >= text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }

  // Applies `operation` unless an operand is missing.
  template <class Operation>
  Value both(const Value& a, const Value& b, Operation operation) {
    if (error_) return {};
    if (!a.quantity) return a;
    if (!b.quantity) return b;
    return {operation(*a.quantity, *b.quantity), {}};
  }

  void same(const Quantity& a, const Quantity& b, std::string_view verb) {
    if (a.dimension != b.dimension) {
      fail(fmt::format("cannot {} {} and {}", verb, dimension_text(a.dimension),
                       dimension_text(b.dimension)));
    }
  }

  Value sum() {
    if (++depth_ > kDepthMax) {
      fail("nested too deep");
      return {};
    }
    Value left = product();
    while (!error_) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      left = both(left, product(), [&](const Quantity& a, const Quantity& b) {
        same(a, b, plus ? "add" : "subtract");
        return Quantity{plus ? a.value + b.value : a.value - b.value, a.dimension};
      });
    }
    --depth_;
    return left;
  }

  Value product() {
    Value left = signed_power();
    while (!error_) {
      const bool times = take('*');
      if (!times && !take('/')) break;
      left = both(left, signed_power(), [&](const Quantity& a, const Quantity& b) {
        if (!times && b.value == 0) fail("division by zero");
        return times ? a * b : a / b;
      });
    }
    return left;
  }

  Value signed_power() {
    if (take('-')) {
      Value value = signed_power_checked();
      if (value.quantity) value.quantity->value = -value.quantity->value;
      return value;
    }
    return power();
  }
  Value signed_power_checked() {
    if (++depth_ > kDepthMax) {
      fail("nested too deep");
      return {};
    }
    Value value = signed_power();
    --depth_;
    return value;
  }

  Value power() {
    Value base = atom();
    if (error_ || !take('^')) return base;
    return both(base, signed_power_checked(), [&](const Quantity& a, const Quantity& b) {
      if (b.dimension != Dimension{}) fail("an exponent has a unit");
      Quantity out{std::pow(a.value, b.value), {}};
      if (a.dimension != Dimension{}) {
        if (b.value != std::round(b.value) || std::abs(b.value) > 9) {
          fail("a quantity with a unit needs a small whole exponent");
        } else {
          for (size_t i = 0; i < kBases; ++i) {
            out.dimension[i] = a.dimension[i] * static_cast<int>(b.value);
          }
        }
      }
      return out;
    });
  }

  Value atom() {
    skip();
    if (place_ >= text_.size()) {
      fail("expected a value");
      return {};
    }
    if (take('(')) {
      Value value = sum();
      if (!error_ && !take(')')) fail("expected )");
      return value;
    }
    if (is_digit(text_[place_])) return number();
    if (is_letter(text_[place_])) return name();
    fail("expected a value");
    return {};
  }

  Value number() {
    double value = 0;
    const auto rest = text_.substr(place_);
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (code != std::errc()) {
      fail("expected a number");
      return {};
    }
    place_ += static_cast<size_t>(end - rest.data());
    return {Quantity{value, {}}, {}};
  }

  Value name() {
    const auto begin = place_;
    while (place_ < text_.size() && (is_letter(text_[place_]) || is_digit(text_[place_]))) ++place_;
    const auto word = text_.substr(begin, place_ - begin);
    if (take('(')) return call(word);
    auto value = lookup_(word);
    if (value) return *value;
    fail(fmt::format("unknown input '{}'", word));
    return {};
  }

  Value call(std::string_view word) {
    std::vector<Value> values;
    do {
      values.push_back(sum());
    } while (!error_ && take(','));
    if (!error_ && !take(')')) fail("expected )");
    if (error_) return {};
    for (const auto& value : values) {
      if (!value.quantity) return value;
    }
    Quantity out = *values[0].quantity;
    if (word == "min" || word == "max") {
      for (const auto& value : values) {
        same(out, *value.quantity, "compare");
        out.value = word == "min" ? std::min(out.value, value.quantity->value)
                                  : std::max(out.value, value.quantity->value);
      }
      return {out, {}};
    }
    if (values.size() != 1) {
      fail(fmt::format("{} takes one value", word));
    } else if (word == "abs") {
      out.value = std::abs(out.value);
    } else if (word == "sqrt" || word == "ln" || word == "exp") {
      if (out.dimension != Dimension{}) fail(fmt::format("{} of a quantity with a unit", word));
      out.value = word == "sqrt" ? std::sqrt(out.value)
                  : word == "ln" ? std::log(out.value)
                                 : std::exp(out.value);
    } else {
      fail(fmt::format("unknown function '{}'", word));
    }
    return {out, {}};
  }

  std::string_view text_;
  const Lookup& lookup_;
  size_t place_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Value> evaluate(std::string_view expression, const Lookup& lookup) {
  return Parser(expression, lookup).run();
}

}  // namespace prony::audit
