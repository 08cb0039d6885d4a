#include "microscope/microworld/marked_pair.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

namespace bilingual = microworld::bilingual;

// The tokens that overlap each word; `shift` tokens stand before those of the text.
std::vector<TextWord> marked_words(const bilingual::WrittenSentence& sentence,
                                   const std::vector<TokenSpan>& offsets, std::int64_t shift) {
  std::vector<TextWord> words;
  for (const bilingual::WrittenWord& word : sentence.words) {
    const auto first = std::ranges::upper_bound(offsets, word.span.begin, {}, &TokenSpan::end);
    const auto end = std::ranges::lower_bound(offsets, word.span.end, {}, &TokenSpan::begin);
    check(first < end, "a word has at least one token");
    words.push_back({std::string(word.span.in(sentence.text)), first - offsets.begin() + shift,
                     end - offsets.begin() + shift});
  }
  return words;
}

std::vector<scoring::AlignmentLink> marked_links(const std::vector<bilingual::Link>& links) {
  std::vector<scoring::AlignmentLink> marked;
  for (const bilingual::Link& link : links) {
    marked.push_back(
        {static_cast<std::int32_t>(link.english), static_cast<std::int32_t>(link.german)});
  }
  return marked;
}

}  // namespace

MarkedPair mark_pair(const bilingual::Pair& pair, const Architecture& architecture,
                     const TranslationTokenizers& tokenizers) {
  const std::int64_t start = architecture.decoder_start, end = architecture.decoder().end_of_text;
  require(start >= 0 && end >= 0, ErrorCode::invalid_argument,
          "this model does not say with which tokens its decoder starts and ends ({} and {})",
          start, end);
  const std::vector<TokenSpan> source = tokenizers.source->encode_with_offsets(
      pair.english.text, {.add_beginning = true, .add_ending = true});
  std::vector<TokenSpan> target =
      tokenizers.target->encode_with_offsets(pair.german.text, {.add_beginning = true});
  if (!target.empty() && target.front().id == start) target.erase(target.begin());

  MarkedPair marked{.tokens = {.source = {}, .target = {static_cast<std::int32_t>(start)}},
                    .next = {},
                    .source_words = marked_words(pair.english, source, 0),
                    .target_words = marked_words(pair.german, target, 1),
                    .is_content = {},
                    .truth = {marked_links(pair.sure), marked_links(pair.possible)},
                    .log_probability = pair.german_log_probability};
  for (const TokenSpan& token : source) marked.tokens.source.push_back(token.id);
  for (const TokenSpan& token : target) {
    marked.tokens.target.push_back(token.id);
    marked.next.push_back(token.id);
  }
  marked.next.push_back(static_cast<std::int32_t>(end));
  for (const bilingual::WrittenWord& word : pair.german.words) {
    marked.is_content.push_back(word.word.content);
  }
  return marked;
}

}  // namespace heed
