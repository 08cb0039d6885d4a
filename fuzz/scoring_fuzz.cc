// libFuzzer target: files of sentences and their scores, and files of tasks. The first line is a
// translation, every other one a reference of it.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allowed_errors.h"
#include "heed/error.h"
#include "scoring/bleu.h"
#include "scoring/bootstrap.h"
#include "scoring/characters.h"
#include "scoring/chrf.h"
#include "scoring/metric.h"
#include "scoring/task.h"

namespace {

using namespace heed::scoring;

void expect(bool condition) {
  if (!condition) std::abort();
}

// Lines that are accepted make up the text again, but for white space at their ends.
void read_again(std::string_view text) {
  heed::fuzz::allow_errors([&] {
    std::string joined;
    const auto sentences = read_sentences(text, "fuzzed");
    for (const std::string& sentence : sentences) joined += sentence + "\n";
    expect(read_sentences(joined, "joined") == sentences);
  });
}

// Every question that is accepted can be asked and answered.
void read_questions(std::string_view text) {
  heed::fuzz::allow_errors([&] {
    for (const TaskQuestion& question : read_task(text, "fuzzed").questions) {
      expect(question.answer < question.continuations.size());
      for (const std::string& continuation : question.continuations) {
        expect(continuation.size() > 1 && continuation.front() == ' ');
      }
      const std::vector<double> scores(question.continuations.size(), -1.0);
      expect(likeliest_by_length(scores, question) < scores.size());
    }
  });
}

// Tokenization adds white space; it never takes a character away, but in escapes.
void check_words(const std::string& sentence) {
  const std::u32string characters = to_characters(sentence);
  lower_case(characters);
  for (const std::string& name : bleu_tokenization_names()) {
    const BleuTokenization tokenization = bleu_tokenization_from_name(name);
    std::u32string joined;
    for (const std::u32string& word : bleu_words(characters, tokenization)) {
      expect(!word.empty() && without_space(word) == word);
      joined += word;
    }
    if (tokenization == BleuTokenization::thirteen_a) continue;
    expect(joined == without_space(characters));
  }
}

void check_statistics(const std::string& hypothesis, std::span<const std::string> references) {
  const BleuOptions options{.effective_order = true};
  const BleuStatistics statistics = bleu_statistics(hypothesis, references, options);
  for (std::size_t n = 0; n < bleu_orders; ++n) {
    expect(statistics.correct[n] >= 0 && statistics.correct[n] <= statistics.total[n]);
  }
  const double score = bleu_score(statistics, options).score;
  expect(score >= 0 && score < 100 + 1e-9);
  const double itself = sentence_bleu(hypothesis, std::span(&hypothesis, 1)).score;
  expect(statistics.total[0] == 0 ? itself == 0 : std::abs(itself - 100) < 1e-9);
}

void check_samples(const std::string& hypothesis, const std::vector<std::string>& references) {
  std::vector<std::vector<std::string>> sets;
  for (const std::string& reference : references) sets.push_back({reference});
  const Chrf chrf({.word_order = 2});
  const std::vector<SentenceStatistics> systems{chrf.statistics({std::span(&hypothesis, 1), sets})};
  const double score = chrf.score(systems[0].sum());
  expect(score >= 0 && score < 100 + 1e-9);
  const auto samples = resampled_scores(chrf, systems, {.samples = 3});
  for (const double sample : samples[0]) {
    expect(sample == score);  // there is one sentence to draw
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_again(text);
  read_questions(text);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size() && lines.size() < 5;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const std::string& line : lines) check_words(line);
  const std::string hypothesis = lines[0];
  if (lines.size() > 1) lines.erase(lines.begin());
  check_statistics(hypothesis, lines);
  check_samples(hypothesis, lines);
  return 0;
}
