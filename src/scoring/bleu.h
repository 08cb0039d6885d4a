// BLEU (Papineni, Roukos, Ward, Zhu: "BLEU: a method for automatic evaluation of machine
// translation", 2002) as sacreBLEU computes it (Post: "A call for clarity in reporting BLEU
// scores", 2018): n-grams of up to four words, clipped by the largest count in any reference, the
// length of the closest reference, and orders without a match counted as 1/2, 1/4, … of a match.
//
//   const BleuScore score = corpus_bleu(hypotheses, std::vector{references}, {});
//   fmt::print("BLEU|{} = {:.2f}\n", score.signature, score.score);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scoring/bleu_words.h"
#include "scoring/metric.h"

namespace heed::scoring {

inline constexpr std::size_t bleu_orders = 4;

struct BleuOptions {
  BleuTokenization tokenization = BleuTokenization::thirteen_a;
  bool lowercase = false;
  bool effective_order = false;  // a sentence of three words has no 4-grams to be judged by
};

// Of a sentence or, summed, of a corpus.
struct BleuStatistics {
  std::int64_t hypothesis_length = 0;  // words
  std::int64_t reference_length = 0;   // words of the references that are closest in length
  std::array<std::int64_t, bleu_orders> correct{};  // n-grams that a reference has, by n - 1
  std::array<std::int64_t, bleu_orders> total{};

  BleuStatistics& operator+=(const BleuStatistics& other);
};

struct BleuScore {
  double score = 0;                              // 0 to 100
  std::array<double, bleu_orders> precisions{};  // 0 to 100, smoothed; all 0 without any match
  double brevity_penalty = 1;                    // 0 to 1
  double length_ratio = 0;                       // words of the translations by the references'
  BleuStatistics statistics;
  std::string signature;
};

BleuStatistics bleu_statistics(const std::string& hypothesis,
                               std::span<const std::string> references, const BleuOptions& options);

// Without a signature.
BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options);

// Throws what Metric::statistics throws.
BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::vector<std::string>> references,
                      const BleuOptions& options = {});

// With effective_order, whatever `options` say.
BleuScore sentence_bleu(const std::string& hypothesis, std::span<const std::string> references,
                        BleuOptions options = {});

class Bleu final : public Metric {
 public:
  explicit Bleu(const BleuOptions& options = {}) : options_(options) {}

  std::string name() const override { return "BLEU"; }
  std::string signature(const SignatureContext& context) const override;
  double score(std::span<const std::int64_t> statistics) const override;
  BleuScore details(std::span<const std::int64_t> statistics) const;

 protected:
  std::int64_t width() const override { return 2 + 2 * std::int64_t{bleu_orders}; }
  void compare(const std::string& hypothesis, std::span<const std::string> references,
               std::span<std::int64_t> statistics) const override;

 private:
  BleuOptions options_;
};

}  // namespace heed::scoring
