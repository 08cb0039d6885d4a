// Which head is shown for a word where nobody chooses one; the page follows the same rule.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/progress.h"
#include "engine/loaded_model.h"
#include "microscope/intervene/edge_effects.h"

namespace heed {

struct HeadToShow {
  HeadName head;  // the first one where no word stands before the word
  // The title and the caption of the example of a built-in model that names the head; or empty.
  std::string example;
  std::string caption;
  // What the head was chosen by. Nothing where an example names it, or no word stands before the
  // word.
  std::optional<ShownEdge> edge;
};

// The head that an example names, where the text is its text and the word its word; for any other,
// that of the edge on which the next word rests (edge_to_show()). Throws what edge_to_show throws.
HeadToShow head_to_show(const LoadedModel& model, std::span<const std::int32_t> tokens,
                        const EdgeQuestion& question, StopFlag stop = nullptr);

}  // namespace heed
