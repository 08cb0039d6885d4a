// What each parameter of a model is for. Roles are the identity of parameters; the names that
// checkpoints give them are in src/formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/shape.h"

namespace heed {

// Which stack of a model something belongs to.
enum class StackSite : std::uint8_t {
  only,  // of a model of one stack
  encoder,
  decoder,
};

enum class Role : std::uint8_t {
  token_embedding,       // (V, C)
  position_embedding,    // (P, C)
  token_type_embedding,  // (types, C): of each of the texts that a sequence joins
  position_bias,         // (buckets, H): added to scores by distance, the same in all layers
  embedding_norm,
  // of a block
  norm_1,                 // before attention
  query_key_value,        // (A + 2K, C): rows of query, then key, then value
  query_norm,             // (D)
  key_norm,               // (D)
  attention_output,       // (C, A): heads back to the stream
  attention_out_norm,     // of what attention gives
  cross_norm,             // before cross-attention
  cross_query,            // (A, C)
  cross_key_value,        // (2K, C): rows of key, then value
  cross_output,           // (C, A)
  norm_2,                 // before feed-forward
  gate,                   // (F, C)
  up,                     // (F, C)
  down,                   // (C, F)
  feed_forward_out_norm,  // of what feed-forward gives
  // of a stack
  final_norm,
  prediction,  // (C, C), before the unembedding of a masked language model
  prediction_norm,
  unembedding,  // (V, C)
};

enum class Part : std::uint8_t {
  weight,  // of a norm: its gain
  bias,
};

struct ParameterId {
  Role role;
  Part part = Part::weight;
  std::int64_t layer = -1;  // −1: of the stack
  StackSite site = StackSite::only;

  bool operator==(const ParameterId&) const = default;
};

// A parameter of a model and its shape in memory.
struct Parameter {
  ParameterId id;
  Shape shape;
};

std::string_view role_name(Role role);  // "attention.query_key_value"
// "blocks.3.feed_forward.up.weight", "encoder.blocks.3.feed_forward.up.weight"
std::string parameter_name(const ParameterId& id);
std::string_view site_prefix(StackSite site);  // "", "encoder.", "decoder."

// Whether it is the matrix of a linear layer, which products multiply by.
bool is_linear(Role role);
// Whether it belongs to an attention layer's projections.
bool is_attention(Role role);
bool is_cross_attention(Role role);  // of attention to an encoder
// Whether it is the gain or bias of a norm.
bool is_norm(Role role);
// Whether its product is added to the residual stream.
bool writes_to_stream(Role role);

}  // namespace heed
