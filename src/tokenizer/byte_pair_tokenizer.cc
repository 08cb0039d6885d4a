#include "tokenizer/byte_pair_tokenizer.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "tokenizer/byte_letters.h"
#include "tokenizer/utf8.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

// Texts are split into pieces of about this many bytes: large enough to amortise the start of a
// piece, small enough to balance the threads.
constexpr std::size_t encoded_piece_bytes = 128 * 1024;

// A part of the text at whose boundaries no word or added token is split, and its added tokens.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t first_match = 0;
  std::size_t last_match = 0;  // past the end
};

std::vector<Piece> cut_into_pieces(std::string_view text,
                                   const std::vector<AddedTokenMatch>& matches) {
  std::vector<Piece> pieces;
  std::size_t match = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t first_match = match;
    std::size_t end = std::min(begin + encoded_piece_bytes, text.size());
    for (; end < text.size(); ++end) {
      while (match < matches.size() && matches[match].end <= end) ++match;
      if (match < matches.size() && matches[match].begin < end) {
        end = matches[match++].end;
        break;
      }
      if (is_word_boundary(text, end)) break;
    }
    while (match < matches.size() && matches[match].end <= end) ++match;
    pieces.push_back({begin, end, first_match, match});
    begin = end;
  }
  return pieces;
}

// Capacity for the tokens of `bytes` bytes; most texts need less.
std::size_t likely_tokens(std::size_t bytes) { return bytes / 3 + 8; }

// Collects the tokens of pieces that finish in any order. A piece is appended as soon as all pieces
// before it are, so that few are pending and their memory is reused.
class OrderedTokens {
 public:
  OrderedTokens(std::size_t pieces, std::size_t bytes) : waiting_(pieces) {
    if (pieces > 1) tokens_.reserve(likely_tokens(bytes));
  }

  void add(std::size_t piece, std::vector<std::int32_t> tokens) {
    const std::scoped_lock lock(mutex_);
    waiting_[piece] = std::move(tokens);
    for (; next_ < waiting_.size() && waiting_[next_]; ++next_) {
      if (waiting_.size() == 1) {
        tokens_ = *std::move(waiting_[0]);
      } else {
        tokens_.insert(tokens_.end(), waiting_[next_]->begin(), waiting_[next_]->end());
      }
      waiting_[next_].emplace();
    }
  }

  std::vector<std::int32_t> take() { return std::move(tokens_); }

 private:
  std::mutex mutex_;
  std::vector<std::optional<std::vector<std::int32_t>>> waiting_;
  std::size_t next_ = 0;  // the first piece that is not in tokens_
  std::vector<std::int32_t> tokens_;
};

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
    if (!ids.emplace(text, static_cast<std::int32_t>(id)).second) {
      fail(ErrorCode::corrupt_data, "{}: the token {} has two ids", source, in_quotes(text));
    }
    if (added.contains(text)) {
      definition.tokens.push_back(text);
      continue;
    }
    auto bytes = letters_to_bytes(text);
    if (!bytes || bytes->empty()) {
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
    : Tokenizer(Vocabulary(checked(definition, source).tokens, definition.added, source)),
      merges_(std::move(definition.merges)),
      merger_(find_byte_tokens(definition.tokens, source), merges_) {}

std::string BytePairTokenizer::token_letters(std::int32_t id) const {
  const AddedToken* added = vocabulary().find_added(id);
  return added != nullptr ? added->content : bytes_to_letters(vocabulary().bytes(id));
}

void BytePairTokenizer::append_words(std::string_view text, WordCache& cache,
                                     std::vector<std::int32_t>& tokens) const {
  for_each_word(text, [&](std::size_t begin, std::size_t end) {
    const std::string_view word = text.substr(begin, end - begin);
    if (word.size() > WordKey::longest) {
      merger_.append_tokens(word, tokens);
      return;
    }
    const WordKey key(word);
    const auto known = cache.find(key);
    if (known.size() == 1) {
      tokens.push_back(known[0]);
    } else if (!known.empty()) {
      tokens.insert(tokens.end(), known.begin(), known.end());
    } else {
      const std::size_t before = tokens.size();
      merger_.append_tokens(word, tokens);
      cache.insert(key, std::span(tokens).subspan(before));
    }
  });
}

std::vector<std::int32_t> BytePairTokenizer::encode(std::string_view text,
                                                    EncodeOptions options) const {
  const std::vector<AddedTokenMatch> matches = find_added(text, options);
  const std::vector<Piece> pieces = cut_into_pieces(text, matches);
  OrderedTokens joined(pieces.size(), text.size());
  parallel_items(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while tokenizing");
    WordCachePool::Lease cache(caches_);
    const auto index = static_cast<std::size_t>(i);
    const Piece& piece = pieces[index];
    std::vector<std::int32_t> tokens;
    tokens.reserve(likely_tokens(piece.end - piece.begin));
    std::size_t begin = piece.begin;
    for (std::size_t match = piece.first_match; match < piece.last_match; ++match) {
      append_words(text.substr(begin, matches[match].begin - begin), *cache, tokens);
      tokens.push_back(matches[match].id);
      begin = matches[match].end;
    }
    append_words(text.substr(begin, piece.end - begin), *cache, tokens);
    joined.add(index, std::move(tokens));
  });
  return joined.take();
}

}  // namespace heed
