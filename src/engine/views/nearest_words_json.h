// Nearest words as the command line and the server write them.
#pragma once

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "microscope/explain/word_directions.h"

namespace heed {

// {"position", "shuffles", "depths": [{"point", "words": [{"token", "cosine"}], "best", "chance"}]}
OrderedJson nearest_words_json(const LoadedModel& model, const NearestWordsByDepth& found);

}  // namespace heed
