// Parses the expressions of a template.
#pragma once

#include <optional>

#include "chat/syntax.h"
#include "chat/token_stream.h"

namespace heed::chat {

// Throws Error{corrupt_data} for what is not Jinja, Error{unsupported} for what is, but outside the
// subset, and Error{invalid_argument} for what nests too deep.
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
