// Members, slices and the operators of Python on values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/token/jinja_builtins.hpp"

namespace prony::token::jinja {
namespace {

using Type = Value::Type;
using Kind = Sequence::Kind;

std::string hint_of(const Value& value) {
  return value.hint != nullptr ? *value.hint : "undefined value";
}

Value undefined_member(Run& run, const Value& object, const std::string& name) {
  const auto type =
      object.is(Type::kNone) ? std::string("None") : fmt::format("{} object", type_name(object));
  return run.undefined(fmt::format("'{}' has no attribute '{}'", type, name.substr(0, 60)));
}

Value loop_member(const Loop& loop, std::string_view name, Run& run) {
  const auto size = static_cast<int64_t>(loop.items->size());
  const auto at = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::of(at + 1);
  if (name == "index0") return Value::of(at);
  if (name == "first") return Value::of(at == 0);
  if (name == "last") return Value::of(at + 1 == size);
  if (name == "length") return Value::of(size);
  if (name == "revindex") return Value::of(size - at);
  if (name == "revindex0") return Value::of(size - at - 1);
  if (name == "depth") return Value::of(int64_t{1});
  if (name == "depth0") return Value::of(int64_t{0});
  if (name == "previtem") {
    return at > 0 ? (*loop.items)[loop.index - 1] : run.undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return at + 1 < size ? (*loop.items)[loop.index + 1] : run.undefined("there is no next item");
  }
  return run.undefined(fmt::format("'LoopContext' has no attribute '{}'", name));
}

Value overflow(Run& run) {
  return run.fail("found an integer of more than 64 bits, expected a smaller one");
}

// Python rounds towards minus infinity, and the rest has the sign of the divisor.
Value integer_arithmetic(Run& run, std::string_view sign, int64_t a, int64_t b) {
  int64_t result = 0;
  if (sign == "+") {
    return __builtin_add_overflow(a, b, &result) ? overflow(run) : Value::of(result);
  }
  if (sign == "-") {
    return __builtin_sub_overflow(a, b, &result) ? overflow(run) : Value::of(result);
  }
  if (sign == "*") {
    return __builtin_mul_overflow(a, b, &result) ? overflow(run) : Value::of(result);
  }
  if (sign == "**") {
    if (b < 0) {
      if (a == 0) return run.fail("0.0 cannot be raised to a negative power");
      return Value::of(std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
    result = 1;
    while (b > 0) {
      if ((b & 1) != 0 && __builtin_mul_overflow(result, a, &result)) return overflow(run);
      b >>= 1;
      if (b > 0 && __builtin_mul_overflow(a, a, &a)) return overflow(run);
    }
    return Value::of(result);
  }
  if (b == 0) return run.fail("division by zero");
  if (sign == "/") return Value::of(static_cast<double>(a) / static_cast<double>(b));
  if (a == INT64_MIN && b == -1) return sign == "%" ? Value::of(int64_t{0}) : overflow(run);
  const bool adjust = a % b != 0 && (a % b < 0) != (b < 0);
  if (sign == "//") return Value::of(a / b - (adjust ? 1 : 0));
  return Value::of(a % b + (adjust ? b : 0));
}

Value real_arithmetic(Run& run, std::string_view sign, double a, double b) {
  if (sign == "+") return Value::of(a + b);
  if (sign == "-") return Value::of(a - b);
  if (sign == "*") return Value::of(a * b);
  if (sign == "**") {
    const double power = std::pow(a, b);
    if (std::isnan(power) && !std::isnan(a) && !std::isnan(b)) {
      return run.fail("found a power that is no real number, expected one");
    }
    if (std::isinf(power) && !std::isinf(a) && !std::isinf(b)) {
      return run.fail(a == 0 ? "0.0 cannot be raised to a negative power"
                             : "numerical result out of range");
    }
    return Value::of(power);
  }
  if (b == 0) return run.fail("float division by zero");
  if (sign == "/") return Value::of(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (sign == "%") return Value::of(rest == 0 ? std::copysign(0.0, b) : rest);
  double whole = std::round((a - rest) / b);  // exact but for rounding of the division
  if (whole == 0) whole = std::copysign(0.0, a / b);
  return Value::of(whole);
}

Value repeat(Run& run, const Value& value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  if (value.is_string()) {
    const size_t size = value.bytes().size();
    if (size > 0 && static_cast<uint64_t>(count) > run.options().limits.memory_bytes / size) {
      return run.fail("found a repetition, expected a shorter text");
    }
    Text text;
    for (int64_t i = 0; i < count && run.work(); ++i) text.append(*value.text);
    return run.text(std::move(text));
  }
  const auto& items = value.sequence->items;
  if (!items.empty() && static_cast<uint64_t>(count) >
                            run.options().limits.memory_bytes / (sizeof(Value) * items.size())) {
    return run.fail("found a repetition, expected a shorter list");
  }
  std::vector<Value> all;
  for (int64_t i = 0; i < count && run.work(1 + items.size()); ++i) {
    all.insert(all.end(), items.begin(), items.end());
  }
  return run.sequence(std::move(all), value.sequence->kind);
}

bool is_repeatable(const Value& value) {
  return value.is_string() || (value.is(Type::kSequence) && (value.sequence->kind == Kind::kList ||
                                                             value.sequence->kind == Kind::kTuple));
}

// Python's slice.indices(size).
struct Indices {
  int64_t start, stop, step;
};
std::optional<Indices> indices_of(Run& run, const Value& start, const Value& stop,
                                  const Value& step, int64_t size) {
  const auto bound = [&](const Value& value, int64_t fallback, int64_t low, int64_t high) {
    if (value.is(Type::kNone)) return fallback;
    if (!value.is_integral()) {
      run.fail(fmt::format("found a slice from or to {}, expected integers or nothing",
                           type_name(value)));
      return fallback;
    }
    const int64_t at = value.as_integer();
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  const int64_t by = bound(step, 1, INT64_MIN + 1, INT64_MAX);
  // A step is no position: it does not count from the end.
  const int64_t exact = step.is_integral() ? step.as_integer() : by;
  if (exact == 0) {
    run.fail("slice step cannot be zero");
    return std::nullopt;
  }
  if (exact > 0) return Indices{bound(start, 0, 0, size), bound(stop, size, 0, size), exact};
  return Indices{bound(start, size - 1, -1, size - 1), bound(stop, -1, -1, size - 1), exact};
}

}  // namespace

Value attribute(Run& run, const Value& object, std::string_view name) {
  if (object.is_undefined()) return run.fail(hint_of(object));
  if (const Builtin* method = find_method(object, name)) {
    return run.function({.builtin = method, .self = object});
  }
  if (object.is(Type::kLoop)) return loop_member(*object.loop, name, run);
  if (object.is(Type::kDict) || object.is(Type::kNamespace)) {
    if (const Value* value = object.dict->find(name)) return *value;
  }
  return undefined_member(run, object, std::string(name));
}

Value item(Run& run, const Value& object, const Value& key) {
  if (object.is_undefined()) return run.fail(hint_of(object));
  if (object.is(Type::kDict)) {
    if (const Value* value = object.dict->find(run, key)) return *value;
  } else if ((object.is_string() || object.is(Type::kSequence)) && key.is_integral()) {
    int64_t at = key.as_integer();
    const auto size = length(object);
    if (size) {
      if (at < 0) at += *size;
      if (at >= 0 && at < *size) {
        const auto index = static_cast<size_t>(at);
        if (object.is(Type::kSequence)) return object.sequence->items[index];
        run.work(object.bytes().size() / 64);
        const auto offsets = character_offsets(object.bytes());
        return run.text(object.text->slice(offsets[index], offsets[index + 1]));
      }
    }
  }
  if (key.is_string()) return attribute(run, object, key.bytes());
  return undefined_member(run, object, to_text(run, key).bytes);
}

Value slice(Run& run, const Value& object, const Value& start, const Value& stop,
            const Value& step) {
  if (object.is_undefined()) return run.fail(hint_of(object));
  const auto size = length(object);
  if (!size || object.is(Type::kDict)) {
    return undefined_member(run, object, "slice");
  }
  const auto indices = indices_of(run, start, stop, step, *size);
  if (!indices || run.failed()) return {};
  const auto [first, end, by] = *indices;
  const auto wanted = [end = end, by = by](int64_t at) { return by > 0 ? at < end : at > end; };
  // The next one may lie beyond 64 bits: compare what is left instead.
  const auto next = [end = end, by = by](int64_t at) {
    const bool over = by > 0 ? by >= end - at : by <= end - at;
    return over ? end : at + by;
  };
  if (object.is_string()) {
    const auto offsets = character_offsets(object.bytes());
    run.work(object.bytes().size() / 16);
    if (by == 1) {
      const auto to = static_cast<size_t>(std::max(first, end));
      return run.text(object.text->slice(offsets[static_cast<size_t>(first)], offsets[to]));
    }
    Text text;
    for (int64_t at = first; wanted(at); at = next(at)) {
      const auto index = static_cast<size_t>(at);
      text.append(object.text->slice(offsets[index], offsets[index + 1]));
    }
    return run.text(std::move(text));
  }
  std::vector<Value> items;
  for (int64_t at = first; wanted(at) && run.work(); at = next(at)) {
    items.push_back(object.sequence->items[static_cast<size_t>(at)]);
  }
  const bool is_range = object.sequence->kind == Kind::kRange;
  return run.sequence(std::move(items), is_range ? Kind::kList : object.sequence->kind);
}

Value arithmetic(Run& run, std::string_view sign, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) {
      return integer_arithmetic(run, sign, left.as_integer(), right.as_integer());
    }
    return real_arithmetic(run, sign, left.as_real(), right.as_real());
  }
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined()) return run.fail(hint_of(*value));
  }
  if (sign == "+" && left.is_string() && right.is_string()) {
    if (!run.take_bytes(left.bytes().size() + right.bytes().size())) return {};
    return run.text(Text(*left.text).append(*right.text));
  }
  if (sign == "+" && is_repeatable(left) && is_repeatable(right) && !left.is_string() &&
      !right.is_string() && left.sequence->kind == right.sequence->kind) {
    auto items = items_of(run, left);
    const auto& more = right.sequence->items;
    if (!run.take_bytes(more.size() * sizeof(Value))) return {};
    items.insert(items.end(), more.begin(), more.end());
    return run.sequence(std::move(items), left.sequence->kind);
  }
  if (sign == "*" && is_repeatable(left) && right.is_integral()) {
    return repeat(run, left, right.as_integer());
  }
  if (sign == "*" && left.is_integral() && is_repeatable(right)) {
    return repeat(run, right, left.as_integer());
  }
  if (sign == "%" && left.is_string()) {
    if (right.is(Type::kSequence) && right.sequence->kind == Kind::kTuple) {
      return format_percent(run, *left.text, right.sequence->items, {});
    }
    return format_percent(run, *left.text, {right}, right);
  }
  return run.fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign,
                              type_name(left), type_name(right)));
}

Value negate(Run& run, const Value& value, bool minus) {
  if (value.is_undefined()) return run.fail(hint_of(value));
  if (!value.is_number()) {
    return run.fail(
        fmt::format("bad operand type for unary {}: '{}'", minus ? '-' : '+', type_name(value)));
  }
  if (value.is(Type::kFloat)) return Value::of(minus ? -value.real : value.real);
  const int64_t number = value.as_integer();
  if (minus && number == INT64_MIN) return overflow(run);
  return Value::of(minus ? -number : number);
}

bool compare(Run& run, std::string_view sign, const Value& left, const Value& right) {
  if (sign == "==") return equal(run, left, right);
  if (sign == "!=") return !equal(run, left, right);
  if (sign == "in") return contains(run, right, left);
  if (sign == "not in") return !contains(run, right, left);
  if (left.is_number() && right.is_number() &&
      (std::isnan(left.as_real()) || std::isnan(right.as_real()))) {
    return false;
  }
  if (sign == "<") return less(run, left, right, sign);
  if (sign == ">") return less(run, right, left, sign);
  if (sign == "<=") return !less(run, right, left, sign);
  return !less(run, left, right, sign);
}

Value format_percent(Run& run, const Text& format, const std::vector<Value>& values,
                     const Value& mapping) {
  Text out;
  size_t next = 0;
  bool named = false;
  for (size_t at = 0; at < format.bytes.size() && run.work();) {
    const size_t percent = std::min(format.bytes.find('%', at), format.bytes.size());
    out.append(format.slice(at, percent));
    if (percent == format.bytes.size()) break;
    at = percent + 1;
    if (at < format.bytes.size() && format.bytes[at] == '%') {
      out.append("%");
      ++at;
      continue;
    }
    Value value;
    const bool by_name = at < format.bytes.size() && format.bytes[at] == '(';
    if (by_name) {
      const size_t close = std::min(format.bytes.find(')', at), format.bytes.size() - 1);
      const auto key = format.bytes.substr(at + 1, close - at - 1);
      const Value* found = mapping.is(Type::kDict) ? mapping.dict->find(key) : nullptr;
      if (found == nullptr) return run.fail("%: found a name, expected a mapping that has it");
      value = *found;
      named = true;
      at = close + 1;
    } else {
      if (next >= values.size()) return run.fail("not enough arguments for format string");
      value = values[next++];
    }
    int precision = -1;
    if (at < format.bytes.size() && format.bytes[at] == '.') {
      precision = 0;
      for (++at; at < format.bytes.size() && precision < 100 && format.bytes[at] >= '0' &&
                 format.bytes[at] <= '9';
           ++at) {
        precision = 10 * precision + (format.bytes[at] - '0');
      }
    }
    const char conversion = at < format.bytes.size() ? format.bytes[at++] : '\0';
    if (conversion == 's') {
      Text text = to_text(run, value);
      if (precision >= 0) {
        const auto offsets = character_offsets(text.bytes);
        const auto end = std::min(static_cast<size_t>(precision), offsets.size() - 1);
        text = text.slice(0, offsets[end]);
      }
      out.append(text);
    } else if (conversion == 'r') {
      append_repr(run, value, out);
    } else if ((conversion == 'd' || conversion == 'i') && value.is_number() && precision < 0) {
      out.append(value.is_integral() ? fmt::format("{}", value.as_integer())
                                     : fmt::format("{:.0f}", std::trunc(value.real)));
    } else if (conversion == 'f' && value.is_number()) {
      out.append(fmt::format("{:.{}f}", value.as_real(), precision < 0 ? 6 : precision));
    } else {
      return run.fail(
          fmt::format("%: found a format for {}, expected %s, %r, %d or %f", type_name(value)));
    }
  }
  if (!named && next < values.size() && !mapping.is(Type::kDict)) {
    return run.fail("not all arguments converted during string formatting");
  }
  return run.text(std::move(out));
}

}  // namespace prony::token::jinja
