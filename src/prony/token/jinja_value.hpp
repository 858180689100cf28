// Value: what an expression of a chat template gives: Python's None, bool, int, float, str, list,
// tuple, dict, Jinja's Undefined and namespace. Values are small and copied freely; what they point
// to belongs to a Run, which frees all of it at its end. That makes cycles harmless, and it lets
// the Run count every byte, so that no template can take memory or time without bound.
// Thread safety: one thread; a Run belongs to one rendering.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/token/jinja.hpp"
#include "prony/token/jinja_text.hpp"

namespace prony::token::jinja {

class Run;
struct Sequence;
struct Dict;
struct Loop;
struct Function;

struct Value {
  enum class Type : uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInteger,
    kFloat,
    kString,
    kSequence,
    kDict,
    kNamespace,
    kLoop,
    kFunction,
  };
  Type type = Type::kUndefined;
  union {
    const std::string* hint = nullptr;  // kUndefined: what is undefined; may be null
    bool boolean;
    int64_t integer;
    double real;
    const Text* text;
    Sequence* sequence;
    Dict* dict;  // and kNamespace
    const Loop* loop;
    const Function* function;
  };

  static Value none() {
    Value value;
    value.type = Type::kNone;
    return value;
  }
  static Value of(bool boolean) {
    Value value;
    value.type = Type::kBool;
    value.boolean = boolean;
    return value;
  }
  static Value of(int64_t integer) {
    Value value;
    value.type = Type::kInteger;
    value.integer = integer;
    return value;
  }
  static Value of(double real) {
    Value value;
    value.type = Type::kFloat;
    value.real = real;
    return value;
  }
  static Value of(const Text* text) {
    Value value;
    value.type = Type::kString;
    value.text = text;
    return value;
  }
  static Value of(Sequence* sequence) {
    Value value;
    value.type = Type::kSequence;
    value.sequence = sequence;
    return value;
  }
  static Value of(Dict* dict, Type type = Type::kDict) {
    Value value;
    value.type = type;
    value.dict = dict;
    return value;
  }
  static Value of(const Loop* loop) {
    Value value;
    value.type = Type::kLoop;
    value.loop = loop;
    return value;
  }
  static Value of(const Function* function) {
    Value value;
    value.type = Type::kFunction;
    value.function = function;
    return value;
  }

  bool is(Type wanted) const { return type == wanted; }
  bool is_undefined() const { return type == Type::kUndefined; }
  bool is_string() const { return type == Type::kString; }
  /// bool, int: Python's bool is an int.
  bool is_integral() const { return type == Type::kInteger || type == Type::kBool; }
  bool is_number() const { return is_integral() || type == Type::kFloat; }
  int64_t as_integer() const { return type == Type::kBool ? (boolean ? 1 : 0) : integer; }
  double as_real() const { return type == Type::kFloat ? real : static_cast<double>(as_integer()); }
  std::string_view bytes() const { return text->bytes; }  // of a string
};

struct Sequence {
  enum class Kind : uint8_t { kList, kTuple, kRange, kGenerator } kind = Kind::kList;
  std::vector<Value> items;
  int64_t start = 0, stop = 0, step = 1;  // kRange: as it was written, for printing
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion
  const Value* find(std::string_view key) const;
  const Value* find(Run& run, const Value& key) const;
};

/// `loop` inside a for.
struct Loop {
  const std::vector<Value>* items = nullptr;
  size_t index = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
  /// The argument at `index` or called `name`; null if it was not given.
  const Value* find(size_t index, std::string_view name) const;
};

/// A filter, test, method or global: `self` is what stands before the bar, "is" or the dot.
using Native = Value (*)(Run& run, const Value& self, const Arguments& arguments);
struct Builtin {
  std::string_view name;
  Native call;
  std::string_view parameters = {};  // "width first"; "*": any number
  size_t required = 0;
};

struct Statement;
struct Scope;

struct Function {
  const Builtin* builtin = nullptr;
  Value self;
  const Statement* macro = nullptr;  // or what {% call %} gives to its macro as caller
  Scope* scope = nullptr;            // where it was defined
};

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;
  void set(std::string_view name, const Value& value);
  const Value* find(std::string_view name) const;  // here and outwards
};

/// One rendering: owns what it makes, counts it, and keeps the first failure. After a failure every
/// function returns something harmless and the result is thrown away, so callers need to look at
/// failed() only where they loop.
class Run {
 public:
  explicit Run(const RenderOptions& options) : options_(options) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool failed() const noexcept { return message_.has_value(); }
  const std::string& message() const { return *message_; }
  /// The template itself refused: raise_exception.
  bool raised() const noexcept { return raised_; }
  int line() const noexcept { return failed() ? failed_line_ : line_; }
  void at_line(int line) { line_ = line; }
  const RenderOptions& options() const noexcept { return options_; }

  Value fail(std::string message);
  void raise(std::string message);
  /// Counts `count` units of work; false when there is none left or something has failed.
  bool work(size_t count = 1);
  /// Counts memory before it is taken.
  bool take_bytes(size_t bytes);
  /// Depth of recursion; leave() after each enter() that was true.
  bool enter();
  void leave() { --depth_; }

  const Text* keep(Text text);
  Value text(Text text) { return Value::of(keep(std::move(text))); }
  Value text(std::string_view bytes) { return text(Text{std::string(bytes), {}}); }
  Value undefined(std::string hint);
  Value sequence(std::vector<Value> items, Sequence::Kind kind = Sequence::Kind::kList);
  Value generator(std::vector<Value> items) {
    return sequence(std::move(items), Sequence::Kind::kGenerator);
  }
  Dict* dict();
  bool insert(Dict& dict, const Value& key, const Value& value);
  Value function(Function function);
  Scope* scope(Scope* parent);
  Loop* loop(const std::vector<Value>* items);

 private:
  const RenderOptions& options_;
  std::optional<std::string> message_;
  bool raised_ = false;
  int line_ = 0, failed_line_ = 0, depth_ = 0;
  int64_t steps_ = 0;
  size_t bytes_ = 0;
  std::deque<Text> texts_;
  std::deque<std::string> hints_;
  std::deque<Sequence> sequences_;
  std::deque<Dict> dicts_;
  std::deque<Function> functions_;
  std::deque<Scope> scopes_;
  std::deque<Loop> loops_;
};

/// `foreign`: strings are marked as from outside, but those of members called "role", which pick
/// between a template's own words.
Value from_json(Run& run, const core::Json& json, bool foreign);

/// Python's type(value).__name__, for messages.
std::string_view type_name(const Value& value);
bool is_true(const Value& value);
bool equal(Run& run, const Value& a, const Value& b);
/// Fails for what has no order.
bool less(Run& run, const Value& a, const Value& b, std::string_view sign = "<");
/// `element in container`.
bool contains(Run& run, const Value& container, const Value& element);
/// Python's str(), and repr().
Text to_text(Run& run, const Value& value);
void append_repr(Run& run, const Value& value, Text& out);
/// What a for over the value sees; fails if it is not iterable. A generator is empty afterwards.
std::vector<Value> items_of(Run& run, const Value& value);
std::optional<int64_t> length(const Value& value);

}  // namespace prony::token::jinja
