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

// Blocks of 256 code points; equal blocks (most of Unicode is one class for long) are kept once.
struct ClassTable {
  std::array<std::uint16_t, block_count> block_of{};
  std::vector<std::array<CharacterClass, block_size>> blocks;

  ClassTable() {
    for (int block = 0; block < block_count; ++block) {
      std::array<CharacterClass, block_size> classes;
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
};

}  // namespace

CharacterClass character_class(char32_t code_point) {
  static const ClassTable table;
  return table.blocks[table.block_of[code_point / block_size]][code_point % block_size];
}

}  // namespace heed
