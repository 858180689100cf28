// What a chat template is after parsing: expressions and statements as trees. Filters and tests are
// already looked up, so that an unknown one is an error of parsing.
// Thread safety: immutable after parsing; any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prony/token/jinja_text.hpp"
#include "prony/token/jinja_value.hpp"

namespace prony::token::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind : uint8_t {
    kLiteral,      // literal
    kName,         // text
    kList,         // parts
    kTuple,        // parts
    kDict,         // parts: key, value, key, value ...
    kAttribute,    // parts[0] . text
    kItem,         // parts[0] [ parts[1] ]
    kSlice,        // parts[0] [ parts[1] : parts[2] : parts[3] ], each perhaps null
    kCall,         // parts[0] ( the others and named )
    kFilter,       // parts[0] | builtin ( the others and named )
    kTest,         // parts[0] is builtin ( the others and named )
    kCaptured,     // what a filter or set block has rendered
    kNegate,       // - parts[0]
    kPlus,         // + parts[0]
    kNot,          // not parts[0]
    kAnd,          // parts[0] and parts[1]
    kOr,           // parts[0] or parts[1]
    kConditional,  // parts[1] if parts[0] else parts[2], which may be null
    kArithmetic,   // parts[0] text parts[1]
    kConcat,       // parts[0] ~ parts[1] ~ ...
    kCompare,      // parts[0] signs[0] parts[1] signs[1] ...
  };
  Kind kind = Kind::kLiteral;
  int line = 0;
  int depth = 1;                                                      // of the tree below
  std::variant<std::monostate, bool, int64_t, double, Text> literal;  // monostate: None
  std::string text;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> signs;
  const Builtin* builtin = nullptr;
};

/// Where a for, set or macro puts a value: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name;
  std::string attribute;  // of the namespace called `name`; empty: the name itself
  std::vector<Target> parts;
  bool is_tuple = false;
};

struct Statement;
struct Body {
  std::vector<Statement> statements;
};

struct Statement {
  enum class Kind : uint8_t {
    kText,      // text
    kPrint,     // expressions[0]
    kIf,        // expressions[i] -> bodies[i]; one body more: else
    kFor,       // target in expressions[0] if expressions[1] (or null): bodies[0], else bodies[1]
    kSet,       // target = expressions[0]
    kSetBlock,  // target = expressions[0] of what bodies[0] rendered (kCaptured)
    kMacro,     // name(parameters): bodies[0]
    kCall,      // {% call(parameters) expressions[0] %} bodies[0]
    kFilter,    // expressions[0] of what bodies[0] rendered (kCaptured)
    kWith,      // parameters = their defaults: bodies[0] in a scope of its own
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  int line = 0;
  std::string text;  // or the name of a macro
  Target target;
  std::vector<ExpressionPtr> expressions;
  std::vector<Body> bodies;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // name and default or null
};

}  // namespace prony::token::jinja
