// Encodes a prepared text in pieces, on all threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "tokenizer/text_preparation.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// A cache of the tokens of words: 2 MiB, two-way set-associative, one cache line per word; long
// words and words of many tokens are not cached.

// The bytes of a short word as numbers: equal exactly when word and length are equal.
struct WordKey {
  static constexpr std::size_t longest = 24;

  std::array<std::uint64_t, 3> bytes{};
  std::uint32_t length = 0;

  // `word` has 1 to `longest` bytes. Reads overlap where a word does not fill them.
  explicit WordKey(std::string_view word) : length(static_cast<std::uint32_t>(word.size())) {
    const char* data = word.data();
    if (length >= 8) {
      bytes[0] = load<std::uint64_t>(data);
      bytes[1] = load<std::uint64_t>(data + length - 8);
      if (length > 16) bytes[2] = load<std::uint64_t>(data + 8);
    } else if (length >= 4) {
      bytes[0] = load<std::uint32_t>(data);
      bytes[1] = load<std::uint32_t>(data + length - 4);
    } else {
      bytes[0] = static_cast<unsigned char>(data[0]);
      bytes[0] |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[length / 2])) << 8;
      bytes[0] |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[length - 1])) << 16;
    }
  }

  // Multiply and fold, once for each number; the constants are odd and arbitrary.
  std::uint64_t hash() const {
    std::uint64_t value = (bytes[0] ^ length) * 0x9E3779B97F4A7C15u;
    value = ((value ^ value >> 32) + bytes[1]) * 0xD6E8FEB86659FD93u;
    value = ((value ^ value >> 29) + bytes[2]) * 0xA0761D6478BD642Fu;
    return value ^ value >> 32;
  }

 private:
  template <class Integer>
  static Integer load(const char* data) {
    Integer value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
};

class WordCache {
 public:
  static constexpr std::size_t max_tokens = 8;

  WordCache() : entries_(entry_count) {}

  // The tokens of the word; empty if not cached. Valid until the next insert(). A call for each
  // word would cost a tenth of the time of all encoding.
  [[gnu::always_inline]] std::span<const std::int32_t> find(const WordKey& key) const {
    const std::size_t slot = key.hash() & (entry_count - 1);
    const Entry& first = entries_[slot];
    if (first.holds(key)) return {first.tokens.data(), first.count};
    const Entry& second = entries_[slot ^ 1];
    if (second.holds(key)) return {second.tokens.data(), second.count};
    return {};
  }

  // `tokens` is not empty. Replaces the older entry of the set.
  void insert(const WordKey& key, std::span<const std::int32_t> tokens) {
    if (tokens.size() > max_tokens) return;
    const std::size_t slot = key.hash() & (entry_count - 1);
    entries_[slot ^ 1] = entries_[slot];
    Entry& entry = entries_[slot];
    entry.bytes = key.bytes;
    entry.length = static_cast<std::uint16_t>(key.length);
    entry.count = static_cast<std::uint16_t>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
  }

 private:
  static constexpr std::size_t entry_count = std::size_t{1} << 15;

  struct alignas(64) Entry {
    std::array<std::uint64_t, 3> bytes;
    std::uint16_t length;  // 0: vacant
    std::uint16_t count;
    std::array<std::int32_t, max_tokens> tokens;

    bool holds(const WordKey& key) const {
      return bytes[0] == key.bytes[0] && bytes[1] == key.bytes[1] && bytes[2] == key.bytes[2] &&
             length == key.length;
    }
  };

  std::vector<Entry> entries_;
};

// A pool of caches, one for each concurrent caller, which are returned warm.
class WordCachePool {
 public:
  class Lease {
   public:
    explicit Lease(WordCachePool& pool) : pool_(pool), cache_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(cache_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    WordCache& operator*() { return *cache_; }

   private:
    WordCachePool& pool_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto cache = std::move(idle_.back());
        idle_.pop_back();
        return cache;
      }
    }
    return std::make_unique<WordCache>();
  }

  void give_back(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(cache));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> idle_;
};

struct PieceEncoder {
  // Whether the words before and after a position of the text do not depend on each other.
  std::function<bool(std::string_view text, std::size_t position)> is_boundary;
  // Appends the tokens of a part of the text that begins and ends at boundaries or added tokens.
  std::function<void(std::string_view part, WordCache& cache, std::vector<std::int32_t>& tokens)>
      append_tokens;
};

// The tokens of the text and its added tokens, whatever the number of threads.
std::vector<std::int32_t> encode_in_pieces(const PreparedText& prepared,
                                           const PieceEncoder& encoder, WordCachePool& caches,
                                           StopFlag stop);

// Appends the tokens of a word, not empty, from the cache or, where it has none, those that
// `append` appends.
template <class Append>
[[gnu::always_inline]] inline void append_cached(std::string_view word, WordCache& cache,
                                                 std::vector<std::int32_t>& tokens,
                                                 Append&& append) {
  if (word.size() > WordKey::longest) {
    append(word);
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
    append(word);
    cache.insert(key, std::span(tokens).subspan(before));
  }
}

// Tokenizers that say which part of a text each token stands for, since the bytes of their tokens
// are not those of the text: WordPiece drops white space, Unigram and SentencePiece add some.
class PartTokenizer : public Tokenizer {
 public:
  // Parts of a text depend on each other, for all that is known here.
  bool may_cut(std::string_view text, std::size_t position) const override;

 protected:
  using Tokenizer::Tokenizer;

  // Appends the tokens of a part of the prepared text between added tokens, with spans in the part,
  // in order and without overlaps.
  virtual void append_part(std::string_view part, PartPlace place,
                           std::vector<TokenSpan>& spans) const = 0;

  std::vector<std::int32_t> encode_prepared(const PreparedText& text, StopFlag stop) const override;
  std::vector<TokenSpan> prepared_spans(const PreparedText& text, StopFlag stop) const override;
};

}  // namespace heed
