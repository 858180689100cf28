// Tests, globals, and how a builtin is found and called.
#include "prony/token/jinja_builtins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace prony::token::jinja {
namespace {

using Type = Value::Type;
using Kind = Sequence::Kind;

template <bool (*kHolds)(const Value&)>
Value test(Run&, const Value& self, const Arguments&) {
  return Value::of(kHolds(self));
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is(Type::kNone);
}
bool is_string(const Value& value) {
  return value.is_string();
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_integer(const Value& value) {
  return value.is(Type::kInteger);
}
bool is_float(const Value& value) {
  return value.is(Type::kFloat);
}
bool is_boolean(const Value& value) {
  return value.is(Type::kBool);
}
bool is_mapping(const Value& value) {
  return value.is(Type::kDict);
}
bool is_callable(const Value& value) {
  return value.is(Type::kFunction);
}
bool is_exactly_true(const Value& value) {
  return value.is(Type::kBool) && value.boolean;
}
bool is_exactly_false(const Value& value) {
  return value.is(Type::kBool) && !value.boolean;
}
bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is(Type::kSequence) ||
         value.is(Type::kDict) || value.is(Type::kLoop);
}
bool is_sequence(const Value& value) {
  if (value.is(Type::kSequence)) return value.sequence->kind != Kind::kGenerator;
  return value.is_undefined() || value.is_string() || value.is(Type::kDict);
}

template <bool (*kHolds)(std::string_view)>
Value text_test(Run& run, const Value& self, const Arguments&) {
  return Value::of(kHolds(to_text(run, self).bytes));
}

enum class Sign { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn };
template <Sign kSign>
Value comparison(Run& run, const Value& self, const Arguments& arguments) {
  constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
  return Value::of(compare(run, kSigns[static_cast<size_t>(kSign)], self, arguments.positional[0]));
}

Value same_as(Run& run, const Value& self, const Arguments& arguments) {
  const Value& other = arguments.positional[0];
  const bool simple = self.is(Type::kNone) || self.is(Type::kBool) || self.is(Type::kInteger);
  const bool same_object = (self.is(Type::kDict) && self.dict == other.dict) ||
                           (self.is(Type::kSequence) && self.sequence == other.sequence) ||
                           (self.is_string() && self.text == other.text);
  return Value::of(self.type == other.type && (simple ? equal(run, self, other) : same_object));
}

Value rest_is(Run& run, const Value& self, const Value& divisor, int64_t wanted) {
  return Value::of(equal(run, arithmetic(run, "%", self, divisor), Value::of(wanted)));
}
Value is_odd(Run& run, const Value& self, const Arguments&) {
  return rest_is(run, self, Value::of(int64_t{2}), 1);
}
Value is_even(Run& run, const Value& self, const Arguments&) {
  return rest_is(run, self, Value::of(int64_t{2}), 0);
}
Value is_divisible_by(Run& run, const Value& self, const Arguments& arguments) {
  return rest_is(run, self, arguments.positional[0], 0);
}

constexpr Builtin kTests[] = {
    {"!=", comparison<Sign::kNotEqual>, "other", 1},
    {"<", comparison<Sign::kLess>, "other", 1},
    {"<=", comparison<Sign::kLessEqual>, "other", 1},
    {"==", comparison<Sign::kEqual>, "other", 1},
    {">", comparison<Sign::kGreater>, "other", 1},
    {">=", comparison<Sign::kGreaterEqual>, "other", 1},
    {"boolean", test<is_boolean>},
    {"callable", test<is_callable>},
    {"defined", test<is_defined>},
    {"divisibleby", is_divisible_by, "num", 1},
    {"eq", comparison<Sign::kEqual>, "other", 1},
    {"equalto", comparison<Sign::kEqual>, "other", 1},
    {"even", is_even},
    {"false", test<is_exactly_false>},
    {"float", test<is_float>},
    {"ge", comparison<Sign::kGreaterEqual>, "other", 1},
    {"greaterthan", comparison<Sign::kGreater>, "other", 1},
    {"gt", comparison<Sign::kGreater>, "other", 1},
    {"in", comparison<Sign::kIn>, "seq", 1},
    {"integer", test<is_integer>},
    {"iterable", test<is_iterable>},
    {"le", comparison<Sign::kLessEqual>, "other", 1},
    {"lessthan", comparison<Sign::kLess>, "other", 1},
    {"lower", text_test<is_lower>},
    {"lt", comparison<Sign::kLess>, "other", 1},
    {"mapping", test<is_mapping>},
    {"ne", comparison<Sign::kNotEqual>, "other", 1},
    {"none", test<is_none>},
    {"number", test<is_number>},
    {"odd", is_odd},
    {"sameas", same_as, "other", 1},
    {"sequence", test<is_sequence>},
    {"string", test<is_string>},
    {"true", test<is_exactly_true>},
    {"undefined", test<is_undefined>},
    {"upper", text_test<is_upper>},
};

Value range(Run& run, const Value&, const Arguments& arguments) {
  for (const Value& bound : arguments.positional) {
    if (!bound.is_integral()) {
      return run.fail(
          fmt::format("'{}' object cannot be interpreted as an integer", type_name(bound)));
    }
  }
  const auto& given = arguments.positional;
  const bool one = given.size() == 1;
  const int64_t start = one ? 0 : given[0].as_integer();
  const int64_t stop = given[one ? 0 : 1].as_integer();
  const int64_t step = given.size() > 2 ? given[2].as_integer() : 1;
  if (step == 0) return run.fail("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (!run.work() || !run.take_bytes(sizeof(Value))) return {};
    items.push_back(Value::of(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  Value value = run.sequence(std::move(items), Kind::kRange);
  value.sequence->start = start;
  value.sequence->stop = stop;
  value.sequence->step = step;
  return value;
}

// A dict of the pairs or dict given and of the named arguments.
Dict* make_dict(Run& run, const Arguments& arguments) {
  Dict* dict = run.dict();
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Type::kDict)) {
      for (const auto& [key, value] : from.dict->entries) run.insert(*dict, key, value);
    } else {
      for (const Value& pair : items_of(run, from)) {
        const auto parts = items_of(run, pair);
        if (parts.size() != 2 || !run.insert(*dict, parts[0], parts[1])) {
          run.fail("dict: expected pairs of key and value");
          break;
        }
      }
    }
  }
  for (const auto& [name, value] : arguments.named) run.insert(*dict, run.text(name), value);
  return dict;
}
Value dict(Run& run, const Value&, const Arguments& arguments) {
  return Value::of(make_dict(run, arguments));
}
Value make_namespace(Run& run, const Value&, const Arguments& arguments) {
  return Value::of(make_dict(run, arguments), Type::kNamespace);
}

Value raise_exception(Run& run, const Value&, const Arguments& arguments) {
  run.raise(to_text(run, arguments.positional[0]).bytes);
  return {};
}

Value strftime_now(Run& run, const Value&, const Arguments& arguments) {
  const auto seconds = static_cast<std::time_t>(run.options().now_s);
  std::tm calendar{};
  if (gmtime_r(&seconds, &calendar) == nullptr) return run.fail("strftime_now: no such time");
  // A space more, so that an empty result can be told from one that does not fit.
  const std::string wanted = to_text(run, arguments.positional[0]).bytes + " ";
  char buffer[512];
  const size_t size = std::strftime(buffer, sizeof buffer, wanted.c_str(), &calendar);
  if (size == 0) return run.fail("strftime_now: found a long format, expected a shorter one");
  return run.text(std::string_view(buffer, size - 1));
}

constexpr Builtin kGlobals[] = {
    {"dict", dict, "*"},
    {"namespace", make_namespace, "*"},
    {"raise_exception", raise_exception, "message", 1},
    {"range", range, "start stop step", 1},
    {"strftime_now", strftime_now, "format", 1},
};

template <size_t kSize>
const Builtin* search(const Builtin (&table)[kSize], std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

size_t count_words(std::string_view text) {
  if (text.empty()) return 0;
  return static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (text.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// Named arguments of the first parameters, moved to their places: builtins that require one look
// for it there.
Arguments in_places(const Builtin& builtin, const Arguments& arguments) {
  Arguments placed;
  placed.positional = arguments.positional;
  std::string_view names = builtin.parameters;
  for (size_t i = 0; i < builtin.required; ++i) {
    const size_t end = std::min(names.find(' '), names.size());
    if (i >= placed.positional.size()) {
      const Value* value = arguments.find(arguments.positional.size(), names.substr(0, end));
      if (value == nullptr) break;
      placed.positional.push_back(*value);
    }
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  placed.named = arguments.named;
  return placed;
}

}  // namespace

const Builtin* find_filter(std::string_view name) {
  static const auto kAll = [] {
    auto all = text_filters();
    for (const Builtin* filter : sequence_filters()) all.push_back(filter);
    return all;
  }();
  for (const Builtin* filter : kAll) {
    if (filter->name == name) return filter;
  }
  return nullptr;
}
const Builtin* find_test(std::string_view name) {
  return search(kTests, name);
}
const Builtin* find_global(std::string_view name) {
  return search(kGlobals, name);
}

Value call_builtin(Run& run, const Builtin& builtin, const Value& self,
                   const Arguments& arguments) {
  if (!run.work() || !run.enter()) return {};
  Value result;
  if (builtin.parameters == "*") {
    result = builtin.call(run, self, arguments);
  } else if (arguments.positional.size() > count_words(builtin.parameters)) {
    run.fail(fmt::format("{}: found {} arguments, expected at most {}", builtin.name,
                         arguments.positional.size(), count_words(builtin.parameters)));
  } else {
    for (const auto& [name, value] : arguments.named) {
      if (has_word(builtin.parameters, name)) continue;
      run.fail(fmt::format("{}: found an argument called '{}', expected '{}'", builtin.name, name,
                           builtin.parameters));
    }
    const Arguments placed = in_places(builtin, arguments);
    if (placed.positional.size() < builtin.required) {
      run.fail(fmt::format("{}: found {} arguments, expected '{}'", builtin.name,
                           placed.positional.size(), builtin.parameters));
    }
    if (!run.failed()) result = builtin.call(run, self, placed);
  }
  run.leave();
  return result;
}

Text text_argument(Run& run, const Arguments& arguments, size_t index, std::string_view name,
                   std::string_view fallback) {
  const Value* value = arguments.find(index, name);
  return value != nullptr ? to_text(run, *value) : Text{std::string(fallback), {}};
}

int64_t integer_argument(Run& run, const Arguments& arguments, size_t index, std::string_view name,
                         int64_t fallback) {
  const Value* value = arguments.find(index, name);
  if (value == nullptr) return fallback;
  if (value->is_integral()) return value->as_integer();
  run.fail(fmt::format("{}: found {}, expected an integer", name, type_name(*value)));
  return fallback;
}

bool flag_argument(const Arguments& arguments, size_t index, std::string_view name, bool fallback) {
  const Value* value = arguments.find(index, name);
  return value != nullptr ? is_true(*value) : fallback;
}

Value nested_item(Run& run, const Value& value, const Value& path) {
  if (!path.is_string()) return item(run, value, path);
  Value at = value;
  const std::string_view names = path.bytes();
  for (size_t begin = 0; begin <= names.size() && run.work();) {
    const size_t end = std::min(names.find('.', begin), names.size());
    const auto name = names.substr(begin, end - begin);
    const auto number = small_number(name);
    at = number ? item(run, at, Value::of(*number)) : item(run, at, run.text(name));
    begin = end + 1;
  }
  return at;
}

}  // namespace prony::token::jinja
