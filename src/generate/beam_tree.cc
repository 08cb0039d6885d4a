#include "generate/beam_tree.h"

#include <algorithm>

namespace heed {

std::vector<std::int32_t> BeamTree::tokens_to(std::int32_t node) const {
  std::vector<std::int32_t> tokens;
  const auto at = [&](std::int32_t index) { return nodes[static_cast<std::size_t>(index)]; };
  for (; at(node).parent >= 0; node = at(node).parent) tokens.push_back(at(node).token);
  std::ranges::reverse(tokens);
  return tokens;
}

}  // namespace heed
