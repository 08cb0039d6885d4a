#include "tokenizer/text_preparation.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

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

// Calls visit(begin, end, match) for the parts between matches and the match after each; null
// after the last.
template <class Visit>
void for_each_part(std::size_t size, const std::vector<AddedTokenMatch>& matches, Visit&& visit) {
  std::size_t begin = 0;
  for (const AddedTokenMatch& match : matches) {
    visit(begin, match.begin, &match);
    begin = match.end;
  }
  visit(begin, size, static_cast<const AddedTokenMatch*>(nullptr));
}

MayBeSpecial special_rule(const PreparationOptions& options) {
  if (!options.special_tokens) return [](std::size_t, std::size_t) { return false; };
  if (!options.special_ranges) return {};
  return [ranges = *options.special_ranges](std::size_t begin, std::size_t end) {
    const auto after = std::ranges::partition_point(
        ranges, [&](const TextRange& range) { return range.begin <= begin; });
    return after != ranges.begin() && end <= std::prev(after)->end;
  };
}

// The same of a part of the text that begins at `begin`.
MayBeSpecial in_part(const MayBeSpecial& may, std::size_t begin) {
  if (!may) return {};
  return [&may, begin](std::size_t from, std::size_t to) { return may(begin + from, begin + to); };
}

}  // namespace

TextPreparation::TextPreparation(TextNormalisation normalisation,
                                 const std::vector<AddedToken>& added)
    : normalisation_(std::move(normalisation)) {
  std::vector<AddedToken> given;
  std::vector<AddedToken> normal;
  for (const AddedToken& token : added) {
    if (!token.normalized) {
      given.push_back(token);
      continue;
    }
    normal.push_back(token);
    normal.back().content = normalised(token.content, PartPlace::first).text();
    if (normal.back().content.empty()) normal.pop_back();  // its normaliser leaves nothing to find
  }
  given_ = AddedTokenMatcher(std::move(given));
  normalised_ =
      AddedTokenMatcher(std::move(normal), normalisation_.replaces_spaces ? SpaceRole::symbol
                                                                          : SpaceRole::white_space);
}

std::string_view TextPreparation::prepended_space() const {
  return normalisation_.replaces_spaces ? " " : metaspace_character;
}

// What the pre-tokenizer makes of a part between added tokens: U+2581 is the space from here on.
void TextPreparation::append_words(const ChangedText& part, TextRange range, PartPlace place,
                                   ChangedText& result) const {
  const std::string_view text = std::string_view(part.text()).substr(0, range.end);
  const std::string_view words = text.substr(range.begin);
  const bool begins_with_space = words.starts_with(' ') || words.starts_with(metaspace_character);
  if (prepends_missing(place) && !words.empty() && !begins_with_space) result.replace(0, " ");
  std::size_t begin = range.begin;
  while (normalisation_.metaspace && !normalisation_.replaces_spaces) {
    const std::size_t found = text.find(metaspace_character, begin);
    if (found == std::string_view::npos) break;
    result.append(part, begin, found);
    begin = found + metaspace_character.size();
    const TextRange source = part.source_of(found, begin);
    result.replace(source.end - source.begin, " ");
  }
  result.append(part, begin, range.end);
}

bool TextPreparation::prepends_missing(PartPlace place) const {
  switch (normalisation_.prepend_missing) {
    case PrependScheme::never: return false;
    case PrependScheme::first: return place == PartPlace::first;
    case PrependScheme::always: return place != PartPlace::continuation;
  }
  return false;
}

bool TextPreparation::prepends_to_parts() const {
  return normalisation_.steps == nullptr && normalisation_.metaspace &&
         normalisation_.prepend_always;
}

// A part between added tokens as the normaliser leaves it.
ChangedText TextPreparation::normalised(std::string_view part, PartPlace place) const {
  if (normalisation_.steps != nullptr) return normalisation_.steps->apply(part);
  ChangedText result;
  if (normalisation_.nfc) {
    append_nfc(part, result);
  } else if (normalisation_.metaspace) {
    result.reserve(part.size() + 1);
    if (prepends_to_parts() && place != PartPlace::continuation && !part.empty())
      result.replace(0, prepended_space());
    std::size_t begin = 0;
    while (normalisation_.replaces_spaces) {
      const std::size_t found = part.find(metaspace_character, begin);
      if (found == std::string_view::npos) break;
      result.keep(part.substr(begin, found - begin));
      result.replace(metaspace_character.size(), " ");
      begin = found + metaspace_character.size();
    }
    result.keep(part.substr(begin));
  } else {
    result.keep(part);
  }
  return result;
}

std::vector<AddedTokenMatch> TextPreparation::find(std::string_view text,
                                                   const MayBeSpecial& may) const {
  std::vector<AddedTokenMatch> given = given_.find_all(text, may);
  if (normalised_.empty()) return given;
  std::vector<AddedTokenMatch> all;
  for_each_part(
      text.size(), given, [&](std::size_t begin, std::size_t end, const AddedTokenMatch* match) {
        const std::string_view part = text.substr(begin, end - begin);
        for (const AddedTokenMatch& found : normalised_.find_all(part, in_part(may, begin))) {
          all.push_back({begin + found.begin, begin + found.end, found.id});
        }
        if (match != nullptr) all.push_back(*match);
      });
  return all;
}

// In the normalised text of a part; `may` is asked of what it was made from.
std::vector<AddedTokenMatch> TextPreparation::find_normalised(const ChangedText& part,
                                                              const MayBeSpecial& may) const {
  if (!may) return normalised_.find_all(part.text());
  // The tokens, normalised themselves, begin with the space that stands before every part; in the
  // text it may be any.
  const std::size_t prepended = prepends_to_parts() ? prepended_space().size() : 0;
  return normalised_.find_all(part.text(), [&](std::size_t begin, std::size_t end) {
    const TextRange source = part.source_of(begin + prepended, end);
    return may(source.begin, source.end);
  });
}

PreparedText TextPreparation::prepare(std::string_view text, PreparationOptions options) const {
  const MayBeSpecial may = special_rule(options);
  const bool may_change = normalisation_.metaspace || normalisation_.steps != nullptr ||
                          (normalisation_.nfc && may_change_in_nfc(text));
  const PartPlace first = options.continues ? PartPlace::continuation : PartPlace::first;
  if (!may_change) {
    return {text, find(text, may), first};
  }
  ChangedText result;
  result.reserve(text.size() + text.size() / 64 + 16);
  std::vector<AddedTokenMatch> matches;
  for_each_part(
      text.size(), given_.find_all(text, may),
      [&](std::size_t begin, std::size_t end, const AddedTokenMatch* match) {
        const PartPlace place = begin > 0 ? PartPlace::later : first;
        const ChangedText part = normalised(text.substr(begin, end - begin), place);
        for_each_part(
            part.text().size(), find_normalised(part, in_part(may, begin)),
            [&](std::size_t from, std::size_t to, const AddedTokenMatch* inner) {
              append_words(part, {from, to}, from == 0 ? place : PartPlace::later, result);
              if (inner == nullptr) return;
              const std::size_t start = result.text().size();
              result.append(part, inner->begin, inner->end);
              matches.push_back({start, result.text().size(), inner->id});
            });
        if (match == nullptr) return;
        const std::size_t start = result.text().size();
        result.keep(text.substr(match->begin, match->end - match->begin));
        matches.push_back({start, result.text().size(), match->id});
      });
  return {std::move(result), std::move(matches), first};
}

bool TextPreparation::may_cut(std::string_view text, std::size_t position) const {
  // After an added token begins a part, before which a space would be put.
  if (normalisation_.prepend_always &&
      (given_.may_end_at(text, position) || normalised_.may_end_at(text, position))) {
    return false;
  }
  return given_.may_cut(text, position) && normalised_.may_cut(text, position);
}

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
