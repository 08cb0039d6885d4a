#include "tokenizer/words.h"

#include "base/error.h"
#include "base/utf8.h"

namespace heed {
namespace {

bool is_punctuation_at(std::string_view text, std::size_t position) {
  if (position >= text.size()) return false;
  const Utf8Character character = read_utf8(text, position);
  return character.valid && is_bert_punctuation(character.code_point);
}

// Where the character begins that a position lies in.
std::size_t character_begin(std::string_view text, std::size_t position) {
  for (std::size_t back = 1; back <= 3 && back <= position; ++back) {
    const Utf8Character character = read_utf8(text, position - back);
    if (character.valid && character.length > back) return position - back;
  }
  return position;
}

// Bytes whose letters are numbers: digits, and ²³¹¼½¾.
bool stands_for_number(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return (value >= '0' && value <= '9') || value == 0xB2 || value == 0xB3 || value == 0xB9 ||
         (value >= 0xBC && value <= 0xBE);
}

bool begins_three_digits(std::string_view text) {
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  return text.size() >= 3 && is_digit(text[0]) && is_digit(text[1]) && is_digit(text[2]);
}

CharacterClass class_of(const Utf8Character& character) {
  return character.valid ? character_class(character.code_point) : CharacterClass::other;
}

bool is_line_break(char byte) { return byte == '\r' || byte == '\n'; }

std::size_t character_end(std::string_view text, std::size_t position) {
  if (static_cast<unsigned char>(text[position]) < 0x80) return position + 1;
  return position + read_utf8(text, position).length;
}

// End of the contraction at an apostrophe, in any case, or its begin where there is none. Of the
// characters beyond ASCII only the long s, U+017F, is a letter of these in another case.
std::size_t contraction_end(std::string_view text, std::size_t begin) {
  constexpr std::string_view long_s = "\u017F";
  const std::string_view rest = text.substr(begin + 1);
  if (rest.starts_with(long_s)) return begin + 1 + long_s.size();
  const auto lower = [&](std::size_t i) {
    return i < rest.size() ? static_cast<char>(rest[i] | 0x20) : '\0';
  };
  switch (lower(0)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return begin + 2;
    case 'r':
    case 'v': return lower(1) == 'e' ? begin + 3 : begin;
    case 'l': return lower(1) == 'l' ? begin + 3 : begin;
    default: return begin;
  }
}

std::size_t number_end(std::string_view text, std::size_t position, int max_digits) {
  for (int digit = 0; digit < max_digits && position < text.size() &&
                      class_at(text, position) == CharacterClass::number;
       ++digit) {
    position = character_end(text, position);
  }
  return position;
}

// [^\s\p{L}\p{N}]+[\r\n]*, or with a slash among the line breaks.
std::size_t symbols_end(std::string_view text, std::size_t position, bool slash) {
  position = run_end(text, position, CharacterClass::other);
  while (position < text.size() &&
         (is_line_break(text[position]) || (slash && text[position] == '/'))) {
    ++position;
  }
  return position;
}

// \s*[\r\n]+|\s+(?!\S)|\s+: through the last line break of the white space; without any, as
// space_word_end().
std::size_t spaces_end(std::string_view text, std::size_t begin) {
  std::size_t after_break = begin;
  std::size_t last = begin;  // where the last character of the run begins
  std::size_t end = begin;
  while (end < text.size() && class_at(text, end) == CharacterClass::space) {
    last = end;
    end = character_end(text, end);
    if (is_line_break(text[last])) after_break = end;
  }
  if (after_break > begin) return after_break;
  return end == text.size() || last == begin ? end : last;
}

// What both families of patterns do with a character that begins no word of letters.
std::size_t other_word_end(std::string_view text, std::size_t begin, int max_digits, bool slash) {
  const CharacterClass kind = class_at(text, begin);
  if (kind == CharacterClass::number) return number_end(text, begin, max_digits);
  if (kind == CharacterClass::other) return symbols_end(text, begin, slash);
  if (text[begin] == ' ' && begin + 1 < text.size() &&
      class_at(text, begin + 1) == CharacterClass::other) {
    return symbols_end(text, begin + 1, slash);
  }
  return spaces_end(text, begin);
}

LetterCase case_at(std::string_view text, std::size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte >= 'a' && byte <= 'z') return LetterCase::lower;
  if (byte >= 'A' && byte <= 'Z') return LetterCase::upper;
  if (byte < 0x80) return LetterCase::none;
  const Utf8Character character = read_utf8(text, position);
  return character.valid ? letter_case(character.code_point) : LetterCase::none;
}

// End of the match of U*W+ or else of U+W* at `begin`; `begin` where neither matches.
std::size_t cased_letters_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  std::size_t after_either = begin;  // end of the last character of the run that is in U and in W
  LetterCase found = LetterCase::none;
  while (end < text.size()) {
    found = case_at(text, end);
    if (found != LetterCase::upper && found != LetterCase::either) break;
    end = character_end(text, end);
    if (found == LetterCase::either) after_either = end;
  }
  if (end == text.size() || found != LetterCase::lower) {
    // W+ has only what U* gives back; where that is nothing, U+ takes the whole run.
    return after_either > begin ? after_either : end;
  }
  while (end < text.size()) {
    found = case_at(text, end);
    if (found != LetterCase::lower && found != LetterCase::either) break;
    end = character_end(text, end);
  }
  return end;
}

}  // namespace

CharacterClass class_at_beyond_ascii(std::string_view text, std::size_t position) {
  return class_of(read_utf8(text, position));
}

std::size_t run_end_beyond_ascii(std::string_view text, std::size_t position,
                                 CharacterClass wanted) {
  while (position < text.size()) {
    const std::uint8_t known = ascii_class[static_cast<unsigned char>(text[position])];
    if (known == not_ascii) {
      const Utf8Character character = read_utf8(text, position);
      if (class_of(character) != wanted) break;
      position += character.length;
    } else {
      if (known != static_cast<std::uint8_t>(wanted)) break;
      ++position;
    }
  }
  return position;
}

std::size_t space_word_end(std::string_view text, std::size_t position) {
  std::size_t last = position;  // where the last white-space character of the run begins
  std::size_t end = position;
  while (end < text.size()) {
    const Utf8Character character = read_utf8(text, end);
    if (class_of(character) != CharacterClass::space) break;
    last = end;
    end += character.length;
  }
  return end == text.size() || last == position ? end : last;
}

bool is_word_boundary(std::string_view text, std::size_t position) {
  if (position == 0 || position >= text.size()) return true;
  constexpr auto space = static_cast<std::uint8_t>(CharacterClass::space);
  if (ascii_class[static_cast<unsigned char>(text[position])] != space) return false;
  const std::uint8_t before = ascii_class[static_cast<unsigned char>(text[position - 1])];
  if (before != not_ascii) return before != space;
  // White space beyond ASCII takes two or three bytes. UTF-8 shows where a character begins, so
  // such bytes are that character in any context.
  for (std::size_t length = 2; length <= 3 && length <= position; ++length) {
    const Utf8Character character = read_utf8(text, position - length);
    if (character.valid && character.length == length &&
        class_of(character) == CharacterClass::space) {
      return false;
    }
  }
  return true;
}

std::string_view word_pattern_text(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::gpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case WordPattern::llama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case WordPattern::qwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case WordPattern::o200k:
      return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
             R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
             R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
             R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
             R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case WordPattern::tekken:
      return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
             R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
             R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case WordPattern::gpt2_digits:
      return R"(\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|)"
             R"(\s+(?=\p{N})|\s+(?!\S)|\s+)";
    case WordPattern::gpt2_numbers:
      return R"(\p{N}+|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|)"
             R"(\s+(?=\p{N})|\s+(?!\S)|\s+)";
    case WordPattern::falcon: return "";
  }
  fail(ErrorCode::internal, "word pattern {}", static_cast<int>(pattern));
}

std::optional<WordPattern> find_word_pattern(std::string_view text) {
  for (const WordPattern pattern : word_patterns) {
    if (word_pattern_text(pattern) == text) return pattern;
  }
  return std::nullopt;
}

bool is_word_boundary(WordPattern pattern, std::string_view text, std::size_t position) {
  const bool is_gpt2 =
      pattern == WordPattern::gpt2 || pattern == WordPattern::falcon || sets_digits_apart(pattern);
  if (!is_gpt2 && position < text.size() && (text[position] == '\r' || text[position] == '\n')) {
    return position == 0;
  }
  return is_word_boundary(text, position);
}

template <int max_digits>
std::size_t WordsOfLetters<max_digits>::word_end(std::string_view text, std::size_t begin) {
  if (text[begin] == '\'') {
    const std::size_t end = contraction_end(text, begin);
    if (end > begin) return end;
  }
  const CharacterClass kind = class_at(text, begin);
  if (kind == CharacterClass::letter) return run_end(text, begin, CharacterClass::letter);
  if (kind != CharacterClass::number && !is_line_break(text[begin])) {
    const std::size_t next = character_end(text, begin);
    if (next < text.size() && class_at(text, next) == CharacterClass::letter) {
      return run_end(text, next, CharacterClass::letter);
    }
  }
  return other_word_end(text, begin, max_digits, false);
}

template <int max_digits, Contractions contractions>
std::size_t WordsByCase<max_digits, contractions>::word_end(std::string_view text,
                                                            std::size_t begin) {
  // A mark could also be the optional character before the letters, but as it is in U and in W the
  // word ends in the same place.
  std::size_t first = begin;
  if (case_at(text, begin) == LetterCase::none && class_at(text, begin) != CharacterClass::number &&
      !is_line_break(text[begin])) {
    first = character_end(text, begin);
  }
  const std::size_t end = cased_letters_end(text, first);
  if (end == first) return other_word_end(text, begin, max_digits, true);
  if (contractions == Contractions::part_of_words && end < text.size() && text[end] == '\'') {
    return contraction_end(text, end);
  }
  return end;
}

namespace {

// Of the class of the character at `begin`, up to punctuation.
std::size_t run_before_punctuation(std::string_view text, std::size_t begin) {
  const CharacterClass kind = class_at(text, begin);
  if (kind != CharacterClass::other) return run_end(text, begin, kind);
  std::size_t end = begin;
  while (end < text.size() && class_at(text, end) == kind && !is_punctuation_at(text, end)) {
    end = character_end(text, end);
  }
  return end;
}

// End of GPT-2's word at a character, of a text that is cut around punctuation first.
std::size_t word_end_before_punctuation(std::string_view text, std::size_t begin) {
  if (is_punctuation_at(text, begin)) {
    std::size_t end = begin;
    while (is_punctuation_at(text, end)) end = character_end(text, end);
    return end;
  }
  if (class_at(text, begin) != CharacterClass::space) return run_before_punctuation(text, begin);
  const std::size_t end = run_end(text, begin, CharacterClass::space);
  if (end == text.size() || is_punctuation_at(text, end)) return end;
  if (text[begin] == ' ' && end == begin + 1) return run_before_punctuation(text, end);
  return space_word_end(text, begin);
}

}  // namespace

std::size_t FalconWords::word_end(std::string_view text, std::size_t begin) {
  const std::size_t last = word_end_before_punctuation(text, character_begin(text, begin));
  const bool is_number = stands_for_number(text[begin]);
  if (is_number && begins_three_digits(text.substr(begin, last - begin))) return begin + 3;
  std::size_t end = begin + 1;
  while (end < last && stands_for_number(text[end]) == is_number &&
         !(is_number && begins_three_digits(text.substr(end, last - end)))) {
    ++end;
  }
  return end;
}

// A digit ends the text between digits, so that white space before one is a whole word.
template <DigitWords digits>
std::size_t WordsBetweenDigits<digits>::word_end(std::string_view text, std::size_t begin) {
  const CharacterClass kind = class_at(text, begin);
  if (kind == CharacterClass::number) {
    return digits == DigitWords::single ? character_end(text, begin) : run_end(text, begin, kind);
  }
  if (kind == CharacterClass::space) {
    const std::size_t end = run_end(text, begin, kind);
    if (end < text.size() && class_at(text, end) == CharacterClass::number) return end;
  }
  return heed::word_end(text, begin);
}

template struct WordsOfLetters<3>;
template struct WordsOfLetters<1>;
template struct WordsByCase<3, Contractions::part_of_words>;
template struct WordsByCase<1, Contractions::apart>;
template struct WordsBetweenDigits<DigitWords::single>;
template struct WordsBetweenDigits<DigitWords::runs>;

}  // namespace heed
