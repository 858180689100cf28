#include "prony/token/jinja_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prony::token::jinja {
namespace {

using Type = Value::Type;
using Kind = Sequence::Kind;

// What bookkeeping costs beside the bytes themselves; roughly what the allocator takes.
constexpr size_t kNodeBytes = 64;

// Guards a recursion; false if it is too deep.
class Descent {
 public:
  explicit Descent(Run& run) : run_(run), entered_(run.enter()) {}
  ~Descent() {
    if (entered_) run_.leave();
  }
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  Run& run_;
  bool entered_;
};

void append_items(Run& run, const std::vector<Value>& items, Text& out) {
  for (size_t i = 0; i < items.size() && run.work(); ++i) {
    if (i > 0) out.append(", ");
    append_repr(run, items[i], out);
  }
}

void append_sequence(Run& run, const Sequence& sequence, Text& out) {
  switch (sequence.kind) {
    case Kind::kGenerator:
      out.append("<generator object>");
      return;
    case Kind::kRange:
      out.append(fmt::format("range({}, {}", sequence.start, sequence.stop));
      if (sequence.step != 1) out.append(fmt::format(", {}", sequence.step));
      out.append(")");
      return;
    case Kind::kTuple:
      out.append("(");
      append_items(run, sequence.items, out);
      out.append(sequence.items.size() == 1 ? ",)" : ")");
      return;
    case Kind::kList:
      out.append("[");
      append_items(run, sequence.items, out);
      out.append("]");
      return;
  }
}

void append_dict(Run& run, const Dict& dict, Text& out) {
  out.append("{");
  for (size_t i = 0; i < dict.entries.size() && run.work(); ++i) {
    if (i > 0) out.append(", ");
    append_repr(run, dict.entries[i].first, out);
    out.append(": ");
    append_repr(run, dict.entries[i].second, out);
  }
  out.append("}");
}

bool is_hashable(const Value& value) {
  if (value.is(Type::kSequence)) {
    return value.sequence->kind == Kind::kTuple &&
           std::all_of(value.sequence->items.begin(), value.sequence->items.end(),
                       [](const Value& item) { return !item.is(Type::kSequence); });
  }
  return !value.is(Type::kDict);
}

bool equal_sequences(Run& run, const Sequence& a, const Sequence& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!run.work() || !equal(run, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Run& run, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = run.work() ? b.find(run, key) : nullptr;
    if (other == nullptr || !equal(run, value, *other)) return false;
  }
  return true;
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.is_string() && name.bytes() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(Run& run, const Value& key) const {
  if (key.is_string()) return find(key.bytes());
  for (const auto& [name, value] : entries) {
    if (!run.work()) return nullptr;
    if (equal(run, name, key)) return &value;
  }
  return nullptr;
}

const Value* Arguments::find(size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Scope::set(std::string_view name, const Value& value) {
  for (auto& [key, old] : names) {
    if (key == name) {
      old = value;
      return;
    }
  }
  names.emplace_back(name, value);
}

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    for (const auto& [key, value] : scope->names) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

Value Run::fail(std::string message) {
  if (!message_) {
    message_ = std::move(message);
    failed_line_ = line_;
  }
  return {};
}

void Run::raise(std::string message) {
  if (message_) return;
  raised_ = true;
  fail(std::move(message));
}

bool Run::work(size_t count) {
  steps_ += static_cast<int64_t>(count);
  if (steps_ > options_.limits.steps) {
    fail(fmt::format("the template does more than {} steps", options_.limits.steps));
  }
  return !failed();
}

bool Run::take_bytes(size_t bytes) {
  if (bytes > options_.limits.memory_bytes - bytes_) {
    fail(fmt::format("the template takes more than {} bytes", options_.limits.memory_bytes));
    return false;
  }
  bytes_ += bytes;
  return true;
}

bool Run::enter() {
  if (depth_ >= options_.limits.depth) {
    fail(fmt::format("nested deeper than {}", options_.limits.depth));
    return false;
  }
  ++depth_;
  return true;
}

const Text* Run::keep(Text text) {
  take_bytes(text.bytes.size() + kNodeBytes);
  work(text.bytes.size() / 64);
  return &texts_.emplace_back(std::move(text));
}

Value Run::undefined(std::string hint) {
  take_bytes(hint.size() + kNodeBytes);
  Value value;
  value.hint = &hints_.emplace_back(std::move(hint));
  return value;
}

Value Run::sequence(std::vector<Value> items, Kind kind) {
  take_bytes(items.size() * sizeof(Value) + kNodeBytes);
  Sequence& sequence = sequences_.emplace_back();
  sequence.kind = kind;
  sequence.items = std::move(items);
  return Value::of(&sequence);
}

Dict* Run::dict() {
  take_bytes(kNodeBytes);
  return &dicts_.emplace_back();
}

bool Run::insert(Dict& dict, const Value& key, const Value& value) {
  if (!is_hashable(key)) {
    fail(fmt::format("unhashable type: '{}'", type_name(key)));
    return false;
  }
  if (!take_bytes(2 * sizeof(Value)) || !work(1 + dict.entries.size() / 16)) return false;
  for (auto& [name, old] : dict.entries) {
    if (key.is_string() != name.is_string()) continue;
    if (key.is_string() ? key.bytes() == name.bytes() : equal(*this, name, key)) {
      old = value;
      return true;
    }
  }
  dict.entries.emplace_back(key, value);
  return true;
}

Value Run::function(Function function) {
  take_bytes(sizeof(Function));
  return Value::of(&functions_.emplace_back(function));
}

Scope* Run::scope(Scope* parent) {
  take_bytes(kNodeBytes);
  Scope& scope = scopes_.emplace_back();
  scope.parent = parent;
  return &scope;
}

Loop* Run::loop(const std::vector<Value>* items) {
  take_bytes(sizeof(Loop));
  return &loops_.emplace_back(Loop{items, 0});
}

Value from_json(Run& run, const core::Json& json, bool foreign) {
  const Descent descent(run);
  if (!descent || !run.work()) return {};
  switch (json.type()) {
    case core::Json::value_t::null:
    case core::Json::value_t::binary:
    case core::Json::value_t::discarded:
      return Value::none();
    case core::Json::value_t::boolean:
      return Value::of(json.get<bool>());
    case core::Json::value_t::number_integer:
      return Value::of(json.get<int64_t>());
    case core::Json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number <= static_cast<uint64_t>(INT64_MAX)) {
        return Value::of(static_cast<int64_t>(number));
      }
      return Value::of(static_cast<double>(number));
    }
    case core::Json::value_t::number_float:
      return Value::of(json.get<double>());
    case core::Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      return run.text(foreign ? Text::from_outside(text) : Text{text, {}});
    }
    case core::Json::value_t::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json(run, item, foreign));
      return run.sequence(std::move(items));
    }
    case core::Json::value_t::object: {
      Dict* dict = run.dict();
      for (const auto& [key, value] : json.items()) {
        Text name = foreign ? Text::from_outside(key) : Text{key, {}};
        // Keys of a JSON object differ already: no search.
        if (!run.take_bytes(2 * sizeof(Value))) break;
        dict->entries.emplace_back(run.text(std::move(name)),
                                   from_json(run, value, foreign && key != "role"));
      }
      return Value::of(dict);
    }
  }
  return {};
}

std::string_view type_name(const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInteger:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kString:
      return "str";
    case Type::kSequence: {
      constexpr std::string_view kNames[] = {"list", "tuple", "range", "generator"};
      return kNames[static_cast<size_t>(value.sequence->kind)];
    }
    case Type::kDict:
      return "dict";
    case Type::kNamespace:
      return "Namespace";
    case Type::kLoop:
      return "LoopContext";
    case Type::kFunction:
      return "function";
  }
  return "";
}

bool is_true(const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
      return value.boolean;
    case Type::kInteger:
      return value.integer != 0;
    case Type::kFloat:
      return value.real != 0;
    case Type::kString:
      return !value.text->bytes.empty();
    case Type::kSequence:
      return value.sequence->kind == Kind::kGenerator || !value.sequence->items.empty();
    case Type::kDict:
      return !value.dict->entries.empty();
    case Type::kNamespace:
    case Type::kLoop:
    case Type::kFunction:
      return true;
  }
  return false;
}

bool equal(Run& run, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_real() == b.as_real();
  }
  if (a.type != b.type) return false;
  const Descent descent(run);
  if (!descent || !run.work()) return false;
  switch (a.type) {
    case Type::kUndefined:
    case Type::kNone:
      return true;
    case Type::kString:
      run.work(std::min(a.text->bytes.size(), b.text->bytes.size()) / 64);
      return a.text->bytes == b.text->bytes;
    case Type::kSequence:
      if (a.sequence == b.sequence) return true;
      return a.sequence->kind != Kind::kGenerator && equal_sequences(run, *a.sequence, *b.sequence);
    case Type::kDict:
      return a.dict == b.dict || equal_dicts(run, *a.dict, *b.dict);
    case Type::kNamespace:
      return a.dict == b.dict;
    case Type::kLoop:
      return a.loop == b.loop;
    case Type::kFunction:
      return a.function == b.function;
    case Type::kBool:
    case Type::kInteger:
    case Type::kFloat:
      break;  // numbers, above
  }
  return false;
}

bool less(Run& run, const Value& a, const Value& b, std::string_view sign) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() < b.as_integer();
    return a.as_real() < b.as_real();
  }
  // Code points and the bytes of their UTF-8 have the same order.
  if (a.is_string() && b.is_string()) return a.text->bytes < b.text->bytes;
  const Descent descent(run);
  if (!descent) return false;
  if (a.is(Type::kSequence) && b.is(Type::kSequence) && a.sequence->kind == b.sequence->kind &&
      (a.sequence->kind == Kind::kList || a.sequence->kind == Kind::kTuple)) {
    const auto &x = a.sequence->items, &y = b.sequence->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!run.work()) return false;
      if (!equal(run, x[i], y[i])) return less(run, x[i], y[i], sign);
    }
    return x.size() < y.size();
  }
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) {
      run.fail(value->hint != nullptr ? *value->hint : "undefined value");
      return false;
    }
  }
  run.fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", sign, type_name(a),
                       type_name(b)));
  return false;
}

bool contains(Run& run, const Value& container, const Value& element) {
  switch (container.type) {
    case Type::kString:
      if (!element.is_string()) {
        run.fail(fmt::format("'in <string>' requires string as left operand, not {}",
                             type_name(element)));
        return false;
      }
      run.work(container.text->bytes.size() / 64);
      return container.bytes().find(element.bytes()) != std::string_view::npos;
    case Type::kDict:
      if (!is_hashable(element)) {
        run.fail(fmt::format("unhashable type: '{}'", type_name(element)));
        return false;
      }
      return container.dict->find(run, element) != nullptr;
    case Type::kSequence:
    case Type::kUndefined:
      for (const Value& item : items_of(run, container)) {
        if (!run.work()) return false;
        if (equal(run, item, element)) return true;
      }
      return false;
    default:
      run.fail(fmt::format("argument of type '{}' is not iterable", type_name(container)));
      return false;
  }
}

void append_repr(Run& run, const Value& value, Text& out) {
  const Descent descent(run);
  if (!descent || !run.work()) return;
  if (out.bytes.size() > run.options().limits.output_bytes) {
    run.fail(fmt::format("a text of more than {} bytes", run.options().limits.output_bytes));
    return;
  }
  switch (value.type) {
    case Type::kUndefined:
      out.append("Undefined");
      return;
    case Type::kNone:
      out.append("None");
      return;
    case Type::kBool:
      out.append(value.boolean ? "True" : "False");
      return;
    case Type::kInteger:
      out.append(fmt::format("{}", value.integer));
      return;
    case Type::kFloat:
      out.append(repr(value.real));
      return;
    case Type::kString:
      out.append_like(repr(value.bytes()), *value.text);
      return;
    case Type::kSequence:
      append_sequence(run, *value.sequence, out);
      return;
    case Type::kDict:
      append_dict(run, *value.dict, out);
      return;
    case Type::kNamespace:
      out.append("<Namespace ");
      append_dict(run, *value.dict, out);
      out.append(">");
      return;
    case Type::kLoop:
      out.append(
          fmt::format("<LoopContext {}/{}>", value.loop->index + 1, value.loop->items->size()));
      return;
    case Type::kFunction:
      out.append("<function>");
      return;
  }
}

Text to_text(Run& run, const Value& value) {
  if (value.is_string()) return *value.text;
  Text text;
  if (!value.is_undefined()) append_repr(run, value, text);
  return text;
}

std::vector<Value> items_of(Run& run, const Value& value) {
  std::vector<Value> items;
  switch (value.type) {
    case Type::kUndefined:
      return items;
    case Type::kString: {
      const auto offsets = character_offsets(value.text->bytes);
      for (size_t i = 0; i + 1 < offsets.size() && run.work(); ++i) {
        items.push_back(run.text(value.text->slice(offsets[i], offsets[i + 1])));
      }
      return items;
    }
    case Type::kSequence:
      if (value.sequence->kind == Kind::kGenerator) {
        std::swap(items, value.sequence->items);
        return items;
      }
      run.take_bytes(value.sequence->items.size() * sizeof(Value));
      run.work(value.sequence->items.size() / 16);
      return run.failed() ? items : value.sequence->items;
    case Type::kDict:
      for (const auto& entry : value.dict->entries) items.push_back(entry.first);
      run.take_bytes(items.size() * sizeof(Value));
      return items;
    default:
      run.fail(fmt::format("'{}' object is not iterable", type_name(value)));
      return items;
  }
}

std::optional<int64_t> length(const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      return length_of(value.bytes());
    case Type::kSequence:
      if (value.sequence->kind == Kind::kGenerator) return std::nullopt;
      return static_cast<int64_t>(value.sequence->items.size());
    case Type::kDict:
      return static_cast<int64_t>(value.dict->entries.size());
    default:
      return std::nullopt;
  }
}

}  // namespace prony::token::jinja
