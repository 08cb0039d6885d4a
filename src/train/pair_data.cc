#include "train/pair_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/utf8.h"
#include "kernels/kernels.h"

namespace heed {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

// Where sequences begin that end with the token `end`.
std::vector<std::int64_t> sequence_starts(const TokenSequence& tokens, std::int32_t end) {
  constexpr std::int64_t part = std::int64_t{1} << 16;
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> read;
  for (std::int64_t begin = 0; begin < tokens.size(); begin += part) {
    read.resize(static_cast<std::size_t>(std::min(part, tokens.size() - begin)));
    tokens.read(begin, read);
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (read[i] == end) starts.push_back(begin + static_cast<std::int64_t>(i) + 1);
    }
  }
  return starts;
}

}  // namespace

const char* pair_side_name(PairSide side) { return side == PairSide::source ? "source" : "target"; }

PairText::PairText(const std::vector<std::filesystem::path>& files) {
  require(files.size() == 1 || files.size() == 2, ErrorCode::invalid_argument,
          "pairs are in two aligned files or in one with a tab in each line, not in {} files",
          files.size());
  source_ = text_lines(open(files.front()));
  if (files.size() == 1) {
    split_columns();
  } else {
    target_ = text_lines(open(files.back()));
  }
  require(source_.size() == target_.size(), ErrorCode::invalid_argument,
          "'{}' has {} lines and '{}' has {}: line by line they are pairs, so both need as many",
          names_.front(), source_.size(), names_.back(), target_.size());
  require(!source_.empty(), ErrorCode::invalid_argument, "'{}' has no lines", names_.front());
  for (const PairSide side : {PairSide::source, PairSide::target}) {
    for (std::int64_t pair = 0; pair < size(); ++pair) {
      const std::string_view text = line(side, pair);
      if (is_blank(text)) {
        fail(ErrorCode::invalid_argument, "{}: the {} is empty", place(side, pair),
             pair_side_name(side));
      }
      if (!is_valid_utf8(text)) {
        fail(ErrorCode::invalid_argument, "{}: the {} is not UTF-8: {}", place(side, pair),
             pair_side_name(side), in_quotes(text));
      }
    }
  }
}

std::string_view PairText::open(const std::filesystem::path& file) {
  names_.push_back(file.string());
  if (file.extension() == ".gz") return decompressed_.emplace_back(read_gzip_file(file));
  return mapped_.emplace_back(file).text();
}

void PairText::split_columns() {
  for (std::size_t i = 0; i < source_.size(); ++i) {
    const std::string_view row = source_[i];
    const auto tabs = std::ranges::count(row, '\t');
    if (tabs != 1) {
      fail(ErrorCode::invalid_argument,
           "'{}', line {}: {} tabs, expected one between source and target", names_.front(), i + 1,
           tabs);
    }
    const std::size_t tab = row.find('\t');
    source_[i] = row.substr(0, tab);
    target_.push_back(row.substr(tab + 1));
  }
}

std::vector<std::string_view> PairText::both_sides(std::int64_t begin, std::int64_t end) const {
  std::vector<std::string_view> lines;
  for (const auto* const side : {&source_, &target_}) {
    lines.insert(lines.end(), side->begin() + begin, side->begin() + end);
  }
  return lines;
}

std::string PairText::place(PairSide side, std::int64_t pair) const {
  return fmt::format("'{}', line {}", side == PairSide::source ? names_.front() : names_.back(),
                     pair + 1);
}

PairData::PairData(const PairText& text, PairRange range, const TranslationTokenizers& tokenizers,
                   const TokenizeOptions& options)
    : text_(text),
      range_(range),
      source_(make_side(text, range, PairSide::source, *tokenizers.source, options)),
      target_(make_side(text, range, PairSide::target, *tokenizers.target, options)) {}

PairData::Side PairData::make_side(const PairText& text, PairRange range, PairSide side,
                                   const Tokenizer& tokenizer, const TokenizeOptions& options) {
  TextViews lines;
  for (std::int64_t pair = range.begin; pair < range.end; ++pair) {
    lines.push_back(text.line(side, pair));
  }
  TokenData data = tokenize_lines(tokenizer, lines, options);
  std::vector<std::int64_t> starts = sequence_starts(data, *tokenizer.end_of_text());
  require(std::ssize(starts) - 1 == range.end - range.begin && starts.back() == data.size(),
          ErrorCode::corrupt_data,
          "the cached tokens of {} lines hold {} sequences: remove the cache, or give another",
          range.end - range.begin, starts.size() - 1);
  return {std::move(data), std::move(starts)};
}

std::int64_t PairData::length(PairSide side, std::int64_t pair) const {
  const auto at = static_cast<std::size_t>(pair);
  return of(side).starts[at + 1] - of(side).starts[at];
}

void PairData::read(PairSide side, std::int64_t pair, std::span<std::int32_t> out) const {
  of(side).data.read(of(side).starts[static_cast<std::size_t>(pair)], out);
}

void PairData::require_lengths(PairSide side, std::int64_t most, const char* limit) const {
  for (std::int64_t pair = 0; pair < size(); ++pair) {
    if (length(side, pair) > most) {
      fail(ErrorCode::invalid_argument,
           "{}: the {} has {} tokens with its end, but {} allows {}: shorten or remove the pair",
           text_.place(side, range_.begin + pair), pair_side_name(side), length(side, pair), limit,
           most);
    }
  }
}

namespace {

// Streams of the run's seed that no other use of it shares.
constexpr std::uint64_t pair_stream = std::uint64_t{0x70616972} << 32;
constexpr std::uint64_t pair_batch_stream = std::uint64_t{0x62617463} << 32;

// Lengths in tokens that count as similar: attention costs the square of a length, and a step of
// short sentences only is another kind of step than one of long ones.
constexpr std::int64_t bucket_width = 8;

void read_pair_side(const PairData& data, std::span<const std::int64_t> pairs, PairSide side,
                    std::vector<std::int32_t>& tokens, std::vector<std::int64_t>& starts) {
  starts.assign(1, 0);
  for (const std::int64_t pair : pairs) starts.push_back(starts.back() + data.length(side, pair));
  tokens.resize(static_cast<std::size_t>(starts.back()));
  for (std::size_t b = 0; b < pairs.size(); ++b) {
    const auto begin = static_cast<std::size_t>(starts[b]);
    const auto count = static_cast<std::size_t>(starts[b + 1]) - begin;
    data.read(side, pairs[b], std::span(tokens).subspan(begin, count));
  }
}

}  // namespace

std::span<const std::int64_t> PairBatches::batch(std::int64_t b) const {
  const auto begin = static_cast<std::size_t>(starts[static_cast<std::size_t>(b)]);
  const auto end = static_cast<std::size_t>(starts[static_cast<std::size_t>(b) + 1]);
  return std::span(pairs).subspan(begin, end - begin);
}

PairBatches cut_batches(const PairData& data, std::vector<std::int64_t> pairs,
                        std::int64_t batch_tokens) {
  PairBatches batches{.pairs = std::move(pairs)};
  std::int64_t source = 0, target = 0;
  for (std::int64_t i = 0; i < std::ssize(batches.pairs); ++i) {
    const std::int64_t pair = batches.pairs[static_cast<std::size_t>(i)];
    const std::int64_t more_source = data.length(PairSide::source, pair);
    const std::int64_t more_target = data.length(PairSide::target, pair);
    const bool is_full = source + more_source > batch_tokens || target + more_target > batch_tokens;
    if (is_full && i > batches.starts.back()) {
      batches.starts.push_back(i);
      source = target = 0;
    }
    source += more_source;
    target += more_target;
  }
  if (!batches.pairs.empty()) batches.starts.push_back(std::ssize(batches.pairs));
  return batches;
}

PairOrder::PairOrder(const PairData& data, std::int64_t batch_tokens, std::uint64_t seed)
    : data_(data), batch_tokens_(batch_tokens), seed_(seed) {
  check(data.size() > 0, "there are pairs to order");
}

const PairBatches& PairOrder::of_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return batches_;
  const Permutation shuffled(static_cast<std::uint64_t>(data_.size()), seed_,
                             pair_stream + static_cast<std::uint64_t>(epoch));
  // Ranks are distinct, so the order is the same with every sorting algorithm.
  struct Key {
    std::int64_t bucket;
    std::uint64_t rank;
    std::int64_t pair;
  };
  std::vector<Key> keys;
  keys.reserve(static_cast<std::size_t>(data_.size()));
  for (std::int64_t pair = 0; pair < data_.size(); ++pair) {
    const std::int64_t longer =
        std::max(data_.length(PairSide::source, pair), data_.length(PairSide::target, pair));
    keys.push_back({longer / bucket_width, shuffled(static_cast<std::uint64_t>(pair)), pair});
  }
  std::ranges::sort(keys, [](const Key& a, const Key& b) {
    return a.bucket != b.bucket ? a.bucket < b.bucket : a.rank < b.rank;
  });
  std::vector<std::int64_t> pairs;
  pairs.reserve(keys.size());
  for (const Key& key : keys) pairs.push_back(key.pair);
  batches_ = cut_batches(data_, std::move(pairs), batch_tokens_);
  epoch_ = epoch;
  return batches_;
}

std::int64_t PairOrder::batches(std::int64_t epoch) { return of_epoch(epoch).count(); }

std::span<const std::int64_t> PairOrder::next(DataPosition& position) {
  if (position.index >= batches(position.epoch)) position = {position.epoch + 1, 0};
  const PairBatches& epoch = of_epoch(position.epoch);
  const Permutation order(static_cast<std::uint64_t>(epoch.count()), seed_,
                          pair_batch_stream + static_cast<std::uint64_t>(position.epoch));
  return epoch.batch(
      static_cast<std::int64_t>(order(static_cast<std::uint64_t>(position.index++))));
}

void PairRows::read(const PairData& data, std::span<const std::int64_t> pairs,
                    std::int32_t decoder_start) {
  read_pair_side(data, pairs, PairSide::source, source_, source_starts_);
  read_pair_side(data, pairs, PairSide::target, next_, target_starts_);
  target_.resize(next_.size());
  for (std::size_t b = 0; b + 1 < target_starts_.size(); ++b) {
    const std::int64_t begin = target_starts_[b], end = target_starts_[b + 1];
    target_[static_cast<std::size_t>(begin)] = decoder_start;
    std::copy(next_.begin() + begin, next_.begin() + end - 1, target_.begin() + begin + 1);
  }
}

void PairShare::read(const PairData& data, std::span<const std::int64_t> pairs,
                     const Options& options) {
  const auto tokens = [&](std::int64_t pair) {
    return data.length(PairSide::source, pair) + data.length(PairSide::target, pair);
  };
  const std::int64_t count = std::ssize(pairs), processes = options.processes;
  std::int64_t all = 0;
  all_targets_ = 0;
  for (const std::int64_t pair : pairs) {
    all += tokens(pair);
    all_targets_ += data.length(PairSide::target, pair);
  }
  // A pair belongs to the process in whose part of all tokens its middle lies.
  std::int64_t before = 0, begin = count, end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t middle = 2 * before + tokens(pairs[static_cast<std::size_t>(i)]);
    if (middle * processes / (2 * all) == options.rank) {
      begin = std::min(begin, i);
      end = i + 1;
    }
    before += tokens(pairs[static_cast<std::size_t>(i)]);
  }
  nothing_.clear();
  const bool is_idle = begin >= end;
  if (is_idle) {
    begin = count - 1;
    end = count;
  }
  place_ = {.sequence = begin};
  for (std::int64_t i = 0; i < begin; ++i) {
    place_.source_row += data.length(PairSide::source, pairs[static_cast<std::size_t>(i)]);
    place_.target_row += data.length(PairSide::target, pairs[static_cast<std::size_t>(i)]);
  }
  rows_.read(data,
             pairs.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
             options.decoder_start);
  if (is_idle) {
    nothing_.assign(static_cast<std::size_t>(rows_.targets()), kernels::ignored_target);
  }
}

PairBatch PairShare::batch() const {
  PairBatch batch = rows_.batch();
  if (!nothing_.empty()) batch.next = nothing_;
  return batch;
}

}  // namespace heed
