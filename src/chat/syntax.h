// A parsed template: a tree of statements and expressions.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/value.h"

namespace heed::chat {

struct Filter;
struct Predicate;
struct Expression;
struct Statement;
using ExpressionPointer = std::unique_ptr<const Expression>;
using Block = std::vector<Statement>;

enum class UnaryOperator { negative, positive, logical_not };
enum class BinaryOperator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  contained,
  not_contained,
  logical_and,
  logical_or,
};

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer unpacked_list;  // *list; both may be null
  ExpressionPointer unpacked_dict;  // **dict
};

struct LiteralNode {
  Value value;  // no list or dictionary: those are made anew whenever they are evaluated
};
struct NameNode {
  std::string name;
};
struct ListNode {
  ListKind kind = ListKind::list;
  std::vector<ExpressionPointer> items;
};
struct DictNode {
  std::vector<std::pair<ExpressionPointer, ExpressionPointer>> entries;
};
struct UnaryNode {
  UnaryOperator operation;
  ExpressionPointer operand;
};
struct BinaryNode {
  BinaryOperator operation;
  ExpressionPointer left;
  ExpressionPointer right;
};
struct ComparisonNode {  // a < b < c: each pair in turn, until one does not hold
  struct Link {
    BinaryOperator operation;
    ExpressionPointer right;
  };
  ExpressionPointer first;
  std::vector<Link> links;  // two or more
};
struct ConcatenationNode {  // a ~ b ~ c
  std::vector<ExpressionPointer> parts;
};
struct ConditionalNode {  // value if test else otherwise
  ExpressionPointer test;
  ExpressionPointer value;
  ExpressionPointer otherwise;  // may be null
};
struct AttributeNode {
  ExpressionPointer object;
  std::string name;
};
struct ItemNode {
  ExpressionPointer object;
  ExpressionPointer index;
};
struct SliceNode {
  ExpressionPointer object;
  ExpressionPointer start;  // each may be null
  ExpressionPointer stop;
  ExpressionPointer step;
};
struct CallNode {
  ExpressionPointer callee;
  CallArguments arguments;
};
struct FilterNode {
  const Filter* filter;
  ExpressionPointer input;
  CallArguments arguments;
};
struct PredicateNode {  // input is predicate(arguments)
  const Predicate* predicate;
  ExpressionPointer input;
  CallArguments arguments;
};

struct Expression {
  int line = 0;
  std::variant<LiteralNode, NameNode, ListNode, DictNode, UnaryNode, BinaryNode, ComparisonNode,
               ConcatenationNode, ConditionalNode, AttributeNode, ItemNode, SliceNode, CallNode,
               FilterNode, PredicateNode>
      node;
};

// What a value is assigned to: names, more than one for a tuple, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  bool is_tuple = false;
  std::string attribute;  // empty: the name itself
};

struct Parameter {
  std::string name;
  ExpressionPointer default_value;  // may be null
};

struct TextStatement {
  Value text;
};
struct PrintStatement {
  ExpressionPointer value;
};
struct IfStatement {
  struct Branch {
    ExpressionPointer test;
    Block body;
  };
  std::vector<Branch> branches;
  Block otherwise;
};
struct ForStatement {
  Target target;
  ExpressionPointer iterated;
  ExpressionPointer condition;  // may be null
  Block body;
  Block otherwise;
  bool is_recursive = false;  // the body may call loop(…)
};
struct SetStatement {
  Target target;
  ExpressionPointer value;
};
struct AppliedFilter {
  const Filter* filter;
  CallArguments arguments;
};
struct SetBlockStatement {  // {% set name | filter %}…{% endset %}
  Target target;
  std::vector<AppliedFilter> filters;
  Block body;
};
struct FilterStatement {  // {% filter name | name %}…{% endfilter %}
  std::vector<AppliedFilter> filters;
  Block body;
};
struct WithStatement {  // {% with name = value, … %}…{% endwith %}
  std::vector<SetStatement> assignments;
  Block body;
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  std::set<std::string, std::less<>> parameter_names;
  Block body;
  bool uses_caller = false;  // names that its body has, and that it therefore takes
  bool uses_varargs = false;
  bool uses_kwargs = false;
};
struct MacroStatement {
  MacroDefinition macro;
};
struct CallStatement {  // {% call(parameters) function(…) %}…{% endcall %}
  MacroDefinition caller;
  ExpressionPointer call;
};
struct GenerationStatement {
  Block body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  int line = 0;
  std::variant<TextStatement, PrintStatement, IfStatement, ForStatement, SetStatement,
               SetBlockStatement, FilterStatement, WithStatement, MacroStatement, CallStatement,
               GenerationStatement, BreakStatement, ContinueStatement>
      node;
};

}  // namespace heed::chat
