#include "tokenizer/added_token_matcher.h"

#include <algorithm>

#include "tokenizer/character_class.h"
#include "tokenizer/utf8.h"

namespace heed {
namespace {

unsigned char first_byte(const AddedToken& token) {
  return static_cast<unsigned char>(token.content.front());
}

// The character that ends at `end` (> 0).
Utf8Character character_before(std::string_view text, std::size_t end) {
  for (std::size_t length = 2; length <= 4 && length <= end; ++length) {
    const Utf8Character character = read_utf8(text, end - length);
    if (character.valid && character.length == length) return character;
  }
  return read_utf8(text.substr(0, end), end - 1);
}

bool is_inside_word(std::string_view text, std::size_t begin, std::size_t end) {
  const auto continues = [](const Utf8Character& character) {
    return character.valid && is_word_character(character.code_point);
  };
  return (begin > 0 && continues(character_before(text, begin))) ||
         (end < text.size() && continues(read_utf8(text, end)));
}

bool holds_ascii_space(std::string_view text) {
  return text.find_first_of(" \t\n\v\f\r") != std::string_view::npos;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens, SpaceRole space)
    : space_(space), tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& left, const AddedToken& right) {
    if (first_byte(left) != first_byte(right)) return first_byte(left) < first_byte(right);
    if (left.content.size() != right.content.size()) {
      return left.content.size() > right.content.size();
    }
    return left.content < right.content;
  });
  pairs_.resize(tokens_.empty() ? 0 : 65536);
  for (const AddedToken& token : tokens_) {
    ++first_[first_byte(token) + 1];
    const auto begin = pairs_.begin() + 256 * first_byte(token);
    if (token.content.size() == 1) {
      std::fill(begin, begin + 256, true);
    } else {
      begin[static_cast<unsigned char>(token.content[1])] = true;
    }
  }
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
  for (const AddedToken& token : tokens_) {
    if (token.strip_right || holds_ascii_space(std::string_view(token.content).substr(1))) {
      crossing_.push_back(token);
    }
  }
}

bool AddedTokenMatcher::strips(const Utf8Character& character) const {
  if (character.code_point == ' ') return space_ == SpaceRole::white_space;
  return character.valid && character_class(character.code_point) == CharacterClass::space;
}

std::size_t AddedTokenMatcher::spaces_before(std::string_view text, std::size_t end) const {
  while (end > 0) {
    const Utf8Character character = character_before(text, end);
    if (!strips(character)) break;
    end -= character.length;
  }
  return end;
}

std::size_t AddedTokenMatcher::spaces_after(std::string_view text, std::size_t begin) const {
  while (begin < text.size()) {
    const Utf8Character character = read_utf8(text, begin);
    if (!strips(character)) break;
    begin += character.length;
  }
  return begin;
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t position) const {
  const auto byte = static_cast<unsigned char>(text[position]);
  const auto next = static_cast<unsigned char>(position + 1 < text.size() ? text[position + 1] : 0);
  if (!pairs_[std::size_t{256} * byte + next]) return nullptr;
  for (std::uint32_t i = first_[byte]; i < first_[byte + 1]; ++i) {
    const std::string& content = tokens_[i].content;
    if (text.compare(position, content.size(), content) == 0) return &tokens_[i];
  }
  return nullptr;
}

std::vector<AddedTokenMatch> AddedTokenMatcher::find_all(std::string_view text) const {
  std::vector<AddedTokenMatch> matches;
  if (tokens_.empty()) return matches;
  const bool one_first_byte = first_byte(tokens_.front()) == first_byte(tokens_.back());
  std::size_t taken = 0;  // end of the last match
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
    std::size_t begin = position;
    std::size_t end = position + token->content.size();
    position = end;
    if (token->single_word && is_inside_word(text, begin, end)) continue;
    // Only white space that no match has taken is looked at, so that all matches take linear time.
    begin = std::max(begin, taken);
    end = std::max(end, taken);
    if (token->strip_left) begin = taken + spaces_before(text.substr(taken), begin - taken);
    if (token->strip_right) end = spaces_after(text, end);
    taken = end;
    matches.push_back({begin, end, token->id});
  }
  return matches;
}

bool AddedTokenMatcher::may_end_at(std::string_view text, std::size_t position) const {
  const std::string_view before = text.substr(0, position);
  return std::ranges::any_of(
      tokens_, [&](const AddedToken& token) { return before.ends_with(token.content); });
}

bool AddedTokenMatcher::may_cut(std::string_view text, std::size_t position) const {
  for (const AddedToken& token : crossing_) {
    const std::size_t size = token.content.size();
    for (std::size_t before = 1; before < size + token.strip_right; ++before) {
      if (before <= position && text.compare(position - before, size, token.content) == 0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace heed
