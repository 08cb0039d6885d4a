#include "tokenizer/added_token_matcher.h"

#include <algorithm>

namespace heed {
namespace {

unsigned char first_byte(const AddedToken& token) {
  return static_cast<unsigned char>(token.content.front());
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& left, const AddedToken& right) {
    if (first_byte(left) != first_byte(right)) return first_byte(left) < first_byte(right);
    if (left.content.size() != right.content.size()) {
      return left.content.size() > right.content.size();
    }
    return left.content < right.content;
  });
  for (const AddedToken& token : tokens_) ++first_[first_byte(token) + 1];
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t position) const {
  const auto byte = static_cast<unsigned char>(text[position]);
  for (std::uint32_t i = first_[byte]; i < first_[byte + 1]; ++i) {
    if (text.compare(position, tokens_[i].content.size(), tokens_[i].content) == 0) {
      return &tokens_[i];
    }
  }
  return nullptr;
}

std::vector<AddedTokenMatch> AddedTokenMatcher::find_all(std::string_view text) const {
  std::vector<AddedTokenMatch> matches;
  if (tokens_.empty()) return matches;
  const bool one_first_byte = first_byte(tokens_.front()) == first_byte(tokens_.back());
  for (std::size_t position = 0; position < text.size();) {
    if (one_first_byte) {
      position = text.find(tokens_.front().content.front(), position);
      if (position == std::string_view::npos) break;
    }
    const AddedToken* token = longest_at(text, position);
    if (token == nullptr) {
      ++position;
      continue;
    }
    const std::size_t end = position + token->content.size();
    matches.push_back({position, end, token->id});
    position = end;
  }
  return matches;
}

}  // namespace heed
