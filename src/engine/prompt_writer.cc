#include "engine/prompt_writer.h"

namespace heed {

void PromptWriter::write_template(std::string_view text) {
  while (!text.empty()) {
    const auto [begin, token] = next_special(text);
    text_ += text.substr(0, begin);
    if (token == nullptr) return;
    flush();
    tokens_.push_back(token->id);
    text.remove_prefix(begin + token->content.size());
  }
}

std::vector<std::int32_t> PromptWriter::finish() {
  flush();
  return std::move(tokens_);
}

// The first special token in `text`, the longest of those that begin there.
PromptWriter::Special PromptWriter::next_special(std::string_view text) const {
  Special first{text.size(), nullptr};
  for (const AddedToken& token : tokenizer_.added_tokens()) {
    if (!token.special) continue;
    const std::size_t begin = text.find(token.content);
    if (begin == std::string_view::npos) continue;
    const bool longer = first.token != nullptr && begin == first.begin &&
                        token.content.size() > first.token->content.size();
    if (begin < first.begin || longer) first = {begin, &token};
  }
  return first;
}

void PromptWriter::flush() {
  const auto ids =
      tokenizer_.encode(text_, {.special_tokens = false, .continues = !tokens_.empty()});
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  text_.clear();
}

}  // namespace heed
