#include "microworld/kinds.h"

#include <array>
#include <vector>

namespace heed::microworld {
namespace {

struct Kind {
  StoryKind kind;
  void (*tell)(Writer&);
};

constexpr std::array<Kind, story_kind_count> kinds = {{
    {StoryKind::creature, tell_creature},
    {StoryKind::market, tell_market},
    {StoryKind::outing, tell_outing},
    {StoryKind::letter, tell_letter},
    {StoryKind::tale, tell_tale},
    {StoryKind::finding, tell_finding},
    {StoryKind::mystery, tell_mystery},
    {StoryKind::album, tell_album},
}};

// Mysteries come most often because their clue is the hardest thing to learn; findings teach its
// pattern from nearby.
constexpr std::array<double, story_kind_count> kind_weights = {0.15, 0.07, 0.11, 0.05,
                                                               0.10, 0.12, 0.22, 0.18};

const Kind& chosen_kind(Writer& writer, std::span<const StoryKind> wanted) {
  if (wanted.empty()) {
    return kinds[writer.choose({.count = kind_weights.size(), .weights = kind_weights})];
  }
  std::vector<double> weights;
  for (const StoryKind kind : wanted) {
    weights.push_back(kind_weights[static_cast<std::size_t>(kind)]);
  }
  const std::size_t option = writer.choose({.count = weights.size(), .weights = weights});
  return kinds[static_cast<std::size_t>(wanted[option])];
}

}  // namespace

void tell(Writer& writer, std::span<const StoryKind> wanted) {
  const Kind& chosen = chosen_kind(writer, wanted);
  writer.story().kind = chosen.kind;
  chosen.tell(writer);
}

}  // namespace heed::microworld
