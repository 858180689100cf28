// Evaluator: runs the statements of a chat template and writes what they print.
// Thread safety: one thread; one object per rendering.
// Source: Jinja 3.1 documentation (scopes: bodies of for, macro, call, filter, set and with blocks
// have their own; if has none).
#pragma once
#include <string_view>
#include <vector>

#include "prony/token/jinja_ast.hpp"
#include "prony/token/jinja_value.hpp"

namespace prony::token::jinja {

class Evaluator {
 public:
  /// `context`: the variables.
  Evaluator(Run& run, const Dict& context) : run_(run), context_(context) {}

  Text render(const Body& body);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  Flow execute(const Body& body, Scope* scope, Text& out);
  Flow execute(const Statement& statement, Scope* scope, Text& out);
  Flow execute_if(const Statement& statement, Scope* scope, Text& out);
  Flow execute_for(const Statement& statement, Scope* scope, Text& out);
  Flow execute_with(const Statement& statement, Scope* scope, Text& out);
  void execute_call(const Statement& statement, Scope* scope, Text& out);
  Value captured(const Statement& statement, Scope* scope);
  void print(const Value& value, Text& out);
  void assign(const Target& target, const Value& value, Scope* scope);

  Value evaluate(const Expression& expression, Scope* scope);
  Value evaluate_here(const Expression& expression, Scope* scope);
  Value evaluate_or_none(const ExpressionPtr& expression, Scope* scope);
  Value literal(const Expression& expression) const;
  Value name(const std::string& name, const Scope* scope);
  Value dict(const Expression& expression, Scope* scope);
  Value concat(const Expression& expression, Scope* scope);
  Value comparison(const Expression& expression, Scope* scope);
  Value call(const Expression& expression, Scope* scope, const Value* caller);
  Value call_macro(const Function& function, const Arguments& arguments, const Value* caller);
  Arguments arguments_of(const Expression& expression, Scope* scope);

  Run& run_;
  const Dict& context_;
  std::vector<Value> captured_;  // texts that kCaptured stands for, innermost last
};

}  // namespace prony::token::jinja
