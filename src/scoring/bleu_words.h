// The words that BLEU compares. Scores are comparable only between equal tokenizations, so the
// signature names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::scoring {

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

}  // namespace heed::scoring
