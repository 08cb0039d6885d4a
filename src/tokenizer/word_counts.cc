#include "tokenizer/word_counts.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/threads.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

using Counts = std::unordered_map<std::string_view, std::int64_t>;

constexpr std::size_t counted_piece_bytes = 1024 * 1024;

// Parts of the texts between added tokens, cut at word boundaries into about counted_piece_bytes.
std::vector<std::string_view> cut_into_pieces(std::span<const std::string_view> texts,
                                              const AddedTokenMatcher& added) {
  std::vector<std::string_view> pieces;
  const auto cut = [&](std::string_view part) {
    while (!part.empty()) {
      std::size_t end = std::min(counted_piece_bytes, part.size());
      while (!is_word_boundary(part, end)) ++end;
      pieces.push_back(part.substr(0, end));
      part.remove_prefix(end);
    }
  };
  for (const std::string_view text : texts) {
    std::size_t begin = 0;
    for (const AddedTokenMatch& match : added.find_all(text)) {
      cut(text.substr(begin, match.begin - begin));
      begin = match.end;
    }
    cut(text.substr(begin));
  }
  return pieces;
}

}  // namespace

std::vector<WordCount> count_words(std::span<const std::string_view> texts,
                                   const AddedTokenMatcher& added, const ProgressCallback& progress,
                                   StopFlag stop) {
  const std::vector<std::string_view> pieces = cut_into_pieces(texts, added);
  Progress report{.what = "counting words"};
  for (const std::string_view piece : pieces)
    report.total += static_cast<std::int64_t>(piece.size());

  // A range of pieces has its own table; sums do not depend on the order of their parts.
  Counts all;
  std::mutex mutex;  // guards `all` and `report`
  parallel_ranges(
      static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t first, std::int64_t last) {
        Counts counts;
        std::int64_t unreported = 0;
        for (std::int64_t i = first; i < last; ++i) {
          require(!stop_requested(stop), ErrorCode::interrupted, "counting words was stopped");
          for_each_word(pieces[i], [&](std::size_t begin, std::size_t end) {
            ++counts[pieces[i].substr(begin, end - begin)];
          });
          unreported += static_cast<std::int64_t>(pieces[i].size());
          if (progress &&
              (unreported >= static_cast<std::int64_t>(counted_piece_bytes) || i + 1 == last)) {
            const std::lock_guard lock(mutex);
            report.done += unreported;
            unreported = 0;
            progress(report);
          }
        }
        const std::lock_guard lock(mutex);
        if (all.empty()) {
          all.swap(counts);
        } else {
          for (const auto& [word, count] : counts) all[word] += count;
        }
      });

  std::vector<WordCount> sorted;
  sorted.reserve(all.size());
  for (const auto& [word, count] : all) sorted.push_back({word, count});
  std::sort(sorted.begin(), sorted.end(),
            [](const WordCount& left, const WordCount& right) { return left.word < right.word; });
  return sorted;
}

}  // namespace heed
