// The transcoders that heed carries for its starter, and what their features answer to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "heed/features.h"
#include "microscope/features/dictionary_files.h"

namespace heed {

// What a feature answers to: where it was most active in a text (scripts/name_features.py).
struct FeatureName {
  std::vector<std::int32_t> peaks;    // the token of each of its strongest contexts; none: nowhere
  std::vector<std::int32_t> context;  // of the strongest: the tokens before, and the peak
};

struct CarriedTranscoders {
  std::vector<SparseDictionary> of_layers;
  std::vector<std::vector<FeatureName>> names;  // of each layer (F)
  std::string text;                             // in which these are, such as "stories …"
};

// Of this model; null where heed has none for it. Throws Error{corrupt_data}.
std::shared_ptr<const CarriedTranscoders> carried_transcoders(const LoadedModel& model);

// The dictionaries of a path (load_dictionaries), or by the name of the model that heed carries
// them for, "starter" (write ./starter for a directory of that name). Throws as load_dictionaries,
// and Error{not_found} where this build does not have them.
std::vector<SparseDictionary> load_sparse_dictionaries(const std::string& name_or_path,
                                                       const DictionaryOptions& options = {});

}  // namespace heed
