// Sentences in which a word has a sense that the words before it decide.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"

namespace heed {

struct SenseSentence {
  std::string text;       // has the word once
  std::size_t sense = 0;  // of WordSenses::senses
};

struct WordSenses {
  std::string word;
  std::vector<std::string> senses;
  std::vector<SenseSentence> sentences;  // sense by sense, as many of each
};

struct SenseLibrary {
  std::string_view source;  // "microworld" or "English"
  std::vector<WordSenses> words;
};

// Sentences of the kind that a model was trained on: for the starter, held-out stories of the
// microworld; for all other models, ordinary English (senses.tsv).
const SenseLibrary& sense_library(const LoadedModel& model);

// Throws Error{not_found} with the words that there are.
const WordSenses& senses_of(const SenseLibrary& library, std::string_view word);

}  // namespace heed
