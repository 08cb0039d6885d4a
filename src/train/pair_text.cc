#include "train/pair_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/gzip_file.h"
#include "base/text_lines.h"
#include "base/utf8.h"

namespace heed {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
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

}  // namespace heed
