#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"

namespace heed {

void require_sought_size(std::string_view token, std::int64_t id, std::string_view source) {
  require(token.size() <= max_sought_token, ErrorCode::unsupported,
          "{}: the token {} ({}) has {} bytes; supported are up to {}", source, id,
          in_quotes(token), token.size(), max_sought_token);
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

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens) : nodes_(1) {
  std::ranges::sort(tokens);
  std::size_t bytes = 0;
  for (const auto& [text, id] : tokens) bytes += text.size();
  check(bytes < UINT32_MAX, "the labels of a trie have fewer than 2^32 bytes");
  // Breadth first: the tokens [begin, end) share the first `depth` bytes, those of `node`.
  struct Range {
    std::size_t node;
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
  };
  std::vector<Range> ranges = {{0, 0, tokens.size(), 0}};
  for (std::size_t next = 0; next < ranges.size(); ++next) {
    auto [node, begin, end, depth] = ranges[next];
    if (begin < end && tokens[begin].first.size() == depth)
      nodes_[node].id = tokens[begin++].second;
    nodes_[node].first_child = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const std::string_view first = tokens[begin].first.substr(depth);
      std::size_t last = begin;
      while (last < end && tokens[last].first[depth] == first[0]) ++last;
      // What the first and the last have in common all between have, since they are sorted.
      const std::string_view other = tokens[last - 1].first.substr(depth);
      const auto parting = std::ranges::mismatch(first, other).in1;
      const auto size = static_cast<std::size_t>(parting - first.begin());
      ranges.push_back({nodes_.size(), begin, last, depth + size});
      nodes_.push_back({.label = static_cast<std::uint32_t>(labels_.size()),
                        .size = static_cast<std::uint32_t>(size),
                        .byte = static_cast<unsigned char>(first[0])});
      labels_ += first.substr(0, size);
      ++nodes_[node].children;
      begin = last;
    }
  }
  nodes_.shrink_to_fit();
}

std::size_t TokenTrie::child(std::size_t node, unsigned char byte) const {
  const auto first = nodes_.begin() + nodes_[node].first_child;
  const auto last = first + nodes_[node].children;
  const auto found =
      std::lower_bound(first, last, byte,
                       [](const Node& child, unsigned char wanted) { return child.byte < wanted; });
  return found != last && found->byte == byte ? static_cast<std::size_t>(found - nodes_.begin())
                                              : 0;
}

std::string with_metaspaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char byte : text) {
    if (byte == ' ') {
      result += metaspace_character;
    } else {
      result.push_back(byte);
    }
  }
  return result;
}

std::string with_spaces(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(metaspace_character)) {
      result.push_back(' ');
      i += metaspace_character.size();
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

std::string byte_token_text(int byte) { return fmt::format("<0x{:02X}>", byte); }

std::vector<std::string> metaspace_token_bytes(const MetaspaceVocabulary& vocabulary) {
  const auto& [tokens, added, byte_fallback] = vocabulary;
  std::unordered_set<std::string_view> added_texts;
  for (const AddedToken& token : added) added_texts.insert(token.content);
  std::unordered_map<std::string, char> byte_tokens;
  for (int byte = 0; byte < 256 && byte_fallback; ++byte) {
    byte_tokens.emplace(byte_token_text(byte), static_cast<char>(byte));
  }
  std::vector<std::string> bytes;
  bytes.reserve(tokens.size());
  for (const std::string& token : tokens) {
    const auto byte = byte_tokens.find(token);
    if (byte != byte_tokens.end() && !added_texts.contains(token)) {
      bytes.emplace_back(1, byte->second);
    } else {
      bytes.push_back(with_spaces(token));
    }
  }
  return bytes;
}

}  // namespace heed
