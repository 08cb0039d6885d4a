#include "tokenizer/added_token_matcher.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/character_class.h"

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

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens, SpaceRole space)
    : space_(space), tokens_(std::move(tokens)) {
  if (tokens_.empty()) return;
  pairs_.resize(65536);
  one_first_byte_ = true;
  std::unordered_set<std::string_view> seen;
  std::vector<std::pair<std::string_view, std::int32_t>> contents;
  for (const AddedToken& token : tokens_) {
    if (!seen.insert(token.content).second) continue;
    contents.emplace_back(token.content, static_cast<std::int32_t>(&token - tokens_.data()));
    longest_ = std::max(longest_, token.content.size());
    one_first_byte_ = one_first_byte_ && first_byte(token) == first_byte(tokens_.front());
    const auto begin = pairs_.begin() + 256 * first_byte(token);
    if (token.content.size() == 1) {
      std::fill(begin, begin + 256, true);
    } else {
      begin[static_cast<unsigned char>(token.content[1])] = true;
    }
  }
  trie_ = TokenTrie(std::move(contents));
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

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t position,
                                                const MayBeSpecial& may_be_special) const {
  const auto byte = static_cast<unsigned char>(text[position]);
  const auto next = static_cast<unsigned char>(position + 1 < text.size() ? text[position + 1] : 0);
  if (!pairs_[std::size_t{256} * byte + next]) return nullptr;
  const AddedToken* longest = nullptr;
  trie_.for_each_prefix(text.substr(position), [&](std::int32_t index, std::size_t size) {
    const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
    if (!token.special || !may_be_special || may_be_special(position, position + size)) {
      longest = &token;
    }
  });
  return longest;
}

std::vector<AddedTokenMatch> AddedTokenMatcher::find_all(std::string_view text,
                                                         const MayBeSpecial& may_be_special) const {
  std::vector<AddedTokenMatch> matches;
  if (tokens_.empty()) return matches;
  std::size_t taken = 0;  // end of the last match
  for (std::size_t position = 0; position < text.size();) {
    if (one_first_byte_) {
      position = text.find(tokens_.front().content.front(), position);
      if (position == std::string_view::npos) break;
    }
    const AddedToken* token = longest_at(text, position, may_be_special);
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

template <class Visit>
void AddedTokenMatcher::for_each_before(std::string_view text, std::size_t position,
                                        Visit&& visit) const {
  for (std::size_t begin = position - std::min(position, longest_); begin < position; ++begin) {
    trie_.for_each_prefix(text.substr(begin), [&](std::int32_t index, std::size_t size) {
      visit(tokens_[static_cast<std::size_t>(index)], begin + size);
    });
  }
}

bool AddedTokenMatcher::may_end_at(std::string_view text, std::size_t position) const {
  bool ends = false;
  for_each_before(text.substr(0, position), position,
                  [&](const AddedToken&, std::size_t end) { ends = ends || end == position; });
  return ends;
}

bool AddedTokenMatcher::may_cut(std::string_view text, std::size_t position) const {
  bool crosses = false;
  for_each_before(text, position, [&](const AddedToken& token, std::size_t end) {
    crosses = crosses || end > position || (end == position && token.strip_right);
  });
  return !crosses;
}

}  // namespace heed
