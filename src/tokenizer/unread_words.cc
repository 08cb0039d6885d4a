#include "tokenizer/unread_words.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/numbers.h"
#include "tokenizer/written_words.h"

namespace heed {
namespace {

bool is_special(const Tokenizer& tokenizer, std::int32_t id) {
  return std::ranges::any_of(tokenizer.added_tokens(), [&](const AddedToken& token) {
    return token.id == id && token.special;
  });
}

// A number of words as people say it: "about 1,100".
std::string about(std::int64_t count) {
  if (count < 100) return std::to_string(count);
  std::int64_t unit = 1;
  for (std::int64_t rest = count; rest >= 100; rest /= 10) unit *= 10;
  return "about " + grouped((count + unit / 2) / unit * unit);
}

std::string listed_words(const std::vector<std::string>& words) {
  constexpr std::size_t most = 6;
  std::string list;
  for (std::size_t i = 0; i < std::min(most, words.size()); ++i) {
    if (i > 0) list += ", ";
    list += words[i];
  }
  if (words.size() > most) list += fmt::format(" and {} more", words.size() - most);
  return list;
}

}  // namespace

UnreadWords find_unread(const WordSet& read, std::string_view text,
                        std::span<const TokenSpan> tokens, const Tokenizer& tokenizer) {
  std::string words(text);
  for (const TokenSpan& token : tokens) {
    if (is_special(tokenizer, token.id)) {
      std::fill(words.begin() + static_cast<std::ptrdiff_t>(token.begin),
                words.begin() + static_cast<std::ptrdiff_t>(token.end), '\n');
    }
  }
  UnreadWords unread{.words = {}, .known = read.size(), .different = 0};
  std::unordered_set<std::string_view> seen, seen_unread;
  std::size_t next = 0;  // the first token that may be the word's
  for_each_written_word(words, [&](const WrittenWord& found) {
    const std::string_view word = text.substr(found.begin, found.end - found.begin);
    const bool is_new = seen.insert(word).second;
    if (is_new) ++unread.different;
    if (found.begins_sentence ? read.knows_as_first(word) : read.knows(word)) return;
    while (next < tokens.size() && tokens[next].end <= found.begin) ++next;
    std::size_t last = next;
    while (last + 1 < tokens.size() && tokens[last + 1].begin < found.end) ++last;
    unread.words.push_back({.text = std::string(word),
                            .begin = found.begin,
                            .end = found.end,
                            .first_token = static_cast<std::int64_t>(next),
                            .last_token = static_cast<std::int64_t>(last)});
    if (seen_unread.insert(word).second) unread.different_unread.emplace_back(word);
  });
  return unread;
}

UnreadWords find_unread(const WordSet& read, std::span<const std::int32_t> ids,
                        std::span<const std::string> pieces, const Tokenizer& tokenizer) {
  std::string text;
  std::vector<TokenSpan> tokens;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    tokens.push_back({.id = ids[i], .begin = text.size(), .end = text.size() + pieces[i].size()});
    text += pieces[i];
  }
  return find_unread(read, text, tokens, tokenizer);
}

std::string unread_note(const UnreadWords& unread, UnreadFor purpose) {
  const auto count = std::ssize(unread.different_unread);
  if (count == 0) return {};
  const bool predicts = purpose == UnreadFor::prediction;
  // Where a few words of many were not read, the rest may still be understood.
  const bool few = 4 * count < unread.different;
  const std::string pronoun = count == 1 ? "it" : "them";
  const std::string outcome = few && predicts ? fmt::format("it may misread {}", pronoun)
                              : few           ? fmt::format("it may translate {} wrongly", pronoun)
                              : predicts      ? "its guesses mean little"
                                              : "its translation means little";
  if (unread.known == 0) return "This model has not read any word often enough: " + outcome + ".";
  const std::string known = about(unread.known) + " that this model has read";
  const std::string list = listed_words(unread.different_unread);
  std::string subject;
  if (count < unread.different) {
    subject = fmt::format("{} of these {} words ({}) {} not", count, unread.different, list,
                          count == 1 ? "is" : "are");
  } else if (count == 1) {
    subject = fmt::format("The word “{}” is not", list);
  } else {
    subject = fmt::format("None of these {} words ({}) is", count, list);
  }
  return fmt::format("{} among the {}: {}.", subject, known, outcome);
}

OrderedJson unread_json(const UnreadWords& unread, UnreadFor purpose) {
  OrderedJson words = OrderedJson::array();
  for (const UnreadWord& word : unread.words) {
    words.push_back({{"text", word.text},
                     {"bytes", {word.begin, word.end}},
                     {"tokens", {word.first_token, word.last_token + 1}}});
  }
  const std::string note = unread_note(unread, purpose);
  return {{"of", unread.different},
          {"words", std::move(words)},
          {"note", note.empty() ? OrderedJson(nullptr) : OrderedJson(note)}};
}

}  // namespace heed
