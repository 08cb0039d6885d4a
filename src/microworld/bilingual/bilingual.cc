#include "microworld/bilingual/bilingual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/threads.h"
#include "microworld/bilingual/english.h"
#include "microworld/bilingual/german.h"
#include "microworld/writer.h"

namespace heed::microworld::bilingual {
namespace {

bool share(const std::vector<Concept>& first, const std::vector<Concept>& other) {
  return std::any_of(first.begin(), first.end(), [&](Concept named) {
    return std::find(other.begin(), other.end(), named) != other.end();
  });
}

OrderedJson words_json(const WrittenSentence& sentence) {
  OrderedJson words = OrderedJson::array();
  for (const WrittenWord& word : sentence.words) {
    words.push_back({{"text", word.word.text}, {"begin", word.span.begin}, {"end", word.span.end}});
  }
  return words;
}

OrderedJson links_json(const std::vector<Link>& links) {
  OrderedJson list = OrderedJson::array();
  for (const Link& link : links) list.push_back({link.english, link.german});
  return list;
}

// Enumerates the German choices that produce `text`. The order of words is known only at the end,
// so a choice among words is limited to those that the text has anywhere.
class GermanReplayer final : public Replayer {
 public:
  using Replayer::Replayer;

 protected:
  bool fits(std::string_view word) const override {
    return text().find(word) != std::string_view::npos || text().starts_with(capitalised(word));
  }
};

struct Told {
  Sentence meaning;
  WrittenSentence written;
  double log_probability = 0.0;
};

struct ToldInGerman {
  WrittenSentence written;
  double log_probability = 0.0;
};

std::vector<Told> english_derivations(std::string_view text, const Grammar& grammar) {
  std::vector<Told> found;
  Replayer replayer(text);
  do {
    SentenceWriter writer(replayer);
    try {
      Sentence sentence = tell_english(writer, grammar);
      if (replayer.matched() && std::isfinite(writer.log_probability())) {
        found.push_back(
            {std::move(sentence), std::move(writer.sentence()), writer.log_probability()});
      }
    } catch (const DeadEnd&) {
    }
  } while (replayer.next());
  return found;
}

// The ways to tell `text`, given the meaning.
std::vector<ToldInGerman> german_derivations(std::string_view text, const Sentence& meaning) {
  std::vector<ToldInGerman> found;
  GermanReplayer replayer(text);
  do {
    SentenceWriter writer(replayer);
    try {
      tell_german(writer, meaning);
      if (replayer.matched()) {
        found.push_back({std::move(writer.sentence()), writer.log_probability()});
      }
    } catch (const DeadEnd&) {
    }
  } while (replayer.next());
  return found;
}

double log_of_sum(const std::vector<double>& logs) {
  if (logs.empty()) return -std::numeric_limits<double>::infinity();
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

constexpr std::int64_t pairs_at_once = 4096;

}  // namespace

Pair tell_pair(Chooser& english, Chooser& german, const Grammar& grammar) {
  Pair pair;
  SentenceWriter english_writer(english);
  const Sentence sentence = tell_english(english_writer, grammar);
  SentenceWriter german_writer(german);
  tell_german(german_writer, sentence);
  pair.english = std::move(english_writer.sentence());
  pair.german = std::move(german_writer.sentence());
  pair.english_log_probability = english_writer.log_probability();
  pair.german_log_probability = german_writer.log_probability();
  align(pair);
  return pair;
}

Pair Bilingual::pair(std::int64_t index) const {
  require(index >= 0, ErrorCode::invalid_argument, "pair index {} is negative", index);
  Sampler sampler(seed_, static_cast<std::uint64_t>(index));
  Pair pair = tell_pair(sampler, sampler, grammar_);
  pair.index = index;
  return pair;
}

std::optional<Pair> read_pair(std::string_view english, std::string_view german,
                              const Grammar& grammar) {
  std::optional<Pair> likeliest;
  const auto joint = [](const Pair& pair) {
    return pair.english_log_probability + pair.german_log_probability;
  };
  for (const Told& told : english_derivations(english, grammar)) {
    for (const ToldInGerman& translation : german_derivations(german, told.meaning)) {
      Pair pair{.english = told.written,
                .german = translation.written,
                .sure = {},
                .possible = {},
                .english_log_probability = told.log_probability,
                .german_log_probability = translation.log_probability};
      if (!likeliest || joint(pair) > joint(*likeliest)) likeliest = std::move(pair);
    }
  }
  if (likeliest) align(*likeliest);
  return likeliest;
}

PairProbability pair_probability(std::string_view english, std::string_view german,
                                 const Grammar& grammar) {
  PairProbability result;
  std::vector<double> of_english, of_pairs;
  for (const Told& told : english_derivations(english, grammar)) {
    of_english.push_back(told.log_probability);
    for (const ToldInGerman& translation : german_derivations(german, told.meaning)) {
      of_pairs.push_back(told.log_probability + translation.log_probability);
    }
  }
  result.english_derivations = of_english.size();
  result.pair_derivations = of_pairs.size();
  result.english = log_of_sum(of_english);
  result.german_given_english = of_pairs.empty() ? -std::numeric_limits<double>::infinity()
                                                 : log_of_sum(of_pairs) - result.english;
  return result;
}

void align(Pair& pair) {
  pair.sure.clear();
  pair.possible.clear();
  for (std::size_t i = 0; i < pair.english.words.size(); ++i) {
    const Word& english = pair.english.words[i].word;
    for (std::size_t j = 0; j < pair.german.words.size(); ++j) {
      const Word& german = pair.german.words[j].word;
      if (share(english.sure, german.sure)) {
        pair.sure.push_back({i, j});
      } else if (share(english.sure, german.possible) || share(english.possible, german.sure) ||
                 share(english.possible, german.possible)) {
        pair.possible.push_back({i, j});
      }
    }
  }
}

std::string pharaoh_line(const std::vector<Link>& links) {
  std::string line;
  for (const Link& link : links) {
    line += fmt::format("{}{}-{}", line.empty() ? "" : " ", link.english, link.german);
  }
  return line;
}

std::string to_json_line(const Pair& pair) {
  OrderedJson line;
  line["index"] = pair.index;
  line["english"] = pair.english.text;
  line["german"] = pair.german.text;
  line["english_words"] = words_json(pair.english);
  line["german_words"] = words_json(pair.german);
  line["sure"] = links_json(pair.sure);
  line["possible"] = links_json(pair.possible);
  line["english_log_probability"] = pair.english_log_probability;
  line["german_log_probability"] = pair.german_log_probability;
  return line.dump();
}

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
