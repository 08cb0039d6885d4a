#include "chat/syntax.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "chat/built_in.h"

namespace heed::chat {
namespace {

constexpr std::array<std::string_view, 8> reserved_words = {"and", "or",   "not", "in",
                                                            "is",  "else", "if",  "elif"};

std::optional<Value> constant(std::string_view name) {
  if (name == "true" || name == "True") return Value(true);
  if (name == "false" || name == "False") return Value(false);
  if (name == "none" || name == "None") return Value(None{});
  return std::nullopt;
}

std::optional<BinaryOperator> operator_of(const Token& token,
                                          std::initializer_list<BinaryOperator> allowed) {
  if (token.kind != TokenKind::operation) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, BinaryOperator>, 13> symbols = {{
      {"+", BinaryOperator::add},
      {"-", BinaryOperator::subtract},
      {"*", BinaryOperator::multiply},
      {"/", BinaryOperator::divide},
      {"//", BinaryOperator::floor_divide},
      {"%", BinaryOperator::modulo},
      {"**", BinaryOperator::power},
      {"==", BinaryOperator::equal},
      {"!=", BinaryOperator::not_equal},
      {"<", BinaryOperator::less},
      {"<=", BinaryOperator::less_equal},
      {">", BinaryOperator::greater},
      {">=", BinaryOperator::greater_equal},
  }};
  for (const auto& [symbol, operation] : symbols) {
    if (symbol == token.text && std::ranges::find(allowed, operation) != allowed.end()) {
      return operation;
    }
  }
  return std::nullopt;
}

}  // namespace

ExpressionPointer ExpressionParser::make_binary(int line, BinaryOperator operation,
                                                ExpressionPointer left, ExpressionPointer right) {
  return make_link(line, BinaryNode{operation, std::move(left), std::move(right)});
}

bool ExpressionParser::is_constant(std::string_view name) const {
  return constant(name).has_value();
}

bool ExpressionParser::is_reserved(std::string_view name) const {
  return is_constant(name) || std::ranges::find(reserved_words, name) != reserved_words.end();
}

ExpressionPointer ExpressionParser::expression() {
  const SyntaxNesting nesting(tokens_);
  const int line = tokens_.line();
  ExpressionPointer value = logical_or();
  while (tokens_.skip_word("if")) {
    ExpressionPointer condition = logical_or();
    ExpressionPointer otherwise = tokens_.skip_word("else") ? expression() : nullptr;
    value = make_link(
        line, ConditionalNode{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExpressionPointer ExpressionParser::unconditional() { return logical_or(); }

ExpressionPointer ExpressionParser::tuple_or_expression() {
  return tuple_of(&ExpressionParser::expression);
}

ExpressionPointer ExpressionParser::unconditional_tuple() {
  return tuple_of(&ExpressionParser::unconditional);
}

ExpressionPointer ExpressionParser::tuple_of(Part part) {
  const int line = tokens_.line();
  ExpressionPointer first = (this->*part)();
  if (!tokens_.is_operator(",")) return first;
  ListNode tuple{ListKind::tuple, {}};
  tuple.items.push_back(std::move(first));
  const auto ends = [&] {
    return tokens_.is(TokenKind::print_end) || tokens_.is(TokenKind::statement_end) ||
           tokens_.is_operator(")");
  };
  while (tokens_.skip_operator(",") && !ends()) tuple.items.push_back((this->*part)());
  return make(line, std::move(tuple));
}

ExpressionPointer ExpressionParser::logical_or() {
  const int line = tokens_.line();
  ExpressionPointer left = logical_and();
  while (tokens_.skip_word("or")) {
    left = make_binary(line, BinaryOperator::logical_or, std::move(left), logical_and());
  }
  return left;
}

ExpressionPointer ExpressionParser::logical_and() {
  const int line = tokens_.line();
  ExpressionPointer left = logical_not();
  while (tokens_.skip_word("and")) {
    left = make_binary(line, BinaryOperator::logical_and, std::move(left), logical_not());
  }
  return left;
}

ExpressionPointer ExpressionParser::logical_not() {
  if (!tokens_.is_word("not")) return comparison();
  const SyntaxNesting nesting(tokens_);
  const int line = tokens_.take().line;
  return make(line, UnaryNode{UnaryOperator::logical_not, logical_not()});
}

std::optional<BinaryOperator> ExpressionParser::comparison_operator() {
  if (tokens_.skip_word("in")) return BinaryOperator::contained;
  const Token& next = tokens_.next();
  if (tokens_.is_word("not") && next.kind == TokenKind::name && next.text == "in") {
    tokens_.take();
    tokens_.take();
    return BinaryOperator::not_contained;
  }
  const auto found =
      operator_of(tokens_.current(), {BinaryOperator::equal, BinaryOperator::not_equal,
                                      BinaryOperator::less, BinaryOperator::less_equal,
                                      BinaryOperator::greater, BinaryOperator::greater_equal});
  if (found) tokens_.take();
  return found;
}

ExpressionPointer ExpressionParser::comparison() {
  const int line = tokens_.line();
  ExpressionPointer left = sum();
  const auto operation = comparison_operator();
  if (!operation) return left;
  ExpressionPointer right = sum();
  auto next = comparison_operator();
  if (!next) return make_binary(line, *operation, std::move(left), std::move(right));
  ComparisonNode chain{std::move(left), {}};
  chain.links.push_back({*operation, std::move(right)});
  for (; next; next = comparison_operator()) chain.links.push_back({*next, sum()});
  return make_link(line, std::move(chain));
}

ExpressionPointer ExpressionParser::sum() {
  const int line = tokens_.line();
  ExpressionPointer left = concatenation();
  while (const auto operation =
             operator_of(tokens_.current(), {BinaryOperator::add, BinaryOperator::subtract})) {
    tokens_.take();
    left = make_binary(line, *operation, std::move(left), concatenation());
  }
  return left;
}

ExpressionPointer ExpressionParser::concatenation() {
  const int line = tokens_.line();
  ExpressionPointer first = product();
  if (!tokens_.is_operator("~")) return first;
  ConcatenationNode joined;
  joined.parts.push_back(std::move(first));
  while (tokens_.skip_operator("~")) joined.parts.push_back(product());
  return make(line, std::move(joined));
}

ExpressionPointer ExpressionParser::product() {
  const int line = tokens_.line();
  ExpressionPointer left = power();
  while (const auto operation = operator_of(
             tokens_.current(), {BinaryOperator::multiply, BinaryOperator::divide,
                                 BinaryOperator::floor_divide, BinaryOperator::modulo})) {
    tokens_.take();
    left = make_binary(line, *operation, std::move(left), power());
  }
  return left;
}

ExpressionPointer ExpressionParser::power() {
  const int line = tokens_.line();
  ExpressionPointer left = filtered();
  while (tokens_.skip_operator("**")) {
    left = make_binary(line, BinaryOperator::power, std::move(left), filtered());
  }
  return left;
}

ExpressionPointer ExpressionParser::filtered() { return with_filters(unary()); }

ExpressionPointer ExpressionParser::unary() {
  if (!tokens_.is_operator("-") && !tokens_.is_operator("+")) return with_postfixes(primary());
  const SyntaxNesting nesting(tokens_);
  const Token& sign = tokens_.take();
  const UnaryOperator operation =
      sign.text == "-" ? UnaryOperator::negative : UnaryOperator::positive;
  return with_postfixes(make(sign.line, UnaryNode{operation, unary()}));
}

ExpressionPointer ExpressionParser::primary() {
  if (tokens_.is(TokenKind::name)) return name();
  if (tokens_.is(TokenKind::string)) return string();
  if (tokens_.is(TokenKind::integer) || tokens_.is(TokenKind::real)) return number();
  if (tokens_.is_operator("(")) return parenthesised();
  if (tokens_.is_operator("[")) return list();
  if (tokens_.is_operator("{")) return dict();
  tokens_.fail_expected("an expression");
}

ExpressionPointer ExpressionParser::name() {
  const std::string& text = tokens_.current().text;
  const int line = tokens_.line();
  if (auto value = constant(text)) {
    tokens_.take();
    return make(line, LiteralNode{std::move(*value)});
  }
  if (is_reserved(text)) tokens_.fail_expected("an expression");
  seen.caller = seen.caller || text == "caller";
  seen.varargs = seen.varargs || text == "varargs";
  seen.kwargs = seen.kwargs || text == "kwargs";
  return make(line, NameNode{tokens_.take().text});
}

ExpressionPointer ExpressionParser::number() {
  const Place place = tokens_.place();
  const Token& token = tokens_.take();
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::real) {
    double value = 0;
    const auto result = std::from_chars(token.text.data(), end, value);
    if (result.ec == std::errc()) return make(token.line, LiteralNode{Value(value)});
  } else {
    std::int64_t value = 0;
    const auto result = std::from_chars(token.text.data(), end, value);
    if (result.ec == std::errc()) return make(token.line, LiteralNode{Value(value)});
  }
  fail_unsupported(place, fmt::format("the number {}, beyond 64 bits,", shortened(token.text)));
}

ExpressionPointer ExpressionParser::string() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.is(TokenKind::string)) text += tokens_.take().text;
  return make(line, LiteralNode{Value(std::make_shared<const Text>(text))});
}

ExpressionPointer ExpressionParser::parenthesised() {
  const int line = tokens_.take().line;
  if (tokens_.skip_operator(")")) return make(line, ListNode{ListKind::tuple, {}});
  ExpressionPointer value = tuple_or_expression();
  tokens_.expect_operator(")");
  return value;
}

ExpressionPointer ExpressionParser::list() {
  const int line = tokens_.take().line;
  ListNode list;
  while (!tokens_.is_operator("]")) {
    list.items.push_back(expression());
    if (!tokens_.is_operator("]")) tokens_.expect_operator(",");
  }
  tokens_.take();
  return make(line, std::move(list));
}

ExpressionPointer ExpressionParser::dict() {
  const int line = tokens_.take().line;
  DictNode dict;
  while (!tokens_.is_operator("}")) {
    ExpressionPointer key = expression();
    tokens_.expect_operator(":");
    dict.entries.emplace_back(std::move(key), expression());
    if (!tokens_.is_operator("}")) tokens_.expect_operator(",");
  }
  tokens_.take();
  return make(line, std::move(dict));
}

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
