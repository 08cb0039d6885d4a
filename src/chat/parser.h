// Parses a template into statements.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/syntax.h"
#include "chat/value.h"

namespace heed::chat {

// Throws Error{corrupt_data} for what is not Jinja, Error{unsupported} for what is, but outside the
// subset, and Error{invalid_argument} for a limit; all with `name` and the line.
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
    if (++links_ > most_links) {
      fail(ErrorCode::invalid_argument,
           "{}, line {}: a tag has more than {} operators, attributes and calls",
           tokens_.place().name, line, most_links);
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
