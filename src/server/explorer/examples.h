// Sentences by which attention is explained well.
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
  std::int64_t layer = -1;  // where to look; −1: nowhere in particular
  std::int64_t head = -1;
  std::string_view word;      // whose last token is the query
  std::string_view looks_at;  // words that the head gives most of its weight, separated by spaces
  double least_weight = 0;    // that those words get together
};

// For the starter model: in its own language, each with the head that shows it.
std::span<const Example> starter_examples();

// For any other.
std::span<const Example> general_examples();

// Those that go with the model, as the page reads them.
OrderedJson examples_json(const LoadedModel& model);

}  // namespace heed::server
