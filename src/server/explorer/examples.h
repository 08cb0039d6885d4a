// Example sentences for the explanation of attention.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"

namespace heed::server {

struct Example {
  std::string_view id;
  std::string_view title;
  std::string_view text;
  std::string_view note;
  std::int64_t layer = -1;  // the head to show; −1: none
  std::int64_t head = -1;
  std::string_view word;      // whose last token is the query
  std::string_view looks_at;  // words with most of the head's weight, separated by spaces
  double least_weight = 0;    // total weight of those words
};

// For the starter model: microworld sentences, each with a head that shows the phenomenon.
std::span<const Example> starter_examples();

// For other models.
std::span<const Example> general_examples();

// The examples for a model, as JSON for the page.
OrderedJson examples_json(const LoadedModel& model);

}  // namespace heed::server
