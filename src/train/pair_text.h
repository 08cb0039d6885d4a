// Pairs of lines: two aligned text files, or one with a tab between the sides.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace heed {

enum class PairSide { source, target };
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

}  // namespace heed
