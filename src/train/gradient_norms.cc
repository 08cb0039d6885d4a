#include "train/gradient_norms.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace heed {
namespace {

std::string part_name(const PartRange& range, const Architecture& architecture) {
  const auto& [site, layer, piece] = range.part;
  const std::string prefix(site_prefix(site));
  if (layer < 0) return prefix + "embedding";
  return prefix + (layer < architecture.of(site).layers ? std::to_string(layer) : "final");
}

}  // namespace

std::vector<PartNorm> gradient_norms(const Architecture& architecture,
                                     const GptGradients& gradients,
                                     const std::vector<ArenaRange>& own, Group& group) {
  std::vector<PartNorm> norms;
  std::vector<double> squares;
  for (const PartRange& range : part_ranges(architecture)) {
    double square = 0;
    for (const ArenaRange& each : own) {
      const std::size_t begin = std::max(each.begin, range.begin);
      const std::size_t end = std::min(each.end, range.end);
      if (begin < end) square += kernels::squared_norm(gradients.all().subspan(begin, end - begin));
    }
    norms.push_back({.part = part_name(range, architecture)});
    squares.push_back(square);
  }
  squares = sum(group, squares);
  for (std::size_t i = 0; i < norms.size(); ++i) norms[i].norm = std::sqrt(squares[i]);
  return norms;
}

}  // namespace heed
