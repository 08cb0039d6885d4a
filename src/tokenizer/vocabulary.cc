#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/token_trie.h"

namespace heed {

void require_sought_size(std::string_view token, std::int64_t id, std::string_view source) {
  require(token.size() <= longest_sought_token, ErrorCode::unsupported,
          "{}: the token {} ({}) has {} bytes; supported are up to {}", source, id,
          in_quotes(token), token.size(), longest_sought_token);
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::vector<AddedToken> added,
                       std::string_view source)
    : added_(std::move(added)) {
  require(!tokens.empty() && tokens.size() <= INT32_MAX, ErrorCode::corrupt_data,
          "{}: a vocabulary of {} tokens; expected 1 to {}", source, tokens.size(), INT32_MAX);
  begins_.reserve(tokens.size() + 1);
  for (const std::string& token : tokens) {
    begins_.push_back(bytes_.size());
    bytes_ += token;
  }
  begins_.push_back(bytes_.size());

  std::sort(added_.begin(), added_.end(),
            [](const AddedToken& left, const AddedToken& right) { return left.id < right.id; });
  std::set<std::string_view> seen;
  for (const AddedToken& token : added_) {
    const bool is_known =
        token.id >= 0 && token.id < size() &&
        (bytes(token.id) == token.content || bytes(token.id) == with_spaces(token.content));
    require(is_known, ErrorCode::corrupt_data,
            "{}: the added token {} has the id {} of another token", source,
            in_quotes(token.content), token.id);
    require(!token.content.empty() && is_valid_utf8(token.content), ErrorCode::corrupt_data,
            "{}: the added token {} is {}; expected UTF-8 text", source, token.id,
            in_quotes(token.content));
    require_sought_size(token.content, token.id, source);
    require(seen.insert(token.content).second, ErrorCode::corrupt_data,
            "{}: the added token {} is listed twice", source, in_quotes(token.content));
  }
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  require(id >= 0 && id < size(), ErrorCode::invalid_argument,
          "token id {} is outside this tokenizer's vocabulary of {} tokens", id, size());
  return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
}

const AddedToken* Vocabulary::find_added(std::int32_t id) const {
  const auto found = std::lower_bound(
      added_.begin(), added_.end(), id,
      [](const AddedToken& token, std::int32_t wanted) { return token.id < wanted; });
  return found != added_.end() && found->id == id ? &*found : nullptr;
}

const AddedToken* Vocabulary::find_added(std::string_view content) const {
  const auto found = std::ranges::find(added_, content, &AddedToken::content);
  return found != added_.end() ? &*found : nullptr;
}

}  // namespace heed
