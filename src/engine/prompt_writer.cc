#include "engine/prompt_writer.h"

namespace heed {

void PromptWriter::write_template(std::string_view text) {
  if (text.empty()) return;
  const std::size_t begin = text_.size();
  text_ += text;
  if (!template_.empty() && template_.back().end == begin) {
    template_.back().end = text_.size();
  } else {
    template_.push_back({begin, text_.size()});
  }
}

std::vector<std::int32_t> PromptWriter::finish() const {
  return tokenizer_.encode(text_, {.special_ranges = template_});
}

}  // namespace heed
