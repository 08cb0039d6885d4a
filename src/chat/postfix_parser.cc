// What follows a value: attributes, items, calls, filters and tests.
#include "chat/built_in.h"
#include "chat/expression_parser.h"

namespace heed::chat {

ExpressionPointer ExpressionParser::with_postfixes(ExpressionPointer value) {
  for (;;) {
    const int line = tokens_.line();
    if (tokens_.is_operator(".")) {
      value = attribute(std::move(value));
    } else if (tokens_.is_operator("[")) {
      value = item(std::move(value));
    } else if (tokens_.is_operator("(")) {
      CallArguments arguments = call_arguments();
      value = make_link(line, CallNode{std::move(value), std::move(arguments)});
    } else {
      return value;
    }
  }
}

ExpressionPointer ExpressionParser::with_filters(ExpressionPointer value) {
  for (;;) {
    const int line = tokens_.line();
    if (tokens_.skip_operator("|")) {
      const Filter* const filter = filter_name();
      CallArguments arguments;
      if (tokens_.is_operator("(")) arguments = call_arguments();
      value = make_link(line, FilterNode{filter, std::move(value), std::move(arguments)});
    } else if (tokens_.is_word("is")) {
      value = test(std::move(value));
    } else if (tokens_.is_operator("(")) {
      CallArguments arguments = call_arguments();
      value = make_link(line, CallNode{std::move(value), std::move(arguments)});
    } else {
      return value;
    }
  }
}

std::vector<AppliedFilter> ExpressionParser::filters() {
  std::vector<AppliedFilter> applied;
  do {
    const Filter* const filter = filter_name();
    CallArguments arguments;
    if (tokens_.is_operator("(")) arguments = call_arguments();
    applied.push_back({filter, std::move(arguments)});
  } while (tokens_.skip_operator("|"));
  return applied;
}

const Filter* ExpressionParser::filter_name() {
  const Place place = tokens_.place();
  const std::string filter = tokens_.take_name("the name of a filter");
  const Filter* const found = find_filter(filter);
  if (found == nullptr || tokens_.is_operator(".")) {
    fail_unsupported(place, fmt::format("the filter '{}'", shortened(filter)));
  }
  return found;
}

ExpressionPointer ExpressionParser::attribute(ExpressionPointer object) {
  const int line = tokens_.take().line;
  if (tokens_.is(TokenKind::integer)) {
    return make_link(line, ItemNode{std::move(object), number()});
  }
  return make_link(line,
                   AttributeNode{std::move(object), tokens_.take_name("the name of an attribute")});
}

ExpressionPointer ExpressionParser::item(ExpressionPointer object) {
  const int line = tokens_.take().line;
  ExpressionPointer index = tokens_.is_operator(":") ? nullptr : expression();
  if (tokens_.is_operator(":")) return slice(std::move(object), std::move(index), line);
  if (tokens_.is_operator(",")) fail_unsupported(tokens_.place(), "an index of several values");
  tokens_.expect_operator("]");
  return make_link(line, ItemNode{std::move(object), std::move(index)});
}

ExpressionPointer ExpressionParser::slice(ExpressionPointer object, ExpressionPointer start,
                                          int line) {
  SliceNode slice{std::move(object), std::move(start), nullptr, nullptr};
  for (ExpressionPointer* const bound : {&slice.stop, &slice.step}) {
    if (!tokens_.skip_operator(":")) break;
    if (!tokens_.is_operator(":") && !tokens_.is_operator("]")) *bound = expression();
  }
  tokens_.expect_operator("]");
  return make_link(line, std::move(slice));
}

ExpressionPointer ExpressionParser::test(ExpressionPointer value) {
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_word("not");
  const Place place = tokens_.place();
  const std::string name = tokens_.take_name("the name of a test");
  const Predicate* const predicate = find_predicate(name);
  if (predicate == nullptr || tokens_.is_operator(".")) {
    fail_unsupported(place, fmt::format("the test '{}'", shortened(name)));
  }
  CallArguments arguments = test_arguments();
  ExpressionPointer tested =
      make_link(line, PredicateNode{predicate, std::move(value), std::move(arguments)});
  if (!negated) return tested;
  return make_link(line, UnaryNode{UnaryOperator::logical_not, std::move(tested)});
}

// In parentheses, or one value without them: `x is divisibleby 3`.
CallArguments ExpressionParser::test_arguments() {
  CallArguments arguments;
  if (tokens_.is_operator("(")) return call_arguments();
  const bool is_value = tokens_.is(TokenKind::string) || tokens_.is(TokenKind::integer) ||
                        tokens_.is(TokenKind::real) || tokens_.is_operator("[") ||
                        tokens_.is_operator("{");
  if (tokens_.is_word("is")) fail_syntax(tokens_.place(), "tests cannot be chained with 'is'");
  const bool is_name = tokens_.is(TokenKind::name) && (is_constant(tokens_.current().text) ||
                                                       !is_reserved(tokens_.current().text));
  if (is_value || is_name) arguments.positional.push_back(with_postfixes(primary()));
  return arguments;
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments arguments;
  tokens_.expect_operator("(");
  while (!tokens_.is_operator(")")) {
    call_argument(arguments);
    if (!tokens_.is_operator(")")) tokens_.expect_operator(",");
  }
  tokens_.take();
  return arguments;
}

void ExpressionParser::call_argument(CallArguments& arguments) {
  const auto require_order = [&](bool condition) {
    if (!condition) fail_syntax(tokens_.place(), "the arguments of a call are out of order");
  };
  const Token& next = tokens_.next();
  const bool is_named =
      tokens_.is(TokenKind::name) && next.kind == TokenKind::operation && next.text == "=";
  require_order(arguments.unpacked_dict == nullptr);
  if (tokens_.skip_operator("**")) {
    arguments.unpacked_dict = expression();
  } else if (is_named) {
    std::string argument = tokens_.take().text;
    tokens_.take();
    arguments.named.emplace_back(std::move(argument), expression());
  } else if (tokens_.skip_operator("*")) {
    require_order(arguments.unpacked_list == nullptr);
    arguments.unpacked_list = expression();
  } else {
    require_order(arguments.named.empty() && arguments.unpacked_list == nullptr);
    arguments.positional.push_back(expression());
  }
}

}  // namespace heed::chat
