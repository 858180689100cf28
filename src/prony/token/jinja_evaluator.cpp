#include "prony/token/jinja_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/token/jinja_builtins.hpp"

namespace prony::token::jinja {

using Type = Value::Type;
using Kind = Expression::Kind;

Text Evaluator::render(const Body& body) {
  Text out;
  execute(body, run_.scope(nullptr), out);
  return out;
}

void Evaluator::print(const Value& value, Text& out) {
  if (value.is_string()) {
    out.append(*value.text);
  } else {
    out.append(to_text(run_, value));
  }
  if (out.bytes.size() > run_.options().limits.output_bytes) {
    run_.fail(
        fmt::format("the output is longer than {} bytes", run_.options().limits.output_bytes));
  }
}

Evaluator::Flow Evaluator::execute(const Body& body, Scope* scope, Text& out) {
  if (!run_.enter()) return Flow::kNext;
  Flow flow = Flow::kNext;
  for (const Statement& statement : body.statements) {
    if (!run_.work()) break;
    flow = execute(statement, scope, out);
    if (flow != Flow::kNext) break;
  }
  run_.leave();
  return flow;
}

Evaluator::Flow Evaluator::execute(const Statement& statement, Scope* scope, Text& out) {
  run_.at_line(statement.line);
  switch (statement.kind) {
    case Statement::Kind::kText:
      out.append(statement.text);
      if (out.bytes.size() > run_.options().limits.output_bytes) {
        run_.fail(
            fmt::format("the output is longer than {} bytes", run_.options().limits.output_bytes));
      }
      break;
    case Statement::Kind::kPrint:
      print(evaluate(*statement.expressions[0], scope), out);
      break;
    case Statement::Kind::kIf:
      return execute_if(statement, scope, out);
    case Statement::Kind::kFor:
      return execute_for(statement, scope, out);
    case Statement::Kind::kSet:
      assign(statement.target, evaluate(*statement.expressions[0], scope), scope);
      break;
    case Statement::Kind::kSetBlock:
      assign(statement.target, captured(statement, scope), scope);
      break;
    case Statement::Kind::kMacro:
      scope->set(statement.text, run_.function({.macro = &statement, .scope = scope}));
      break;
    case Statement::Kind::kCall:
      execute_call(statement, scope, out);
      break;
    case Statement::Kind::kFilter:
      print(captured(statement, scope), out);
      break;
    case Statement::Kind::kWith:
      return execute_with(statement, scope, out);
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::execute_if(const Statement& statement, Scope* scope, Text& out) {
  for (size_t i = 0; i < statement.expressions.size(); ++i) {
    if (is_true(evaluate(*statement.expressions[i], scope))) {
      return execute(statement.bodies[i], scope, out);
    }
    if (run_.failed()) return Flow::kNext;
  }
  if (statement.bodies.size() == statement.expressions.size()) return Flow::kNext;
  return execute(statement.bodies.back(), scope, out);
}

Evaluator::Flow Evaluator::execute_for(const Statement& statement, Scope* scope, Text& out) {
  auto items = items_of(run_, evaluate(*statement.expressions[0], scope));
  if (statement.expressions[1] != nullptr) {
    std::vector<Value> kept;
    for (const Value& item : items) {
      if (!run_.work()) return Flow::kNext;
      Scope* inner = run_.scope(scope);
      assign(statement.target, item, inner);
      if (is_true(evaluate(*statement.expressions[1], inner))) kept.push_back(item);
    }
    items = std::move(kept);
  }
  // The items stay for loop.previtem, and for a loop object that outlives the loop.
  const Value kept = run_.sequence(std::move(items));
  const auto& list = kept.sequence->items;
  Loop* loop = run_.loop(&list);
  for (size_t i = 0; i < list.size() && run_.work(); ++i) {
    loop->index = i;
    Scope* inner = run_.scope(scope);
    inner->set("loop", Value::of(static_cast<const Loop*>(loop)));
    assign(statement.target, list[i], inner);
    if (execute(statement.bodies[0], inner, out) == Flow::kBreak) break;
  }
  // A body of "else" runs if there was nothing to loop over, and may break a loop around it.
  if (list.empty() && statement.bodies.size() > 1 && !run_.failed()) {
    return execute(statement.bodies[1], run_.scope(scope), out);
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::execute_with(const Statement& statement, Scope* scope, Text& out) {
  Scope* inner = run_.scope(scope);
  for (const auto& [name, expression] : statement.parameters) {
    inner->set(name, evaluate(*expression, scope));
  }
  return execute(statement.bodies[0], inner, out);
}

void Evaluator::execute_call(const Statement& statement, Scope* scope, Text& out) {
  const Value caller = run_.function({.macro = &statement, .scope = scope});
  print(call(*statement.expressions[0], scope, &caller), out);
}

Value Evaluator::captured(const Statement& statement, Scope* scope) {
  Text text;
  execute(statement.bodies[0], run_.scope(scope), text);
  captured_.push_back(run_.text(std::move(text)));
  const Value value = evaluate(*statement.expressions[0], scope);
  captured_.pop_back();
  return value;
}

void Evaluator::assign(const Target& target, const Value& value, Scope* scope) {
  if (target.is_tuple) {
    const auto parts = items_of(run_, value);
    if (parts.size() != target.parts.size()) {
      run_.fail(
          fmt::format("found {} values to unpack, expected {}", parts.size(), target.parts.size()));
      return;
    }
    for (size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], parts[i], scope);
    return;
  }
  if (target.attribute.empty()) {
    run_.take_bytes(sizeof(Value));
    scope->set(target.name, value);
    return;
  }
  const Value object = name(target.name, scope);
  if (!object.is(Type::kNamespace)) {
    run_.fail("cannot assign attribute on non-namespace object");
    return;
  }
  run_.insert(*object.dict, run_.text(target.attribute), value);
}

Value Evaluator::evaluate(const Expression& expression, Scope* scope) {
  if (!run_.work() || !run_.enter()) return {};
  run_.at_line(expression.line);
  const Value value = evaluate_here(expression, scope);
  run_.leave();
  return value;
}

Value Evaluator::evaluate_or_none(const ExpressionPtr& expression, Scope* scope) {
  return expression == nullptr ? Value::none() : evaluate(*expression, scope);
}

Value Evaluator::evaluate_here(const Expression& expression, Scope* scope) {
  const auto& parts = expression.parts;
  switch (expression.kind) {
    case Kind::kLiteral:
      return literal(expression);
    case Kind::kName:
      return name(expression.text, scope);
    case Kind::kList:
    case Kind::kTuple: {
      std::vector<Value> items;
      for (const auto& part : parts) items.push_back(evaluate(*part, scope));
      return run_.sequence(std::move(items), expression.kind == Kind::kTuple
                                                 ? Sequence::Kind::kTuple
                                                 : Sequence::Kind::kList);
    }
    case Kind::kDict:
      return dict(expression, scope);
    case Kind::kAttribute:
      return attribute(run_, evaluate(*parts[0], scope), expression.text);
    case Kind::kItem: {
      const Value object = evaluate(*parts[0], scope);
      return item(run_, object, evaluate(*parts[1], scope));
    }
    case Kind::kSlice: {
      const Value object = evaluate(*parts[0], scope);
      const Value start = evaluate_or_none(parts[1], scope);
      const Value stop = evaluate_or_none(parts[2], scope);
      return slice(run_, object, start, stop, evaluate_or_none(parts[3], scope));
    }
    case Kind::kCall:
      return call(expression, scope, nullptr);
    case Kind::kFilter:
    case Kind::kTest: {
      const Value input = evaluate(*parts[0], scope);
      const Arguments arguments = arguments_of(expression, scope);
      return run_.failed() ? Value() : call_builtin(run_, *expression.builtin, input, arguments);
    }
    case Kind::kCaptured:
      return captured_.back();
    case Kind::kNegate:
    case Kind::kPlus:
      return negate(run_, evaluate(*parts[0], scope), expression.kind == Kind::kNegate);
    case Kind::kNot:
      return Value::of(!is_true(evaluate(*parts[0], scope)));
    case Kind::kAnd: {
      const Value left = evaluate(*parts[0], scope);
      return is_true(left) ? evaluate(*parts[1], scope) : left;
    }
    case Kind::kOr: {
      const Value left = evaluate(*parts[0], scope);
      return is_true(left) ? left : evaluate(*parts[1], scope);
    }
    case Kind::kConditional:
      if (is_true(evaluate(*parts[0], scope))) return evaluate(*parts[1], scope);
      if (parts[2] != nullptr) return evaluate(*parts[2], scope);
      return run_.undefined("the condition was false and there is no else");
    case Kind::kArithmetic: {
      const Value left = evaluate(*parts[0], scope);
      const Value right = evaluate(*parts[1], scope);
      return run_.failed() ? Value() : arithmetic(run_, expression.text, left, right);
    }
    case Kind::kConcat:
      return concat(expression, scope);
    case Kind::kCompare:
      return comparison(expression, scope);
  }
  return {};
}

Value Evaluator::literal(const Expression& expression) const {
  const auto& literal = expression.literal;
  if (const auto* boolean = std::get_if<bool>(&literal)) return Value::of(*boolean);
  if (const auto* integer = std::get_if<int64_t>(&literal)) return Value::of(*integer);
  if (const auto* real = std::get_if<double>(&literal)) return Value::of(*real);
  if (const auto* text = std::get_if<Text>(&literal)) return Value::of(text);
  return Value::none();
}

Value Evaluator::name(const std::string& name, const Scope* scope) {
  if (const Value* value = scope->find(name)) return *value;
  if (const Value* value = context_.find(name)) return *value;
  if (const Builtin* builtin = find_global(name)) return run_.function({.builtin = builtin});
  return run_.undefined(fmt::format("'{}' is undefined", name));
}

Value Evaluator::dict(const Expression& expression, Scope* scope) {
  Dict* dict = run_.dict();
  for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i], scope);
    const Value value = evaluate(*expression.parts[i + 1], scope);
    if (run_.failed() || !run_.insert(*dict, key, value)) break;
  }
  return Value::of(dict);
}

Value Evaluator::concat(const Expression& expression, Scope* scope) {
  Text text;
  for (const auto& part : expression.parts) {
    const Value value = evaluate(*part, scope);
    if (run_.failed()) return {};
    if (value.is_string()) {
      if (!run_.take_bytes(value.bytes().size())) return {};
      text.append(*value.text);
    } else {
      text.append(to_text(run_, value));
    }
  }
  return run_.text(std::move(text));
}

// a < b < c means a < b and b < c, with b evaluated once.
Value Evaluator::comparison(const Expression& expression, Scope* scope) {
  Value left = evaluate(*expression.parts[0], scope);
  for (size_t i = 0; i < expression.signs.size(); ++i) {
    const Value right = evaluate(*expression.parts[i + 1], scope);
    if (run_.failed() || !compare(run_, expression.signs[i], left, right)) return Value::of(false);
    left = right;
  }
  return Value::of(true);
}

Arguments Evaluator::arguments_of(const Expression& expression, Scope* scope) {
  Arguments arguments;
  for (size_t i = 1; i < expression.parts.size(); ++i) {
    arguments.positional.push_back(evaluate(*expression.parts[i], scope));
  }
  for (const auto& [name, value] : expression.named) {
    arguments.named.emplace_back(name, evaluate(*value, scope));
  }
  return arguments;
}

Value Evaluator::call(const Expression& expression, Scope* scope, const Value* caller) {
  const Value callee = evaluate(*expression.parts[0], scope);
  if (run_.failed()) return {};
  if (callee.is_undefined()) {
    return run_.fail(callee.hint != nullptr ? *callee.hint : "found a call of nothing");
  }
  if (!callee.is(Type::kFunction)) {
    return run_.fail(fmt::format("'{}' object is not callable", type_name(callee)));
  }
  const Arguments arguments = arguments_of(expression, scope);
  if (run_.failed()) return {};
  run_.at_line(expression.line);
  const Function& function = *callee.function;
  if (function.builtin != nullptr) {
    return call_builtin(run_, *function.builtin, function.self, arguments);
  }
  return call_macro(function, arguments, caller);
}

Value Evaluator::call_macro(const Function& function, const Arguments& arguments,
                            const Value* caller) {
  const Statement& macro = *function.macro;
  const auto& parameters = macro.parameters;
  const std::string& name = macro.kind == Statement::Kind::kMacro ? macro.text : "caller";
  if (arguments.positional.size() > parameters.size()) {
    return run_.fail(
        fmt::format("macro '{}' takes not more than {} argument(s)", name, parameters.size()));
  }
  for (const auto& [key, value] : arguments.named) {
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [key = key](const auto& one) { return one.first == key; });
    if (!known) {
      return run_.fail(fmt::format("macro '{}' takes no keyword argument '{}'", name, key));
    }
  }
  Scope* inner = run_.scope(function.scope);
  if (caller != nullptr) inner->set("caller", *caller);
  for (size_t i = 0; i < parameters.size() && run_.work(); ++i) {
    const auto& [parameter, fallback] = parameters[i];
    if (const Value* given = arguments.find(i, parameter)) {
      inner->set(parameter, *given);
    } else if (fallback != nullptr) {
      inner->set(parameter, evaluate(*fallback, inner));
    } else {
      inner->set(parameter,
                 run_.undefined(fmt::format("parameter '{}' was not provided", parameter)));
    }
  }
  Text text;
  execute(macro.bodies[0], inner, text);
  return run_.text(std::move(text));
}

}  // namespace prony::token::jinja
