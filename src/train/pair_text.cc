#include "train/pair_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/gzip_file.h"
#include "tokenizer/utf8.h"

namespace heed {
namespace {

// Without line ends, \n or \r\n; the last line needs none.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

}  // namespace

const char* pair_side_name(PairSide side) { return side == PairSide::source ? "source" : "target"; }

PairText::PairText(const std::vector<std::filesystem::path>& files) {
  require(files.size() == 1 || files.size() == 2, ErrorCode::invalid_argument,
          "pairs are in two aligned files or in one with a tab in each line, not in {} files",
          files.size());
  for (const std::filesystem::path& file : files) open(file);
  source_ = lines_of(contents_.front());
  if (files.size() == 1) {
    split_columns();
  } else {
    target_ = lines_of(contents_.back());
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

void PairText::open(const std::filesystem::path& file) {
  names_.push_back(file.string());
  if (file.extension() == ".gz") {
    contents_.emplace_back(decompressed_.emplace_back(read_gzip_file(file)));
  } else {
    contents_.push_back(mapped_.emplace_back(file).text());
  }
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

std::string PairText::place(PairSide side, std::int64_t pair) const {
  return fmt::format("'{}', line {}", side == PairSide::source ? names_.front() : names_.back(),
                     pair + 1);
}

}  // namespace heed
