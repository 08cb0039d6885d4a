// Pairs as tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "model/transformer.h"
#include "train/batch_order.h"
#include "train/token_data.h"

namespace heed {

// Pairs of lines: two aligned text files, or one with a tab between the sides.
const char* pair_side_name(PairSide side);  // "source", "target"

class PairText {
 public:
  // Two files whose lines with the same number are a pair, or one (TSV) whose lines are
  // source, tab, target. Names that end in .gz are decompressed, a byte order mark is dropped, and
  // \r\n ends a line as \n does. Throws Error{invalid_argument}
  // naming file and line: files of different length, an empty side, a line without exactly one tab,
  // text that is not UTF-8, or no lines at all.
  explicit PairText(const std::vector<std::filesystem::path>& files);

  std::int64_t size() const { return std::ssize(source_); }
  std::string_view line(PairSide side, std::int64_t pair) const {
    return (side == PairSide::source ? source_ : target_)[static_cast<std::size_t>(pair)];
  }
  // "'train.en', line 17": where a side of a pair comes from.
  std::string place(PairSide side, std::int64_t pair) const;
  // The sources, then the targets of the pairs [begin, end): what a vocabulary is learned from.
  std::vector<std::string_view> both_sides(std::int64_t begin, std::int64_t end) const;

 private:
  std::string_view open(const std::filesystem::path& file);
  void split_columns();

  std::vector<std::string> names_;
  std::vector<MappedFile> mapped_;
  std::deque<std::string> decompressed_;  // does not move what views point to
  std::vector<std::string_view> source_;
  std::vector<std::string_view> target_;
};

// Pairs [begin, end) of a text.
struct PairRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The tokens of each side, each sequence with the token that ends it: from the cache if they are
// there (tokenize_lines). Tokens stay in their files; the lengths of all sequences are in memory.
class PairData {
 public:
  // Throws what tokenize_lines throws.
  PairData(const PairText& text, PairRange range, const TranslationTokenizers& tokenizers,
           const TokenizeOptions& options);

  std::int64_t size() const { return std::ssize(source_.starts) - 1; }
  // Tokens of a side, its end included.
  std::int64_t length(PairSide side, std::int64_t pair) const;
  std::int64_t tokens(PairSide side) const { return of(side).starts.back(); }
  // `out` has length() tokens.
  void read(PairSide side, std::int64_t pair, std::span<std::int32_t> out) const;

  // Names these tokens.
  std::string key() const { return source_.data.key() + "-" + target_.data.key(); }

  // Throws Error{invalid_argument} naming file and line of the first sequence with more tokens than
  // `most`; `limit` says what allows so many ("the context of the encoder").
  void require_lengths(PairSide side, std::int64_t most, const char* limit) const;

 private:
  struct Side {
    TokenData data;
    std::vector<std::int64_t> starts;  // first token of each sequence, and the end
  };
  static Side make_side(const PairText& text, PairRange range, PairSide side,
                        const Tokenizer& tokenizer, const TokenizeOptions& options);
  const Side& of(PairSide side) const { return side == PairSide::source ? source_ : target_; }

  const PairText& text_;
  PairRange range_;
  Side source_;
  Side target_;
};

// Which pairs form a batch, each pair exactly once an epoch: the numbers of batch b are
// pairs[starts[b], starts[b + 1]).
struct PairBatches {
  std::vector<std::int64_t> pairs;
  std::vector<std::int64_t> starts{0};

  std::int64_t count() const { return std::ssize(starts) - 1; }
  std::span<const std::int64_t> batch(std::int64_t b) const;
};

// Cuts `pairs`, in their order, into batches whose sources and whose targets each have at most
// batch_tokens tokens in all.
PairBatches cut_batches(const PairData& data, std::vector<std::int64_t> pairs,
                        std::int64_t batch_tokens);

// Every epoch puts pairs of similar length side by side, in a new random order, cuts batches, and
// takes the batches in a random order. A pure function of the data's lengths, seed and position; it
// remembers the batches of one epoch.
class PairOrder {
 public:
  PairOrder(const PairData& data, std::int64_t batch_tokens, std::uint64_t seed);

  // The pairs of the batch at `position`, which moves on to the next; valid until the next call.
  std::span<const std::int64_t> next(DataPosition& position);

  std::int64_t batches(std::int64_t epoch);

 private:
  const PairBatches& of_epoch(std::int64_t epoch);

  const PairData& data_;
  std::int64_t batch_tokens_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  PairBatches batches_;
};

// A batch of pairs in memory, as Transformer takes it: sequences one below the other, without
// padding.
class PairRows {
 public:
  // The decoder reads `decoder_start` and then the target without its end; it predicts the target.
  void read(const PairData& data, std::span<const std::int64_t> pairs, std::int32_t decoder_start);

  PairBatch batch() const {
    return {
        .source = {source_, source_starts_}, .target = {target_, target_starts_}, .next = next_};
  }
  std::int64_t targets() const { return std::ssize(next_); }

 private:
  std::vector<std::int32_t> source_;
  std::vector<std::int64_t> source_starts_;
  std::vector<std::int32_t> target_;
  std::vector<std::int64_t> target_starts_;
  std::vector<std::int32_t> next_;
};

// What a process of a group computes of a batch of pairs.
class PairShare {
 public:
  struct Options {
    std::int32_t decoder_start = 0;
    int rank = 0;
    int processes = 1;
  };
  // Processes take pairs that follow each other, of about as many tokens each. One to which none
  // falls takes the last pair and predicts none of its tokens.
  void read(const PairData& data, std::span<const std::int64_t> pairs, const Options& options);

  PairBatch batch() const;
  std::int64_t all_targets() const { return all_targets_; }  // of the whole batch

  // Where the share begins in the batch: its number of sequences and of rows before it.
  struct Place {
    std::int64_t sequence = 0;
    std::int64_t source_row = 0;
    std::int64_t target_row = 0;
  };
  const Place& place() const { return place_; }

 private:
  PairRows rows_;
  std::vector<std::int32_t> nothing_;  // targets of a share that predicts none
  std::int64_t all_targets_ = 0;
  Place place_;
};

}  // namespace heed
