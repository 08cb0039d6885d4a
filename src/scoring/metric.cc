#include "scoring/metric.h"

#include <utf8proc.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/threads.h"
#include "heed/version.h"
#include "scoring/characters.h"

namespace heed::scoring {
namespace {

void check_texts(const ScoredTexts& texts) {
  require(!texts.hypotheses.empty(), ErrorCode::invalid_argument,
          "there are no sentences to score; expected at least one");
  require(!texts.references.empty(), ErrorCode::invalid_argument,
          "there are no references; expected at least one set");
  for (std::size_t i = 0; i < texts.references.size(); ++i) {
    require(texts.references[i].size() == texts.hypotheses.size(), ErrorCode::invalid_argument,
            "set {} of references has {} sentences, and there are {} translations", i + 1,
            texts.references[i].size(), texts.hypotheses.size());
  }
}

// The number of bytes before the white space that a line ends in.
std::size_t trimmed_size(std::string_view line, std::string_view source, std::size_t number) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size();) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(line.data() + i),
                         static_cast<utf8proc_ssize_t>(line.size() - i), &character);
    if (size <= 0) {
      fail(ErrorCode::corrupt_data, "{}: line {} is not UTF-8: its byte {} is 0x{:02x}", source,
           number, i + 1, static_cast<unsigned char>(line[i]));
    }
    i += static_cast<std::size_t>(size);
    if (!is_white_space(static_cast<char32_t>(character))) end = i;
  }
  return end;
}

}  // namespace

std::span<const std::int64_t> SentenceStatistics::of(std::int64_t sentence) const {
  return std::span(values).subspan(static_cast<std::size_t>(sentence * width),
                                   static_cast<std::size_t>(width));
}

std::vector<std::int64_t> SentenceStatistics::sum() const {
  std::vector<std::int64_t> total(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < sentences(); ++i) {
    const std::span<const std::int64_t> row = of(i);
    for (std::size_t k = 0; k < row.size(); ++k) total[k] += row[k];
  }
  return total;
}

SentenceStatistics Metric::statistics(const ScoredTexts& texts) const {
  check_texts(texts);
  const auto columns = static_cast<std::size_t>(width());
  SentenceStatistics result{.width = width()};
  result.values.resize(texts.hypotheses.size() * columns);
  constexpr std::int64_t sentences_worth_a_thread = 32;
  parallel_ranges(std::ssize(texts.hypotheses), sentences_worth_a_thread,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::vector<std::string> references(texts.references.size());
                    for (auto i = static_cast<std::size_t>(begin);
                         i < static_cast<std::size_t>(end); ++i) {
                      for (std::size_t r = 0; r < references.size(); ++r) {
                        references[r] = texts.references[r][i];
                      }
                      compare(texts.hypotheses[i], references,
                              std::span(result.values).subspan(i * columns, columns));
                    }
                  });
  return result;
}

std::string signature_text(const SignatureContext& context, const std::string& options) {
  std::string text = fmt::format("nrefs:{}", context.references);
  if (context.bootstrap_samples) {
    text += fmt::format("|bs:{}|seed:{}", *context.bootstrap_samples, context.seed);
  }
  return text + fmt::format("|{}|version:heed-{}", options, heed::version);
}

std::vector<Units> number_words(std::span<const std::vector<std::u32string>> texts) {
  std::unordered_map<std::u32string_view, std::uint32_t> numbers;
  std::vector<Units> numbered;
  for (const std::vector<std::u32string>& words : texts) {
    Units& units = numbered.emplace_back();
    units.reserve(words.size());
    for (const std::u32string& word : words) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      units.push_back(numbers.try_emplace(word, next).first->second);
    }
  }
  return numbered;
}

std::vector<Units> number_characters(std::span<const std::u32string> texts) {
  std::vector<Units> numbered;
  for (const std::u32string& text : texts) numbered.emplace_back(text.begin(), text.end());
  return numbered;
}

Ngrams::Ngrams(std::vector<Units> texts) : texts_(std::move(texts)) {
  std::vector<std::vector<std::uint64_t>> keys;
  for (const Units& units : texts_) keys.emplace_back(units.begin(), units.end());
  number(keys);
}

// An n-gram is the pair of the n-gram before its last unit, and that unit.
void Ngrams::lengthen() {
  std::vector<std::vector<std::uint64_t>> keys(texts_.size());
  for (std::size_t text = 0; text < texts_.size(); ++text) {
    for (std::size_t i = 0; i + order_ < texts_[text].size(); ++i) {
      keys[text].push_back(std::uint64_t{numbers_[text][i]} << 32 | texts_[text][i + order_]);
    }
  }
  ++order_;
  number(keys);
}

void Ngrams::number(const std::vector<std::vector<std::uint64_t>>& keys) {
  std::vector<std::uint64_t> all;
  for (const auto& of_text : keys) all.insert(all.end(), of_text.begin(), of_text.end());
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  distinct_ = all.size();
  numbers_.assign(keys.size(), {});
  for (std::size_t text = 0; text < keys.size(); ++text) {
    numbers_[text].reserve(keys[text].size());
    for (const std::uint64_t key : keys[text]) {
      const auto found = std::lower_bound(all.begin(), all.end(), key);
      numbers_[text].push_back(static_cast<std::uint32_t>(found - all.begin()));
    }
  }
}

std::vector<std::int64_t> Ngrams::counts(std::size_t text) const {
  std::vector<std::int64_t> counts(distinct_);
  for (const std::uint32_t number : numbers_[text]) ++counts[number];
  return counts;
}

std::int64_t common(std::span<const std::int64_t> counts, std::span<const std::int64_t> others) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += std::min(counts[i], others[i]);
  return sum;
}

std::vector<std::string> read_sentences(std::string_view text, std::string_view source) {
  require(!text.empty(), ErrorCode::invalid_argument, "{} is empty; expected one sentence a line",
          source);
  std::vector<std::string> sentences;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    sentences.emplace_back(line.substr(0, trimmed_size(line, source, sentences.size() + 1)));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return sentences;
}

}  // namespace heed::scoring
