#include "chat/syntax.h"

#include <algorithm>
#include <array>
#include <utility>

namespace heed::chat {
namespace {

class Parser {
 public:
  explicit Parser(TokenStream tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Block run() {
    Block block = statements({});
    if (!tokens_.is(TokenKind::end)) {
      tokens_.take();
      fail_syntax(tokens_.place(), "the tag '{}' has nothing to end",
                  shortened(tokens_.current().text));
    }
    return block;
  }

 private:
  using Words = std::initializer_list<std::string_view>;

  // Statements up to a tag that begins with one of the words, which is left to be read.
  Block statements(Words ends) {
    const SyntaxNesting nesting(tokens_);
    Block block;
    while (!tokens_.is(TokenKind::end)) {
      if (tokens_.is(TokenKind::statement_begin) && is_end(tokens_.next(), ends)) return block;
      block.push_back(statement());
    }
    if (ends.size() > 0) tokens_.fail_expected(fmt::format("{{% {} %}}", *(ends.end() - 1)));
    return block;
  }

  // Without `ends` any tag that only ends something.
  static bool is_end(const Token& token, Words ends) {
    constexpr std::array<std::string_view, 10> all = {
        "endif",    "elif",    "else",          "endfor",  "endset",
        "endmacro", "endcall", "endgeneration", "endwith", "endfilter"};
    if (token.kind != TokenKind::name) return false;
    if (ends.size() == 0) return std::ranges::find(all, token.text) != all.end();
    return std::ranges::find(ends, token.text) != ends.end();
  }

  Statement statement() {
    expressions_.begin_tag();
    const int line = tokens_.line();
    if (tokens_.is(TokenKind::data)) {
      return {line, TextStatement{Value(std::make_shared<const Text>(tokens_.take().text))}};
    }
    if (tokens_.is(TokenKind::print_begin)) {
      tokens_.take();
      PrintStatement print{expressions_.tuple_or_expression()};
      tokens_.expect(TokenKind::print_end, "'}}'");
      return {line, std::move(print)};
    }
    tokens_.take();
    return tag(line);
  }

  Statement tag(int line) {
    const Place place = tokens_.place();
    const std::string word = tokens_.take_name("the name of a tag");
    if (word == "if") return {line, if_statement()};
    if (word == "for") return {line, for_statement()};
    if (word == "set") return set_statement(line);
    if (word == "macro") return {line, macro_statement()};
    if (word == "call") return {line, call_statement()};
    if (word == "with") return {line, with_statement()};
    if (word == "filter") {
      std::vector<AppliedFilter> filters = expressions_.filters();
      return {line, FilterStatement{std::move(filters), body_until("endfilter")}};
    }
    if (word == "generation") {
      return {line, GenerationStatement{body_until("endgeneration")}};
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) fail_syntax(place, "'{}' stands outside a for", word);
      end_tag();
      if (word == "break") return {line, BreakStatement{}};
      return {line, ContinueStatement{}};
    }
    if (word.starts_with("end") || word == "else" || word == "elif") {
      fail_syntax(place, "the tag '{}' does not fit here", shortened(word));
    }
    fail_unsupported(place, fmt::format("the tag '{}'", shortened(word)));
  }

  void end_tag() { tokens_.expect(TokenKind::statement_end, "'%}'"); }

  // The rest of a tag, its body, and the tag that ends it.
  Block body_until(std::string_view end) {
    end_tag();
    Block body = statements({end});
    take_end();
    end_tag();
    return body;
  }

  // The beginning of the tag at which statements() stopped, and its word.
  std::string take_end() {
    tokens_.take();
    expressions_.begin_tag();
    return tokens_.take().text;
  }

  IfStatement if_statement() {
    IfStatement result;
    for (std::string word = "if"; word == "if" || word == "elif";) {
      ExpressionPointer test = expressions_.unconditional_tuple();
      end_tag();
      Block body = statements({"elif", "else", "endif"});
      result.branches.push_back({std::move(test), std::move(body)});
      word = take_end();
      if (word == "else") {
        result.otherwise = body_until("endif");
        return result;
      }
    }
    end_tag();
    return result;
  }

  ForStatement for_statement() {
    ForStatement result;
    result.target = target();
    if (!result.target.attribute.empty()) {
      fail_unsupported(tokens_.place(), "an attribute as the variable of a for");
    }
    if (!tokens_.skip_word("in")) tokens_.fail_expected("'in'");
    result.iterated = expressions_.unconditional_tuple();
    if (tokens_.skip_word("if")) result.condition = expressions_.expression();
    result.is_recursive = tokens_.skip_word("recursive");
    end_tag();
    ++loops_;
    result.body = statements({"else", "endfor"});
    --loops_;
    if (take_end() == "else") {
      result.otherwise = body_until("endfor");
    } else {
      end_tag();
    }
    return result;
  }

  std::string variable() {
    const Place place = tokens_.place();
    std::string name = tokens_.take_name("the name of a variable");
    if (expressions_.is_reserved(name)) {
      fail_syntax(place, "'{}' cannot be the name of a variable", name);
    }
    return name;
  }

  Target target() {
    Target result;
    const bool parenthesised = tokens_.skip_operator("(");
    result.names.push_back(variable());
    if (!parenthesised && tokens_.skip_operator(".")) {
      result.attribute = tokens_.take_name("the name of an attribute");
      return result;
    }
    while (tokens_.skip_operator(",")) {
      result.is_tuple = true;
      if (tokens_.is_operator("(")) {
        fail_unsupported(tokens_.place(), "a tuple in a tuple of variables");
      }
      result.names.push_back(variable());
    }
    if (parenthesised) tokens_.expect_operator(")");
    return result;
  }

  Statement set_statement(int line) {
    Target assigned = target();
    if (tokens_.skip_operator("=")) {
      SetStatement result{std::move(assigned), expressions_.tuple_or_expression()};
      end_tag();
      return {line, std::move(result)};
    }
    SetBlockStatement result;
    result.target = std::move(assigned);
    if (tokens_.skip_operator("|")) result.filters = expressions_.filters();
    if (!tokens_.is(TokenKind::statement_end)) tokens_.fail_expected("'='");
    result.body = outside_loops("endset");
    return {line, std::move(result)};
  }

  // A body that `break` and `continue` do not leave.
  Block outside_loops(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block body = body_until(end);
    loops_ = loops;
    return body;
  }

  WithStatement with_statement() {
    WithStatement result;
    while (!tokens_.is(TokenKind::statement_end)) {
      if (!result.assignments.empty()) tokens_.expect_operator(",");
      Target assigned = target();
      if (!assigned.attribute.empty()) fail_syntax(tokens_.place(), "'with' assigns to names");
      tokens_.expect_operator("=");
      result.assignments.push_back({std::move(assigned), expressions_.expression()});
    }
    result.body = body_until("endwith");
    return result;
  }

  void parameters(MacroDefinition& macro) {
    std::vector<Parameter>& result = macro.parameters;
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      Parameter parameter{variable(), nullptr};
      if (tokens_.skip_operator("=")) {
        parameter.default_value = expressions_.expression();
      } else if (!result.empty() && result.back().default_value != nullptr) {
        fail_syntax(tokens_.place(), "a parameter without a default follows one with a default");
      }
      macro.parameter_names.insert(parameter.name);
      result.push_back(std::move(parameter));
      if (!tokens_.is_operator(")")) tokens_.expect_operator(",");
    }
    tokens_.take();
  }

  // A macro's body, and which of the special names it has.
  void macro_body(MacroDefinition& macro, std::string_view end) {
    const ExpressionParser::MacroNames around = std::exchange(expressions_.seen, {});
    macro.body = outside_loops(end);
    ExpressionParser::MacroNames& seen = expressions_.seen;
    macro.uses_caller = seen.caller;
    macro.uses_varargs = seen.varargs;
    macro.uses_kwargs = seen.kwargs;
    seen = {seen.caller || around.caller, seen.varargs || around.varargs,
            seen.kwargs || around.kwargs};
  }

  MacroStatement macro_statement() {
    MacroStatement result;
    result.macro.name = variable();
    parameters(result.macro);
    macro_body(result.macro, "endmacro");
    return result;
  }

  CallStatement call_statement() {
    CallStatement result;
    result.caller.name = "caller";
    if (tokens_.is_operator("(")) parameters(result.caller);
    const Place place = tokens_.place();
    result.call = expressions_.expression();
    if (!std::holds_alternative<CallNode>(result.call->node)) {
      fail_syntax(place, "{{% call %}} needs the call of a macro");
    }
    macro_body(result.caller, "endcall");
    return result;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // around the current statement
};

}  // namespace

Block parse_template(std::string_view source, std::string_view name) {
  require(source.size() <= max_template, ErrorCode::invalid_argument,
          "{}: a chat template may have up to {} bytes, not {}", name, max_template, source.size());
  return Parser(TokenStream(tokenize(source, name), name)).run();
}

}  // namespace heed::chat
