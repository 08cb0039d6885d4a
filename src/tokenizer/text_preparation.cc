#include "tokenizer/text_preparation.h"

#include <algorithm>
#include <utility>

namespace heed {
namespace {

// Calls visit(begin, end, match) for the parts between matches and the match behind each; null
// behind the last.
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
    const auto behind = std::ranges::partition_point(
        ranges, [&](const TextRange& range) { return range.begin <= begin; });
    return behind != ranges.begin() && end <= std::prev(behind)->end;
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
    normal.back().content = normalised(token.content, true).text();
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
void TextPreparation::append_words(const ChangedText& part, TextRange range, bool prepends,
                                   ChangedText& result) const {
  const std::string_view text = std::string_view(part.text()).substr(0, range.end);
  const std::string_view words = text.substr(range.begin);
  const bool begins_with_space = words.starts_with(' ') || words.starts_with(metaspace_character);
  if (prepends && !words.empty() && !begins_with_space) result.replace(0, " ");
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

bool TextPreparation::prepends_missing(bool begins_text, bool continues) const {
  switch (normalisation_.prepend_missing) {
    case PrependScheme::never: return false;
    case PrependScheme::first: return begins_text && !continues;
    case PrependScheme::always: return !begins_text || !continues;
  }
  return false;
}

bool TextPreparation::prepends_to_parts() const {
  return normalisation_.steps == nullptr && normalisation_.metaspace &&
         normalisation_.prepend_always;
}

// A part between added tokens as the normaliser leaves it.
ChangedText TextPreparation::normalised(std::string_view part, bool may_prepend) const {
  if (normalisation_.steps != nullptr) return normalisation_.steps->apply(part);
  ChangedText result;
  if (normalisation_.nfc) {
    append_nfc(part, result);
  } else if (normalisation_.metaspace) {
    result.reserve(part.size() + 1);
    if (prepends_to_parts() && may_prepend && !part.empty()) result.replace(0, prepended_space());
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
  if (!may_change) {
    return {text, find(text, may)};
  }
  ChangedText result;
  result.reserve(text.size() + text.size() / 64 + 16);
  std::vector<AddedTokenMatch> matches;
  for_each_part(
      text.size(), given_.find_all(text, may),
      [&](std::size_t begin, std::size_t end, const AddedTokenMatch* match) {
        const ChangedText part =
            normalised(text.substr(begin, end - begin), begin > 0 || !options.continues);
        for_each_part(
            part.text().size(), find_normalised(part, in_part(may, begin)),
            [&](std::size_t from, std::size_t to, const AddedTokenMatch* inner) {
              const bool is_first = begin == 0 && from == 0;
              append_words(part, {from, to}, prepends_missing(is_first, options.continues), result);
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
  return {std::move(result), std::move(matches)};
}

bool TextPreparation::may_cut(std::string_view text, std::size_t position) const {
  // Behind an added token begins a part, before which a space would be put.
  if (normalisation_.prepend_always &&
      (given_.may_end_at(text, position) || normalised_.may_end_at(text, position))) {
    return false;
  }
  return given_.may_cut(text, position) && normalised_.may_cut(text, position);
}

}  // namespace heed
