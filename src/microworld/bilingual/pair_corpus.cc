#include "microworld/bilingual/pair_corpus.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"

namespace heed::microworld::bilingual {
namespace {

constexpr std::int64_t pairs_at_once = 4096;

}  // namespace

void EntropyEstimate::add(double log_probability) {
  ++count_;
  sum_ -= log_probability;
  squares_ += log_probability * log_probability;
}

double EntropyEstimate::nats() const {
  return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_);
}

double EntropyEstimate::standard_error() const {
  if (count_ < 2) return 0.0;
  const double mean = nats();
  const double variance = squares_ / static_cast<double>(count_) - mean * mean;
  return std::sqrt(std::max(variance, 0.0) / static_cast<double>(count_ - 1));
}

PairSummary tell_pairs(const Bilingual& world, const PairRange& range, const PairSink& sink) {
  require(range.begin >= 0 && range.begin <= range.end, ErrorCode::invalid_argument,
          "invalid range of pairs [{}, {}): expected 0 <= begin <= end", range.begin, range.end);
  PairSummary summary;
  std::vector<Pair> pairs;
  for (std::int64_t begin = range.begin; begin < range.end; begin += pairs_at_once) {
    require(!stop_requested(range.stop), ErrorCode::interrupted, "stopped after {} of {} pairs",
            begin - range.begin, range.end - range.begin);
    const std::int64_t end = std::min(range.end, begin + pairs_at_once);
    pairs.assign(static_cast<std::size_t>(end - begin), {});
    parallel_ranges(end - begin, 64, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        pairs[static_cast<std::size_t>(i)] = world.pair(begin + i);
      }
    });
    for (const Pair& pair : pairs) {
      summary.german_given_english.add(pair.german_log_probability);
      summary.english.add(pair.english_log_probability);
      summary.english_words += static_cast<std::int64_t>(pair.english.words.size());
      summary.german_words += static_cast<std::int64_t>(pair.german.words.size());
      summary.sure_links += static_cast<std::int64_t>(pair.sure.size());
      summary.possible_links += static_cast<std::int64_t>(pair.possible.size());
      sink(pair);
    }
    if (range.progress) {
      range.progress({"writing pairs", end - range.begin, range.end - range.begin});
    }
  }
  return summary;
}

PairSummary write_pair_files(const Bilingual& world, const PairRange& range,
                             const std::string& directory, const std::string& name) {
  const std::filesystem::path base = std::filesystem::path(directory) / name;
  AtomicFile english(base.string() + ".en");
  AtomicFile german(base.string() + ".de");
  AtomicFile sure(base.string() + ".align");
  AtomicFile possible(base.string() + ".possible");
  const PairSummary summary = tell_pairs(world, range, [&](const Pair& pair) {
    english.write(pair.english.text + "\n");
    german.write(pair.german.text + "\n");
    sure.write(pharaoh_line(pair.sure) + "\n");
    possible.write(pharaoh_line(pair.possible) + "\n");
  });
  for (AtomicFile* file : {&english, &german, &sure, &possible}) file->finish();
  for (AtomicFile* file : {&english, &german, &sure, &possible}) file->commit();
  return summary;
}

}  // namespace heed::microworld::bilingual
