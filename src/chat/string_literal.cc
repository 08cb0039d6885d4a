#include "chat/string_literal.h"

#include <charconv>

#include "chat/text.h"

namespace heed::chat {
namespace {

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

}  // namespace

std::string decode_string_literal(std::string_view text, Place place) {
  return Decoder(text, place).run();
}

}  // namespace heed::chat
