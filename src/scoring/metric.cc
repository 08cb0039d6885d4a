#include "scoring/metric.h"

#include "base/error.h"
#include "base/threads.h"
#include "heed/version.h"

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

}  // namespace heed::scoring
