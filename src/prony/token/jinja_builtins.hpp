// What chat templates may call: filters, tests, methods and globals by name, and the operators.
// Each works on values alone and reports what is wrong to the Run.
// Thread safety: tables are constant; a Run belongs to one thread.
// Source: Jinja 3.1, src/jinja2/filters.py and tests.py; Python 3.11 for methods and operators.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "prony/token/jinja_value.hpp"

namespace prony::token::jinja {

/// Null if there is none.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_method(const Value& object, std::string_view name);

/// Checks the arguments against what the builtin takes, then calls it.
Value call_builtin(Run& run, const Builtin& builtin, const Value& self, const Arguments& arguments);

/// object.name: a method before a member, and object[key]: a member before a method.
Value attribute(Run& run, const Value& object, std::string_view name);
Value item(Run& run, const Value& object, const Value& key);
Value slice(Run& run, const Value& object, const Value& start, const Value& stop,
            const Value& step);

/// left SIGN right for + - * / // % **.
Value arithmetic(Run& run, std::string_view sign, const Value& left, const Value& right);
Value negate(Run& run, const Value& value, bool minus);
/// left SIGN right for == != < <= > >= in "not in".
bool compare(Run& run, std::string_view sign, const Value& left, const Value& right);
/// Python's text % values.
Value format_percent(Run& run, const Text& format, const std::vector<Value>& values,
                     const Value& mapping);

/// Python's json.dumps with Hugging Face's defaults.
struct JsonStyle {
  std::optional<Text> indent;  // of one level; absent: one line
  Text item_separator, key_separator;
  bool ascii = false, sort_keys = false;
};
void append_json(Run& run, const Value& value, const JsonStyle& style, Text& out);

// The tables, each in its file.
std::vector<const Builtin*> text_filters();
std::vector<const Builtin*> sequence_filters();

// For the builtins themselves.
/// The argument as text, a number, a flag; `fallback` if it was not given.
Text text_argument(Run& run, const Arguments& arguments, size_t index, std::string_view name,
                   std::string_view fallback = {});
int64_t integer_argument(Run& run, const Arguments& arguments, size_t index, std::string_view name,
                         int64_t fallback);
bool flag_argument(const Arguments& arguments, size_t index, std::string_view name, bool fallback);
/// "a.b.0" of a value, as the attribute argument of filters means it.
Value nested_item(Run& run, const Value& value, const Value& path);

}  // namespace prony::token::jinja
