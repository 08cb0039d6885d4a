// What the formats of encoders and encoder-decoders share.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "formats/format.h"
#include "formats/text_ends.h"
#include "model/parameters.h"

namespace heed {

// Makes stack an encoder: every position attends to every other, and nothing is predicted.
void set_encoder(StackSpecification& stack);
// Heads like those of a decoder's attention, on the rows of an encoder.
AttentionSpecification cross_attention_like(const AttentionSpecification& attention);

// H heads that divide the channels evenly. `heads_key` names the field in errors.
void set_heads(const ConfigFields& fields, const char* heads_key, StackSpecification& stack);

// Whether `read` of what `write` says of a model is the model, but for what does not apply to it
// and digits of initial deviations and rates that a config rounds.
bool reads_as_written(Architecture (*read)(const ConfigFields& fields),
                      OrderedJson (*write)(const Architecture& architecture),
                      const Architecture& architecture);

const char* part_name(Part part);  // "weight", "bias"

// Appends the tensors "STEM.NAME.weight" (or bias) that hold the rows of a parameter apart: query,
// key and value, or key and value.
void append_apart(std::vector<StoredTensor>& stored, const Parameter& parameter,
                  const AttentionSpecification& attention, const std::string& stem,
                  const std::array<const char*, 3>& names);

}  // namespace heed
