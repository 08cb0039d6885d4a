// chrF (Popović: "chrF: character n-gram F-score for automatic MT evaluation", 2015) and chrF++
// (Popović: "chrF++: words helping character n-grams", 2017) as sacreBLEU computes them: precision
// and recall are averaged over the orders that both texts are long enough for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scoring/metric.h"

namespace heed::scoring {

struct ChrfOptions {
  int character_order = 6;  // n-grams of up to so many characters, white space left out
  int word_order = 0;       // 2: chrF++
  int beta = 2;             // recall counts beta times as much as precision
  bool lowercase = false;
};

struct ChrfScore {
  double score = 0;  // 0 to 100
  std::string signature;
};

// Throws what Metric::statistics throws, and Error{invalid_argument} for options out of range.
ChrfScore corpus_chrf(std::span<const std::string> hypotheses,
                      std::span<const std::vector<std::string>> references,
                      const ChrfOptions& options = {});

class Chrf final : public Metric {
 public:
  // Throws Error{invalid_argument} unless 1 <= character_order, 0 <= word_order and 1 <= beta, none
  // of them more than 64.
  explicit Chrf(const ChrfOptions& options = {});

  std::string name() const override;
  std::string signature(const SignatureContext& context) const override;
  double score(std::span<const std::int64_t> statistics) const override;

 protected:
  // For each order: n-grams of the hypothesis, of the reference, and those they have in common.
  std::int64_t width() const override {
    return 3 * std::int64_t{options_.character_order + options_.word_order};
  }
  void compare(const std::string& hypothesis, std::span<const std::string> references,
               std::span<std::int64_t> statistics) const override;

 private:
  ChrfOptions options_;
};

}  // namespace heed::scoring
