// Divides a template into tokens: text, and what stands in {{ }} and {% %}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::chat {

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

}  // namespace heed::chat
