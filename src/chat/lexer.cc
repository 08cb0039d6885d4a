#include "chat/syntax.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "chat/text.h"

namespace heed::chat {
namespace {

// The escape sequences of string literals, as in Python.
// The character that a letter after a backslash stands for, or 0.
char simple_escape(char letter) {
  switch (letter) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case '\\': return '\\';
    case '\'': return '\'';
    case '"': return '"';
    default: return 0;
  }
}

std::size_t digits_of_escape(char letter) {
  if (letter == 'x') return 2;
  if (letter == 'u') return 4;
  return letter == 'U' ? 8 : 0;
}

class Decoder {
 public:
  Decoder(std::string_view text, Place place) : text_(text), place_(place) {}

  std::string run() {
    while (position_ < text_.size()) {
      const char c = text_[position_++];
      if (c == '\\' && position_ < text_.size()) {
        escape(text_[position_++]);
      } else {
        decoded_ += c;
      }
    }
    return std::move(decoded_);
  }

 private:
  void escape(char letter) {
    if (const char simple = simple_escape(letter)) {
      decoded_ += simple;
    } else if (const std::size_t size = digits_of_escape(letter)) {
      append(number(position_, size, 16));
      position_ += size;
    } else if (letter >= '0' && letter <= '7') {
      std::size_t digits = 1;
      while (digits < 3 && position_ - 1 + digits < text_.size() &&
             text_[position_ - 1 + digits] >= '0' && text_[position_ - 1 + digits] <= '7') {
        ++digits;
      }
      append(number(position_ - 1, digits, 8));
      position_ += digits - 1;
    } else if (letter == 'N') {
      fail_unsupported(place_, "the escape sequence \\N");
    } else if (letter != '\n') {
      decoded_ += '\\';
      decoded_ += letter;
    }
  }

  char32_t number(std::size_t begin, std::size_t digits, int base) const {
    const std::string_view shown = text_.substr(begin, digits);
    std::uint32_t value = 0;
    const auto [end, error] =
        std::from_chars(shown.data(), shown.data() + shown.size(), value, base);
    if (error != std::errc() || shown.size() < digits || end != shown.data() + digits) {
      fail_syntax(place_, "an escape sequence needs {} digits, not '{}'", digits, shortened(shown));
    }
    return value;
  }

  void append(char32_t character) {
    if (character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF)) {
      fail_syntax(place_, "the escape sequence of U+{:X} is not a character",
                  static_cast<std::uint32_t>(character));
    }
    append_character(decoded_, character);
  }

  std::string_view text_;
  Place place_;
  std::size_t position_ = 0;
  std::string decoded_;
};

// `text` stands between the quotes. A backslash before any other character stays. Throws
// Error{corrupt_data} for \x, \u and \U without their digits, and Error{unsupported} for \N{name}.
std::string decode_string_literal(std::string_view text, Place place) {
  return Decoder(text, place).run();
}

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// The longer ones first.
constexpr std::array<std::string_view, 25> operators = {
    "==", "!=", ">=", "<=", "//", "**", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};

// Line breaks become \n, and the last one goes.
std::string normalised(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::vector<Token> run() {
    while (position_ < text_.size()) read_data();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  Place place() const { return {name_, line_}; }
  bool at(std::string_view expected) const { return text_.substr(position_).starts_with(expected); }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t size) {
    line_ += static_cast<int>(std::ranges::count(text_.substr(position_, size), '\n'));
    position_ += size;
  }
  void skip_space() { advance(leading_space(text_.substr(position_))); }

  // Text up to the next tag, and the tag.
  void read_data() {
    const std::size_t tag = find_tag();
    if (tag == text_.size()) {
      add_data(tag);
      return;
    }
    const char kind = text_[tag + 1];
    if (const RawTag raw = raw_tag(tag, "raw"); raw.size > 0) {
      add_data(kept_end(tag, kind, raw.begin_sign));
      advance(tag - position_ + raw.size);
      read_raw();
      return;
    }
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
    const bool signed_tag = sign == '-' || sign == '+';
    add_data(kept_end(tag, kind, sign));
    advance(tag - position_ + 2 + (signed_tag ? 1 : 0));
    if (kind == '#') {
      skip_comment();
    } else {
      read_tag(kind);
    }
    at_line_start_ = text_[position_ - 1] == '\n';
  }

  // {% raw %} and {% endraw %}, between which there are no other tags.
  struct RawTag {
    std::size_t size = 0;  // with the white space after it that is removed; 0: it is another tag
    char begin_sign = ' ';
  };
  RawTag raw_tag(std::size_t begin, std::string_view word) const {
    std::string_view rest = text_.substr(begin);
    if (!rest.starts_with("{%")) return {};
    rest.remove_prefix(2);
    RawTag tag;
    if (rest.starts_with('-') || rest.starts_with('+')) {
      tag.begin_sign = rest[0];
      rest.remove_prefix(1);
    }
    rest.remove_prefix(leading_space(rest));
    if (!rest.starts_with(word)) return {};
    rest.remove_prefix(word.size());
    rest.remove_prefix(leading_space(rest));
    const bool ends = word == "endraw";
    if (rest.starts_with("-%}")) {
      rest.remove_prefix(3);
      rest.remove_prefix(leading_space(rest));
    } else if (rest.starts_with("%}")) {
      rest.remove_prefix(2);
      if (ends && rest.starts_with('\n')) rest.remove_prefix(1);
    } else if (ends && rest.starts_with("+%}")) {
      rest.remove_prefix(3);
    } else {
      return {};
    }
    tag.size = text_.size() - begin - rest.size();
    return tag;
  }

  void read_raw() {
    const Place opened = place();
    at_line_start_ = text_[position_ - 1] == '\n';
    if (position_ == text_.size()) return;  // Jinja takes a tag at the very end for closed
    for (std::size_t end = text_.find("{%", position_); end != std::string_view::npos;
         end = text_.find("{%", end + 2)) {
      const RawTag tag = raw_tag(end, "endraw");
      if (tag.size == 0) continue;
      add_data(kept_end(end, '%', tag.begin_sign));
      advance(end - position_ + tag.size);
      at_line_start_ = text_[position_ - 1] == '\n';
      return;
    }
    fail_syntax(opened, "the tag 'raw' is not closed");
  }

  std::size_t find_tag() const {
    std::size_t found = position_;
    while ((found = text_.find('{', found)) != std::string_view::npos) {
      const char next = found + 1 < text_.size() ? text_[found + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') return found;
      ++found;
    }
    return text_.size();
  }

  // Where the text before a tag ends after white space control.
  std::size_t kept_end(std::size_t tag, char kind, char sign) const {
    const std::string_view before = text_.substr(position_, tag - position_);
    if (sign == '-') return position_ + size_without_trailing_space(before);
    if (sign == '+' || kind == '{') return tag;
    // lstrip_blocks: nothing but white space since the line began.
    const std::size_t line_break = before.rfind('\n');
    if (line_break == std::string_view::npos && !at_line_start_) return tag;
    const std::size_t begin = line_break == std::string_view::npos ? 0 : line_break + 1;
    const bool blank = leading_space(before.substr(begin)) == before.size() - begin;
    return blank ? position_ + begin : tag;
  }

  void add_data(std::size_t end) {
    if (end > position_) {
      add(TokenKind::data, std::string(text_.substr(position_, end - position_)));
    }
    advance(end - position_);
  }

  void skip_comment() {
    const std::size_t end = text_.find("#}", position_);
    if (end == std::string_view::npos) fail_syntax(place(), "the comment {{# is not closed");
    const char sign = end > position_ ? text_[end - 1] : ' ';
    advance(end - position_ + 2);
    end_of_tag(sign);
  }

  // What the end of a comment or statement removes after it: trim_blocks, or all white space.
  void end_of_tag(char sign) {
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && at("\n")) {
      advance(1);
    }
  }

  void read_tag(char kind) {
    const bool statement = kind == '%';
    const int opened = line_;
    add(statement ? TokenKind::statement_begin : TokenKind::print_begin, "");
    for (;;) {
      skip_space();
      if (position_ == text_.size()) {
        fail_syntax({name_, opened}, "the tag {} is not closed", statement ? "{%" : "{{");
      }
      if (brackets_.empty() && read_end(statement)) return;
      read_token();
    }
  }

  bool read_end(bool statement) {
    const std::string_view end = statement ? "%}" : "}}";
    const TokenKind kind = statement ? TokenKind::statement_end : TokenKind::print_end;
    char sign = ' ';
    if (!at(end)) {
      sign = text_[position_];
      const bool is_sign = sign == '-' || (sign == '+' && statement);
      if (!is_sign || !text_.substr(position_ + 1).starts_with(end)) return false;
      advance(1);
    }
    advance(2);
    add(kind, "");
    if (statement || sign == '-') end_of_tag(sign);
    return true;
  }

  void read_token() {
    const char c = text_[position_];
    if (is_name_start(c)) {
      read_name();
    } else if (is_ascii_digit(c)) {
      read_number();
    } else if (c == '\'' || c == '"') {
      read_string(c);
    } else {
      read_operator();
    }
  }

  void read_name() {
    std::size_t end = position_;
    while (end < text_.size() && (is_name_start(text_[end]) || is_ascii_digit(text_[end]))) ++end;
    take(TokenKind::name, end);
  }

  void take(TokenKind kind, std::size_t end) {
    add(kind, std::string(text_.substr(position_, end - position_)));
    advance(end - position_);
  }

  std::size_t end_of_digits(std::size_t begin) const {
    while (begin < text_.size() && is_ascii_digit(text_[begin])) ++begin;
    return begin;
  }

  void read_number() {
    // In `a.0.1` there are two whole numbers.
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::operation &&
                           tokens_.back().text == ".";
    std::size_t end = end_of_digits(position_);
    const auto digit_at = [&](std::size_t i) {
      return i < text_.size() && is_ascii_digit(text_[i]);
    };
    bool real = false;
    if (!after_dot && end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
      end = end_of_digits(end + 1);
      real = true;
    }
    if (!after_dot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const bool sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
      const std::size_t digits = end + (sign ? 2 : 1);
      if (digit_at(digits)) {
        end = end_of_digits(digits);
        real = true;
      }
    }
    if (end < text_.size() && is_name_start(text_[end])) {
      fail_syntax(place(), "'{}' is not a number",
                  shortened(text_.substr(position_, end + 1 - position_)));
    }
    take(real ? TokenKind::real : TokenKind::integer, end);
  }

  void read_string(char quote) {
    std::size_t end = position_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_syntax(place(), "the string {} is not closed", quote);
    add(TokenKind::string,
        decode_string_literal(text_.substr(position_ + 1, end - position_ - 1), place()));
    advance(end + 1 - position_);
  }

  void read_operator() {
    for (const std::string_view operation : operators) {
      if (!at(operation)) continue;
      balance(operation[0]);
      take(TokenKind::operation, position_ + operation.size());
      return;
    }
    fail_syntax(place(), "unexpected '{}'",
                text_.substr(position_, character_size(text_, position_)));
  }

  // While a bracket is open, `}}` closes dictionaries, not the tag.
  void balance(char c) {
    if (c == '(') brackets_ += ')';
    if (c == '[') brackets_ += ']';
    if (c == '{') brackets_ += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets_.empty() || brackets_.back() != c) fail_syntax(place(), "unexpected '{}'", c);
    brackets_.pop_back();
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::string brackets_;  // the closing ones that are expected
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, std::string_view name) {
  const std::string text = normalised(source);
  return Lexer(text, name).run();
}

}  // namespace heed::chat
