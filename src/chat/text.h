// Strings of a template: UTF-8 in which every byte knows whether it was written by the template or
// came with the conversation, so that a message cannot forge the special tokens of a template.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::chat {

enum class Origin : char {
  chat_template,
  conversation,
  end_mark,  // put after the last message to find its end; never in rendered text
};

class Text {
 public:
  Text() = default;
  explicit Text(std::string_view bytes, Origin origin = Origin::chat_template);

  std::string_view bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  Origin origin(std::size_t byte) const { return static_cast<Origin>(origins_[byte]); }
  // Whether `escape` or `safe` made it HTML, so that `+` and `%` escape what they add to it.
  bool is_markup() const { return is_markup_; }
  Text as_markup() const;

  Text part(std::size_t begin, std::size_t size = std::string_view::npos) const;  // stays markup
  void append(const Text& other);
  void append(const Text& other, std::size_t begin, std::size_t size);
  void append(std::string_view bytes, Origin origin = Origin::chat_template);

 private:
  std::string bytes_;
  std::string origins_;  // one Origin for each byte
  bool is_markup_ = false;
};

// Characters are code points; a byte that is not valid UTF-8 counts as a character of its own.
std::size_t character_size(std::string_view text, std::size_t begin);
char32_t character_at(std::string_view text, std::size_t begin);  // an invalid byte: U+FFFD
std::size_t character_count(std::string_view text);
// Where the character `count` after the one at `begin` begins, or the text ends.
std::size_t offset_after(std::string_view text, std::size_t begin, std::size_t count);
// Where each character begins, and the end of the text.
std::vector<std::size_t> character_offsets(std::string_view text);
void append_character(std::string& text, char32_t character);

// Where `wanted` begins, at `from` or after it, and where it last begins; npos if nowhere. Both
// take linear time, whatever the texts are.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);
std::size_t find_last_text(std::string_view text, std::string_view wanted);

// A line of str.splitlines(): bytes [begin, end), and the next line at `next`.
struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t next = 0;
};
Line line_at(std::string_view text, std::size_t begin);

// What Python's str.isspace() holds for.
bool is_space(char32_t character);

enum class Side { left, right, both };

// Without `characters`: white space is removed; else all of those characters.
Text strip(const Text& text, Side side, std::optional<std::string_view> characters = std::nullopt);

// The number of bytes before the white space at the end of a text.
std::size_t size_without_trailing_space(std::string_view text);
// The number of bytes of white space at the beginning of a text.
std::size_t leading_space(std::string_view text);

// Up to `max_count` occurrences from the left, which do not overlap. An empty `old` stands before
// every character and at the end.
Text replace(const Text& text, std::string_view old, const Text& replacement,
             std::size_t max_count);

enum class Letters {
  upper,
  lower,
  swapped,       // lower case in upper case, and the other way around
  folded,        // str.casefold()
  capitalized,   // the first character in title case, all others in lower case
  python_title,  // str.title(): a word is a run of letters
  jinja_title,   // the filter: a word begins after white space, a hyphen or an opening bracket
};
Text change_case(const Text& text, Letters letters);

// As Python's str.isalpha(), isdecimal(), isdigit() and isnumeric() of one character.
bool is_letter(char32_t character);
bool is_decimal(char32_t character);
bool is_digit(char32_t character);
bool is_numeric(char32_t character);
bool is_upper(char32_t character);
bool is_lower(char32_t character);
bool is_title(char32_t character);
bool is_printable(char32_t character);

}  // namespace heed::chat
