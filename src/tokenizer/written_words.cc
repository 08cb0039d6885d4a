#include "tokenizer/written_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/character_class.h"

namespace heed {
namespace {

constexpr char32_t typographic_apostrophe = 0x2019;
constexpr std::string_view typographic_apostrophe_bytes = "\xE2\x80\x99";

// What a character is to words.
enum class WordRole : std::uint8_t { other, letter, mark, digit, whole, apostrophe, starter };

// Blocks of scripts that put no spaces between words.
constexpr std::array<std::pair<char32_t, char32_t>, 10> unspaced_scripts{{
    {0x0E00, 0x0EFF},    // Thai, Lao
    {0x0F00, 0x0FFF},    // Tibetan
    {0x1000, 0x109F},    // Myanmar
    {0x1780, 0x17FF},    // Khmer
    {0x3005, 0x3007},    // iteration mark, zero
    {0x3041, 0x30FF},    // Hiragana, Katakana
    {0x31F0, 0x31FF},    // Katakana extensions
    {0x3400, 0x9FFF},    // Han
    {0xF900, 0xFAFF},    // Han, compatibility
    {0x20000, 0x3FFFF},  // Han, extensions
}};

bool starts_sentence(char32_t code_point) {
  constexpr std::u32string_view starters =
      U"\n\r.!?:\"\u2026\u201C\u201D\u201E\u2018\u00AB\u00BB\u00BF\u00A1\u3002\uFF01\uFF1F";
  return starters.find(code_point) != std::u32string_view::npos;
}

WordRole role_beyond_ascii(char32_t code_point) {
  if (code_point == typographic_apostrophe) return WordRole::apostrophe;
  switch (character_class(code_point)) {
    case CharacterClass::letter:
      return is_unspaced_script(code_point) ? WordRole::whole : WordRole::letter;
    case CharacterClass::number: return WordRole::digit;
    default: break;
  }
  if (letter_case(code_point) != LetterCase::none) return WordRole::mark;
  return starts_sentence(code_point) ? WordRole::starter : WordRole::other;
}

WordRole role_of(const Utf8Character& character) {
  if (!character.valid) return WordRole::other;
  if (character.code_point >= 0x80) return role_beyond_ascii(character.code_point);
  switch (static_cast<CharacterClass>(ascii_class[character.code_point])) {
    case CharacterClass::letter: return WordRole::letter;
    case CharacterClass::number: return WordRole::digit;
    default: break;
  }
  if (character.code_point == '\'') return WordRole::apostrophe;
  if (character.code_point == '_') return WordRole::digit;
  return starts_sentence(character.code_point) ? WordRole::starter : WordRole::other;
}

// The end of a tag such as <|endoftext|> at `position`, or `position` itself.
std::size_t tag_end(std::string_view text, std::size_t position) {
  constexpr std::size_t longest = 64;
  if (text.substr(position, 2) != "<|") return position;
  const std::size_t close = text.substr(position, longest).find("|>", 2);
  return close == std::string_view::npos ? position : position + close + 2;
}

// The end of the run of letters, marks, digits and inner apostrophes from `position` on, and
// whether it has a digit.
struct WordRun {
  std::size_t end = 0;
  bool has_digit = false;
};

WordRun word_run(std::string_view text, std::size_t position) {
  WordRun run{.end = position};
  while (run.end < text.size()) {
    const Utf8Character character = read_utf8(text, run.end);
    WordRole role = role_of(character);
    const std::size_t next = run.end + character.length;
    if (role == WordRole::apostrophe && next < text.size() &&
        role_of(read_utf8(text, next)) == WordRole::letter) {
      role = WordRole::letter;
    }
    if (role != WordRole::letter && role != WordRole::mark && role != WordRole::digit) break;
    run.has_digit = run.has_digit || role == WordRole::digit;
    run.end = next;
  }
  return run;
}

}  // namespace

void for_each_written_word(std::string_view text,
                           const std::function<void(const WrittenWord&)>& visit) {
  bool begins_sentence = true;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = tag_end(text, i); end > i) {
      begins_sentence = true;
      i = end;
      continue;
    }
    const Utf8Character character = read_utf8(text, i);
    const WordRole role = role_of(character);
    if (role == WordRole::whole) {
      std::size_t end = i + character.length;
      for (; end < text.size();) {
        const Utf8Character next = read_utf8(text, end);
        if (role_of(next) != WordRole::mark) break;
        end += next.length;
      }
      visit({.begin = i, .end = end, .begins_sentence = begins_sentence});
      begins_sentence = false;
      i = end;
    } else if (role == WordRole::letter || role == WordRole::digit) {
      const WordRun run = word_run(text, i);
      if (!run.has_digit) {
        visit({.begin = i, .end = run.end, .begins_sentence = begins_sentence});
      }
      begins_sentence = false;
      i = run.end;
    } else {
      begins_sentence = begins_sentence || role == WordRole::starter;
      i += character.length;
    }
  }
}

bool is_unspaced_script(char32_t code_point) {
  return code_point >= unspaced_scripts.front().first &&
         std::ranges::any_of(unspaced_scripts, [&](const auto& range) {
           return code_point >= range.first && code_point <= range.second;
         });
}

std::size_t visible_character_end(std::string_view text, std::size_t position) {
  const Utf8Character first = read_utf8(text, position);
  std::size_t end = position + first.length;
  if (!first.valid) return end;
  utf8proc_int32_t state = 0;
  for (auto before = static_cast<utf8proc_int32_t>(first.code_point); end < text.size();) {
    const Utf8Character next = read_utf8(text, end);
    const auto code_point = static_cast<utf8proc_int32_t>(next.code_point);
    if (!next.valid || utf8proc_grapheme_break_stateful(before, code_point, &state)) break;
    before = code_point;
    end += next.length;
  }
  return end;
}

std::size_t find_apostrophe(std::string_view word) {
  const std::size_t plain = word.rfind('\''),
                    typographic = word.rfind(typographic_apostrophe_bytes);
  if (plain == std::string_view::npos) return typographic;
  if (typographic == std::string_view::npos) return plain;
  return std::max(plain, typographic);
}

}  // namespace heed
