// Tokens of a template, read one after the other, for the two parsers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/lexer.h"
#include "chat/limits.h"
#include "chat/template_error.h"

namespace heed::chat {

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

}  // namespace heed::chat
