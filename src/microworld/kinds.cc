#include "microworld/kinds.h"

#include <array>

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

}  // namespace

void tell(Writer& writer) {
  const Kind& chosen =
      kinds[writer.choose({.count = kind_weights.size(), .weights = kind_weights})];
  writer.story().kind = chosen.kind;
  chosen.tell(writer);
}

}  // namespace heed::microworld
