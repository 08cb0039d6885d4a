#include "microworld/bilingual/bilingual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "microworld/bilingual/english.h"
#include "microworld/bilingual/german.h"
#include "microworld/chooser.h"

namespace heed::microworld::bilingual {
namespace {

// Enumerates the German choices that produce `text`. The order of words is known only at the end,
// so a choice among words is limited to those that the text has anywhere.
class GermanReplayer final : public Chooser {
 public:
  explicit GermanReplayer(std::string_view text) : text_(text) {}

  std::size_t choose(const Choice& choice) override {
    if (depth_ == options_.size()) {
      std::vector<std::size_t> fitting;
      for (std::size_t option = choice.count; option-- > 0;) {
        if (choice.probability(option) <= 0.0) continue;
        if (choice.beginnings.empty() || stands(choice.beginnings[option])) {
          fitting.push_back(option);
        }
      }
      if (fitting.empty()) {
        alive_ = false;
        return 0;
      }
      options_.push_back(std::move(fitting));
    }
    return options_[depth_++].back();
  }

  void wrote(std::string_view text) override {
    alive_ = text_.substr(position_).starts_with(text);
    position_ += text.size();
  }

  bool alive() const override { return alive_; }
  bool matched() const { return alive_ && position_ == text_.size(); }

  bool next() {
    while (!options_.empty()) {
      options_.back().pop_back();
      if (!options_.back().empty()) break;
      options_.pop_back();
    }
    position_ = 0;
    depth_ = 0;
    alive_ = true;
    return !options_.empty();
  }

 private:
  bool stands(std::string_view word) const {
    return text_.find(word) != std::string_view::npos || text_.starts_with(capitalised(word));
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t depth_ = 0;
  bool alive_ = true;
  std::vector<std::vector<std::size_t>> options_;  // per choice: untried options, current one last
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

}  // namespace heed::microworld::bilingual
