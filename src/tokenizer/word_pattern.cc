#include "tokenizer/word_pattern.h"

#include "base/error.h"
#include "tokenizer/words.h"

namespace heed {

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
  const bool is_gpt2 = pattern == WordPattern::gpt2 || sets_digits_apart(pattern);
  if (!is_gpt2 && position < text.size() && (text[position] == '\r' || text[position] == '\n')) {
    return position == 0;
  }
  return is_word_boundary(text, position);
}

}  // namespace heed
