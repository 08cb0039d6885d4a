// A prompt of which only some parts may spell special tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace heed {

// The parts make one text, whose tokens are the tokenizer's.
class PromptWriter {
 public:
  explicit PromptWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void write_text(std::string_view text) { text_ += text; }  // special tokens are plain text
  void write_template(std::string_view text);                // special tokens become their ids

  std::vector<std::int32_t> finish() const;

 private:
  const Tokenizer& tokenizer_;
  std::string text_;
  std::vector<TextRange> template_;  // of text_; no two touch
};

}  // namespace heed
