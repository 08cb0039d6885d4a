// How published byte-level tokenizers split a text into words: by regular expressions, or by steps
// that one expression says as well.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace heed {

enum class WordPattern {
  gpt2,    // also GPT-NeoX and Pythia
  llama3,  // also cl100k of GPT-4
  qwen2,   // also Qwen3
  o200k,   // GPT-4o
  tekken,  // Mistral NeMo and later
  // Digits are words apart, one each or in runs (the step Digits), and GPT-2's are found in the
  // text between them.
  gpt2_digits,  // StarCoder2
  gpt2_numbers,
};

inline constexpr std::array word_patterns = {
    WordPattern::gpt2,   WordPattern::llama3,      WordPattern::qwen2,       WordPattern::o200k,
    WordPattern::tekken, WordPattern::gpt2_digits, WordPattern::gpt2_numbers};

// Whether it is the step Digits before GPT-2's pattern.
inline bool sets_digits_apart(WordPattern pattern) {
  return pattern == WordPattern::gpt2_digits || pattern == WordPattern::gpt2_numbers;
}

// The pattern as tokenizer.json has it; of those that set digits apart, what their steps do.
std::string_view word_pattern_text(WordPattern pattern);

std::optional<WordPattern> find_word_pattern(std::string_view text);

// Whether a text may be split here without changing its words: before ASCII white space after
// another kind of character. Only GPT-2's words, and those that set digits apart, may begin with a
// line break there.
bool is_word_boundary(WordPattern pattern, std::string_view text, std::size_t position);

}  // namespace heed
