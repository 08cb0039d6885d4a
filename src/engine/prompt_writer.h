// The tokens of a prompt of which only some parts may spell special tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace heed {

// Text between two special tokens is encoded as one, whatever parts it came in.
class PromptWriter {
 public:
  explicit PromptWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void write_text(std::string_view text) { text_ += text; }  // special tokens are plain text
  void write_template(std::string_view text);                // special tokens become their ids

  std::vector<std::int32_t> finish();

 private:
  struct Special {
    std::size_t begin = 0;
    const AddedToken* token = nullptr;  // none: `begin` is the end of the text
  };
  Special next_special(std::string_view text) const;
  void flush();

  const Tokenizer& tokenizer_;
  std::string text_;  // not yet encoded
  std::vector<std::int32_t> tokens_;
};

}  // namespace heed
