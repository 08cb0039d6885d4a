#include "tokenizer/character_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace heed {
namespace {

constexpr int block_size = 256;
constexpr int block_count = 0x110000 / block_size;

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

CharacterClass classify(char32_t code_point) {
  if (is_white_space(code_point)) return CharacterClass::space;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterClass::number;
    default: return CharacterClass::other;
  }
}

LetterCase classify_case(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return LetterCase::upper;
    case UTF8PROC_CATEGORY_LL: return LetterCase::lower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return LetterCase::either;
    default: return LetterCase::none;
  }
}

// Blocks of 256 code points; equal blocks (most of Unicode is one class for long) are kept once.
template <class Class>
struct ClassTable {
  std::array<std::uint16_t, block_count> block_of{};
  std::vector<std::array<Class, block_size>> blocks;

  explicit ClassTable(Class (*classify)(char32_t)) {
    for (int block = 0; block < block_count; ++block) {
      std::array<Class, block_size> classes;
      for (int i = 0; i < block_size; ++i) {
        classes[i] = classify(static_cast<char32_t>(block * block_size + i));
      }
      auto same = std::find(blocks.rbegin(), blocks.rend(), classes);
      if (same == blocks.rend()) {
        blocks.push_back(classes);
        same = blocks.rbegin();
      }
      block_of[block] = static_cast<std::uint16_t>(blocks.rend() - same - 1);
    }
  }

  Class of(char32_t code_point) const {
    return blocks[block_of[code_point / block_size]][code_point % block_size];
  }
};

}  // namespace

CharacterClass character_class(char32_t code_point) {
  static const ClassTable<CharacterClass> table(classify);
  return table.of(code_point);
}

LetterCase letter_case(char32_t code_point) {
  static const ClassTable<LetterCase> table(classify_case);
  return table.of(code_point);
}

bool is_word_character(char32_t code_point) {
  const auto within = [&](char32_t first, char32_t last) {
    return code_point >= first && code_point <= last;
  };
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    // Of category So, the circled and squared letters are alphabetic; of Cf, the two joiners join.
    case UTF8PROC_CATEGORY_SO:
      return within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) ||
             within(0x1F170, 0x1F189);
    case UTF8PROC_CATEGORY_CF: return within(0x200C, 0x200D);
    default: return letter_case(code_point) != LetterCase::none;
  }
}

bool is_bert_punctuation(char32_t code_point) {
  if (code_point < 0x80) {
    return code_point > ' ' && code_point != 0x7F &&
           ascii_class[code_point] == static_cast<std::uint8_t>(CharacterClass::other);
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return true;
    default: return false;
  }
}

}  // namespace heed
