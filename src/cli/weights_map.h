// Attention weights as a map in the terminal: queries down, keys across.
#pragma once

#include <string>
#include <vector>

#include "cli/attend.h"
#include "tensor/view.h"

namespace heed::cli {

struct WeightsMap {
  std::vector<std::string> queries;  // names of the rows
  std::vector<std::string> keys;     // and of the columns
  View<const float> weights;         // (queries, keys)
  bool is_causal = false;            // a row's keys after its own place do not exist
};

// With names, the largest weight of each row where there is room, and the colour scale; reduced
// where it is wider than the terminal.
void print_weights_map(const WeightsMap& map, const Screen& screen);

}  // namespace heed::cli
