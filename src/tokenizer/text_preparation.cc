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

}  // namespace

TextPreparation::TextPreparation(TextNormalisation normalisation,
                                 const std::vector<AddedToken>& added)
    : normalisation_(std::move(normalisation)),
      all_(make_matchers(added, true)),
      plain_(make_matchers(added, false)) {}

TextPreparation::Matchers TextPreparation::make_matchers(const std::vector<AddedToken>& added,
                                                         bool special) const {
  std::vector<AddedToken> given;
  std::vector<AddedToken> normal;
  for (const AddedToken& token : added) {
    if (token.special && !special) continue;
    if (token.normalized) {
      normal.push_back(token);
      normal.back().content = normalised(token.content, true).text();
    } else {
      given.push_back(token);
    }
  }
  const SpaceRole space =
      normalisation_.replaces_spaces ? SpaceRole::symbol : SpaceRole::white_space;
  return {AddedTokenMatcher(std::move(given)), AddedTokenMatcher(std::move(normal), space)};
}

// A part between added tokens as the normaliser leaves it.
ChangedText TextPreparation::normalised(std::string_view part, bool may_prepend) const {
  if (normalisation_.steps != nullptr) return normalisation_.steps->apply(part);
  ChangedText result;
  if (normalisation_.nfc) {
    append_nfc(part, result);
  } else if (normalisation_.metaspace) {
    result.reserve(part.size() + 1);
    if (normalisation_.prepend_always && may_prepend && !part.empty()) result.replace(0, " ");
    for (std::size_t begin = 0;;) {
      const std::size_t found = part.find(metaspace_character, begin);
      result.keep(part.substr(begin, found == std::string_view::npos ? found : found - begin));
      if (found == std::string_view::npos) break;
      result.replace(metaspace_character.size(), " ");
      begin = found + metaspace_character.size();
    }
  } else {
    result.keep(part);
  }
  return result;
}

std::vector<AddedTokenMatch> TextPreparation::find(std::string_view text,
                                                   const Matchers& matchers) const {
  std::vector<AddedTokenMatch> given = matchers.given.find_all(text);
  if (matchers.normalised.empty()) return given;
  std::vector<AddedTokenMatch> all;
  for_each_part(text.size(), given,
                [&](std::size_t begin, std::size_t end, const AddedTokenMatch* match) {
                  const std::string_view part = text.substr(begin, end - begin);
                  for (const AddedTokenMatch& found : matchers.normalised.find_all(part)) {
                    all.push_back({begin + found.begin, begin + found.end, found.id});
                  }
                  if (match != nullptr) all.push_back(*match);
                });
  return all;
}

PreparedText TextPreparation::prepare(std::string_view text, PreparationOptions options) const {
  const Matchers& matchers = options.special_tokens ? all_ : plain_;
  const bool may_change = normalisation_.metaspace || normalisation_.steps != nullptr ||
                          (normalisation_.nfc && may_change_in_nfc(text));
  if (!may_change) {
    return {text, find(text, matchers)};
  }
  ChangedText result;
  result.reserve(text.size() + text.size() / 64 + 16);
  std::vector<AddedTokenMatch> matches;
  for_each_part(text.size(), matchers.given.find_all(text),
                [&](std::size_t begin, std::size_t end, const AddedTokenMatch* match) {
                  const ChangedText part =
                      normalised(text.substr(begin, end - begin), begin > 0 || !options.continues);
                  for_each_part(
                      part.text().size(), matchers.normalised.find_all(part.text()),
                      [&](std::size_t from, std::size_t to, const AddedTokenMatch* inner) {
                        const bool is_first = begin == 0 && from == 0;
                        const bool prepends =
                            normalisation_.prepend_missing == PrependScheme::always
                                ? !is_first || !options.continues
                                : normalisation_.prepend_missing == PrependScheme::first &&
                                      is_first && !options.continues;
                        if (prepends && from < to && part.text()[from] != ' ') {
                          result.replace(0, " ");
                        }
                        result.append(part, from, to);
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
      (all_.given.may_end_at(text, position) || all_.normalised.may_end_at(text, position))) {
    return false;
  }
  return all_.given.may_cut(text, position) && all_.normalised.may_cut(text, position);
}

}  // namespace heed
