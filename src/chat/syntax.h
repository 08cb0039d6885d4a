// A template as a tree of statements and expressions, and the parser that makes it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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

// Parses a template into statements. Throws Error{corrupt_data} for what is not Jinja,
// Error{unsupported} for what is, but outside the subset, and Error{invalid_argument} for a limit;
// all with `name` and the line.
Block parse_template(std::string_view source, std::string_view name);

// Tokens: text, and what stands in {{ }} and {% %}.
enum class TokenKind {
  data,             // text outside tags, white space control applied
  print_begin,      // {{
  print_end,        // }}
  statement_begin,  // {%
  statement_end,    // %}
  name,
  string,  // decoded
  integer,
  real,
  operation,  // an operator or bracket
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 0;
};

// As Jinja with trim_blocks and lstrip_blocks. The last token is `end`. Throws Error{corrupt_data}
// with `name` and the line.
std::vector<Token> tokenize(std::string_view source, std::string_view name);

// Tokens read one after the other, for the two parsers.
class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view name)
      : tokens_(std::move(tokens)), name_(name) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& next() const {  // the one after it
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  int line() const { return current().line; }
  Place place() const { return {name_, line()}; }

  // Returns the current token and goes on; the last one, `end`, stays.
  const Token& take() {
    const Token& token = current();
    if (token.kind != TokenKind::end) ++position_;
    return token;
  }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const {
    return is(TokenKind::operation) && current().text == text;
  }
  bool is_word(std::string_view word) const {
    return is(TokenKind::name) && current().text == word;
  }
  bool skip_operator(std::string_view text) { return skip_if(is_operator(text)); }
  bool skip_word(std::string_view word) { return skip_if(is_word(word)); }

  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) fail_expected(fmt::format("'{}'", text));
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) fail_expected(what);
    take();
  }
  std::string take_name(std::string_view what) {
    if (!is(TokenKind::name)) fail_expected(what);
    return take().text;
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    fail_syntax(place(), "expected {}, not {}", what, shown(current()));
  }

  // Levels of nested syntax, see SyntaxNesting.
  int depth = 0;

 private:
  static std::string shown(const Token& token) {
    switch (token.kind) {
      case TokenKind::data: return "text";
      case TokenKind::print_begin: return "'{{'";
      case TokenKind::print_end: return "'}}'";
      case TokenKind::statement_begin: return "'{%'";
      case TokenKind::statement_end: return "'%}'";
      case TokenKind::string: return "a string";
      case TokenKind::end: return "the end of the template";
      default: return fmt::format("'{}'", shortened(token.text));
    }
  }
  bool skip_if(bool condition) {
    if (condition) take();
    return condition;
  }

  std::vector<Token> tokens_;
  std::string_view name_;
  std::size_t position_ = 0;
};

// One level of syntax, which takes a part of the stack while it is parsed.
class SyntaxNesting {
 public:
  explicit SyntaxNesting(TokenStream& tokens) : tokens_(tokens) {
    if (tokens.depth >= deepest_syntax) {
      fail(ErrorCode::invalid_argument, "{}, line {}: the template nests deeper than {} levels",
           tokens.place().name, tokens.line(), deepest_syntax);
    }
    ++tokens.depth;
  }
  ~SyntaxNesting() { --tokens_.depth; }
  SyntaxNesting(const SyntaxNesting&) = delete;
  SyntaxNesting& operator=(const SyntaxNesting&) = delete;

 private:
  TokenStream& tokens_;
};

// Parses the expressions of a template. Throws Error{corrupt_data} for what is not Jinja,
// Error{unsupported} for what is, but outside the subset, and Error{invalid_argument} for what
// nests too deep.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // A tag begins: it may have as many operators as any other.
  void begin_tag() { links_ = 0; }

  ExpressionPointer expression();           // with `a if b else c`
  ExpressionPointer unconditional();        // without it, before `if` of a for
  ExpressionPointer tuple_or_expression();  // a, b
  ExpressionPointer unconditional_tuple();
  std::vector<AppliedFilter> filters();           // name | name(…)
  bool is_reserved(std::string_view name) const;  // such as `not`: not the name of a variable
  bool is_constant(std::string_view name) const;  // true, false or none

  // Names that a macro takes if its body has them.
  struct MacroNames {
    bool caller = false;
    bool varargs = false;
    bool kwargs = false;
  };
  MacroNames seen;  // since it was last reset

 private:
  using Part = ExpressionPointer (ExpressionParser::*)();

  template <class Node>
  ExpressionPointer make(int line, Node node) {
    return std::make_unique<const Expression>(Expression{line, std::move(node)});
  }
  // A node that has another of the same level as its left side, so that long chains nest.
  template <class Node>
  ExpressionPointer make_link(int line, Node node) {
    if (++links_ > max_links) {
      fail(ErrorCode::invalid_argument,
           "{}, line {}: a tag has more than {} operators, attributes and calls",
           tokens_.place().name, line, max_links);
    }
    return make(line, std::move(node));
  }
  ExpressionPointer make_binary(int line, BinaryOperator operation, ExpressionPointer left,
                                ExpressionPointer right);
  ExpressionPointer tuple_of(Part part);

  ExpressionPointer logical_or();
  ExpressionPointer logical_and();
  ExpressionPointer logical_not();
  ExpressionPointer comparison();
  std::optional<BinaryOperator> comparison_operator();
  ExpressionPointer sum();
  ExpressionPointer concatenation();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer filtered();
  ExpressionPointer unary();
  ExpressionPointer primary();
  ExpressionPointer name();
  ExpressionPointer number();
  ExpressionPointer string();
  ExpressionPointer parenthesised();
  ExpressionPointer list();
  ExpressionPointer dict();
  ExpressionPointer with_postfixes(ExpressionPointer value);
  ExpressionPointer with_filters(ExpressionPointer value);
  ExpressionPointer attribute(ExpressionPointer object);
  ExpressionPointer item(ExpressionPointer object);
  ExpressionPointer slice(ExpressionPointer object, ExpressionPointer start, int line);
  ExpressionPointer test(ExpressionPointer value);
  CallArguments test_arguments();
  CallArguments call_arguments();  // ( … )
  void call_argument(CallArguments& arguments);
  const Filter* filter_name();

  TokenStream& tokens_;
  int links_ = 0;
};

}  // namespace heed::chat
