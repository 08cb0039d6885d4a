#include "tokenizer/byte_pair_tokenizer.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/byte_letters.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/published_words.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

std::array<std::int32_t, 256> find_byte_tokens(const std::vector<std::string>& tokens,
                                               std::string_view source) {
  std::array<std::int32_t, 256> ids;
  ids.fill(-1);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() != 1) continue;
    std::int32_t& known = ids[static_cast<unsigned char>(tokens[id][0])];
    if (known < 0) known = static_cast<std::int32_t>(id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    require(ids[byte] >= 0, ErrorCode::corrupt_data,
            "{}: the vocabulary has no token for the byte 0x{:02X} alone; byte-level BPE needs all "
            "256",
            source, byte);
  }
  return ids;
}

void check_merges(const BytePairDefinition& definition, std::string_view source) {
  PairMap<char> seen(definition.merges.size());
  const auto count = static_cast<std::int64_t>(definition.tokens.size());
  for (std::size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const auto [left, right, result] = definition.merges[rank];
    for (const std::int32_t id : {left, right, result}) {
      require(id >= 0 && id < count, ErrorCode::corrupt_data,
              "{}: merge {} names the token {}; the vocabulary has {}", source, rank, id, count);
    }
    if (definition.tokens[left] + definition.tokens[right] != definition.tokens[result]) {
      fail(ErrorCode::corrupt_data, "{}: merge {} joins {} and {} into {}", source, rank,
           in_quotes(definition.tokens[left]), in_quotes(definition.tokens[right]),
           in_quotes(definition.tokens[result]));
    }
    if (!seen.insert({left, right}).second) {
      fail(ErrorCode::corrupt_data, "{}: merge {} of {} and {} is listed twice", source, rank,
           in_quotes(definition.tokens[left]), in_quotes(definition.tokens[right]));
    }
  }
}

const BytePairDefinition& checked(const BytePairDefinition& definition, std::string_view source) {
  check_merges(definition, source);
  return definition;
}

}  // namespace

BytePairDefinition read_byte_letters(const BytePairTexts& texts, std::string_view source) {
  BytePairDefinition definition;
  definition.added = texts.added;
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(texts.tokens.size());
  std::unordered_set<std::string_view> added;
  for (const AddedToken& token : texts.added) added.insert(token.content);
  for (std::size_t id = 0; id < texts.tokens.size(); ++id) {
    const std::string& text = texts.tokens[id];
    if (text.empty()) {
      definition.tokens.emplace_back();
      continue;
    }
    if (!ids.emplace(text, static_cast<std::int32_t>(id)).second) {
      fail(ErrorCode::corrupt_data, "{}: the token {} has two ids", source, in_quotes(text));
    }
    if (added.contains(text)) {
      definition.tokens.push_back(text);
      continue;
    }
    auto bytes = letters_to_bytes(text);
    if (!bytes) {
      fail(ErrorCode::corrupt_data,
           "{}: the token {} ({}) is not written in the letters of byte-level BPE", source, id,
           in_quotes(text));
    }
    definition.tokens.push_back(std::move(*bytes));
  }
  const auto find = [&](std::string_view token, std::size_t rank, std::string_view role) {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      fail(ErrorCode::corrupt_data, "{}: merge {} ({} {}): the {} {} is not in the vocabulary",
           source, rank, in_quotes(texts.merges[rank].first), in_quotes(texts.merges[rank].second),
           role, in_quotes(token));
    }
    return found->second;
  };
  for (std::size_t rank = 0; rank < texts.merges.size(); ++rank) {
    const auto& [left, right] = texts.merges[rank];
    definition.merges.push_back({find(left, rank, "left part"), find(right, rank, "right part"),
                                 find(left + right, rank, "result")});
  }
  return definition;
}

BytePairTokenizer::BytePairTokenizer(BytePairDefinition definition, std::string_view source)
    : Tokenizer(
          {.vocabulary = Vocabulary(checked(definition, source).tokens, definition.added, source),
           .normalisation = {.nfc = definition.nfc},
           .text_template = std::move(definition.text_template),
           .unknown = std::nullopt},
          source),
      pattern_(definition.pattern),
      merges_(std::move(definition.merges)),
      merger_(find_byte_tokens(definition.tokens, source), merges_),
      ignore_merges_(definition.ignore_merges) {
  if (!ignore_merges_) return;
  for (std::int32_t id = 0; id < vocabulary_size(); ++id) {
    const std::string_view bytes = vocabulary().bytes(id);
    if (!bytes.empty() && vocabulary().find_added(id) == nullptr) whole_words_.emplace(bytes, id);
  }
}

std::string BytePairTokenizer::token_letters(std::int32_t id) const {
  const AddedToken* added = vocabulary().find_added(id);
  return added != nullptr ? added->content : bytes_to_letters(vocabulary().bytes(id));
}

void BytePairTokenizer::append_word(std::string_view word,
                                    std::vector<std::int32_t>& tokens) const {
  if (ignore_merges_) {
    const auto whole = whole_words_.find(word);
    if (whole != whole_words_.end()) {
      tokens.push_back(whole->second);
      return;
    }
  }
  merger_.append_tokens(word, tokens);
}

template <class Words>
void BytePairTokenizer::append_words(std::string_view text, WordCache& cache,
                                     std::vector<std::int32_t>& tokens) const {
  for_each_word<Words>(text, [&](std::size_t begin, std::size_t end) {
    append_cached(text.substr(begin, end - begin), cache, tokens,
                  [&](std::string_view word) { append_word(word, tokens); });
  });
}

BytePairTokenizer::AppendWords BytePairTokenizer::append_words_of(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::gpt2: return &BytePairTokenizer::append_words<Gpt2Words>;
    case WordPattern::llama3: return &BytePairTokenizer::append_words<Llama3Words>;
    case WordPattern::qwen2: return &BytePairTokenizer::append_words<Qwen2Words>;
    case WordPattern::o200k: return &BytePairTokenizer::append_words<O200kWords>;
    case WordPattern::tekken: return &BytePairTokenizer::append_words<TekkenWords>;
    case WordPattern::gpt2_digits: return &BytePairTokenizer::append_words<Gpt2DigitWords>;
    case WordPattern::gpt2_numbers: return &BytePairTokenizer::append_words<Gpt2NumberWords>;
  }
  fail(ErrorCode::internal, "word pattern {}", static_cast<int>(pattern));
}

std::vector<std::int32_t> BytePairTokenizer::encode_prepared(const PreparedText& text,
                                                             StopFlag stop) const {
  PieceEncoder encoder;
  encoder.is_boundary = [this](std::string_view whole, std::size_t position) {
    return is_word_boundary(pattern_, whole, position);
  };
  const AppendWords append = append_words_of(pattern_);
  encoder.append_tokens = [this, append](std::string_view part, WordCache& cache,
                                         std::vector<std::int32_t>& tokens) {
    (this->*append)(part, cache, tokens);
  };
  return encode_in_pieces(text, encoder, caches_, stop);
}

bool BytePairTokenizer::may_cut(std::string_view text, std::size_t position) const {
  return Tokenizer::may_cut(text, position) && is_word_boundary(pattern_, text, position);
}

}  // namespace heed
