// What formats share whose files keep query, key and value apart: encoders, encoder-decoders, and
// decoders with learned positions.
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

// Whether write() then read() round-trips, except for fields that do not apply to the model and for
// digits of initial deviations and rates that a config rounds.
bool reads_as_written(Architecture (*read)(const ConfigFields& fields),
                      OrderedJson (*write)(const Architecture& architecture),
                      const Architecture& architecture);

const char* part_name(Part part);  // "weight", "bias"

// Appends the tensors "STEM.NAME.weight" (or bias) that hold the rows of a parameter apart: query,
// key and value, or key and value.
void append_apart(std::vector<StoredTensor>& stored, const Parameter& parameter,
                  const AttentionSpecification& attention, const std::string& stem,
                  const std::array<const char*, 3>& names);

// The tensors "STEM.weight" and "STEM.bias" of a decoder's parameters, by the stem of each; query,
// key and value stand apart below theirs, as q_proj, k_proj and v_proj.
std::vector<StoredTensor> tensors_with_projections_apart(
    const StackSpecification& stack, std::string (*stem)(const ParameterId& id));

// Without the fields of positions of other kinds than the attention's.
void drop_unused(AttentionSpecification& attention);

}  // namespace heed
