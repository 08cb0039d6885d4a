#include "train/pair_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/gzip_file.h"
#include "base/text.h"
#include "base/utf8.h"

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

}  // namespace heed
