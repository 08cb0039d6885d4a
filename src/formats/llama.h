// What LlamaForCausalLM shares with its descendants: RMS norms, rotary positions, grouped heads, a
// gated feed-forward layer, and the names of its tensors.
#pragma once

#include <vector>

#include "formats/config_fields.h"
#include "formats/format.h"
#include "formats/text_ends.h"

namespace heed {

// The sizes that LLaMA's kin and GPT-NeoX name alike: vocabulary, context, channels, layers, query
// heads and, unless `head_dim` gives it, the head size; rotary positions.
StackSpecification read_decoder_sizes(const ConfigFields& fields);

// The fields that all of them have. Windows, biases and norms of queries are left to the caller.
StackSpecification read_llama_like(const ConfigFields& fields);
OrderedJson write_llama_like(const StackSpecification& stack, const char* model_type,
                             const char* architecture);

// Whether the fields above say all of the stack but what the caller reads itself.
bool is_llama_like(const StackSpecification& stack);

std::vector<StoredTensor> llama_like_tensors(const StackSpecification& stack);
bool is_llama_like_buffer(std::string_view name);  // rotary frequencies, in older files

}  // namespace heed
