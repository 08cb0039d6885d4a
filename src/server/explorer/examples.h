// Example sentences for the explanation of attention.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"

namespace heed::server {

// A head attends from a word to another: at least three times an even share of each of its tokens,
// and more than to all words but one.
struct AttentionClaim {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::string_view word;
  std::string_view attended;
  std::int64_t occurrence = 0;  // of `attended`, from 1; 0: the last
};

// An intervention and what it does to the probability of a next token.
struct Trial {
  std::string_view says;         // the button's text
  std::string_view change = {};  // a part that is switched off; or else a token is replaced:
  std::string_view replaced = {};
  std::int64_t occurrence = 0;  // of `replaced`, from 1
  std::string_view replacement = {};
  std::string_view token = {};
  double before = 0;  // probabilities
  double after = 0;
};

// The next token depends on the text: its probability here and after another example.
struct Contrast {
  std::string_view token = {};
  double share = 0;
  std::string_view other = {};
  double other_share = 0;
};

struct Example {
  std::string_view id;
  std::string_view title;
  std::string_view text;
  std::string_view note;
  std::int64_t layer = -1;  // the head to show; −1: none
  std::int64_t head = -1;
  std::string_view word = {};  // whose last token is the query
  std::span<const AttentionClaim> weights = {};
  std::span<const Trial> trials = {};
  Contrast contrast = {};
  double most_by_one_head = 1;  // what switching one head off takes from contrast.token at most
};

// For the starter model: microworld sentences, each with a head that shows the phenomenon.
std::span<const Example> starter_examples();

// For other models.
std::span<const Example> general_examples();

// The examples for a model, as JSON for the page.
OrderedJson examples_json(const LoadedModel& model);

}  // namespace heed::server
