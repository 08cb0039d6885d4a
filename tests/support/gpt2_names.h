// Parameters by the names that GPT-2's checkpoints give them, as golden files do.
#pragma once

#include <string>

#include "base/error.h"
#include "formats/format.h"

namespace heed::testing {

inline std::vector<StoredTensor> gpt2_names(std::int64_t layers) {
  StackSpecification stack;
  stack.layers = layers;
  stack.tied_unembedding = false;
  stack.unembedding_bias = true;
  return gpt2_format().tensors({.stacks = {stack}});
}

inline std::string gpt2_name(const ParameterId& id) {
  for (const StoredTensor& stored : gpt2_names(std::max<std::int64_t>(id.layer + 1, 1))) {
    if (stored.parameter == id) return stored.name;
  }
  fail(ErrorCode::not_found, "GPT-2 has no name for {}", parameter_name(id));
}

inline ParameterId gpt2_parameter(const std::string& name) {
  for (const StoredTensor& stored : gpt2_names(16)) {
    if (stored.name == name) return stored.parameter;
  }
  fail(ErrorCode::not_found, "GPT-2 has no '{}'", name);
}

}  // namespace heed::testing
