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
#include <string_view>
#include <vector>

#include "scoring/metric.h"

namespace heed::scoring {

// The words that BLEU compares. Scores are comparable only between equal tokenizations, so the
// signature names it.
enum class BleuTokenization {
  thirteen_a,     // mteval-v13a, the default of WMT: ASCII punctuation, digits kept together
  none,           // at white space
  characters,     // every character but white space
  international,  // mteval-v14: punctuation and symbols of all scripts
  chinese,        // every Chinese character and wide sign alone, the rest as 13a has it
};

// "13a", "none", "char", "intl" and "zh", as in signatures.
std::string name_of(BleuTokenization tokenization);

// Throws Error{invalid_argument} with the names that there are.
BleuTokenization bleu_tokenization_from_name(std::string_view name);
std::vector<std::string> bleu_tokenization_names();

std::vector<std::u32string> bleu_words(std::u32string_view sentence, BleuTokenization tokenization);

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
