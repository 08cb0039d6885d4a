// T5ForConditionalGeneration, 1.0 and 1.1: RMS norms before their branches, no biases, a learned
// bias of scores by distance, and scores that are not scaled.
#include <cmath>

#include "formats/encoder_fields.h"

namespace heed {
namespace {
namespace t5 {

constexpr float default_deviation = 0.02F;  // heed's; T5's differs from matrix to matrix

// "relu", "gated-gelu", …: "gated-gelu" is the approximation by tanh.
void read_feed_forward(const ConfigFields& fields, FeedForwardSpecification& feed_forward) {
  const std::string kind = fields.text_or("feed_forward_proj", "relu");
  constexpr std::string_view gated = "gated-";
  feed_forward.gated = kind.starts_with(gated);
  const std::string name = feed_forward.gated ? kind.substr(gated.size()) : kind;
  const ConfigFields named({{"feed_forward_proj", kind == "gated-gelu" ? "gelu_new" : name}},
                           fields.source());
  feed_forward.activation = activation_from_name(named, "feed_forward_proj", "relu");
  // Two fields that say the same again.
  require(
      fields.boolean_or("is_gated_act", feed_forward.gated) == feed_forward.gated &&
          activation_from_name(fields, "dense_act_fn", activation_name(feed_forward.activation)) ==
              feed_forward.activation,
      ErrorCode::corrupt_data,
      "{}: feed_forward_proj is '{}', which 'dense_act_fn' or 'is_gated_act' contradicts",
      fields.source(), kind);
}

StackSpecification read_stack(const ConfigFields& fields, const char* layers_key) {
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.channels = fields.integer("d_model");
  stack.context = fields.integer_or("n_positions", 512);
  stack.layers = fields.integer_or(layers_key, fields.integer("num_layers"));
  require_config_extents(fields, {{"channels", stack.channels}});
  AttentionSpecification& attention = stack.block.attention;
  attention.query_heads = attention.key_value_heads = fields.integer("num_heads");
  attention.head_size = fields.integer("d_kv");
  attention.positions = PositionKind::relative;
  attention.relative = {.buckets = fields.integer_or("relative_attention_num_buckets", 32),
                        .max_distance = fields.integer_or("relative_attention_max_distance", 128)};
  attention.scale = 1.0F;
  stack.block.norm = {.kind = NormKind::rms,
                      .epsilon = fields.number_or("layer_norm_epsilon", 1e-6F)};
  stack.block.feed_forward.width = fields.integer("d_ff");
  read_feed_forward(fields, stack.block.feed_forward);
  set_biases(stack, Biases::none);
  stack.initial_deviation =
      fields.object_or_empty("heed").number_or("initial_deviation", default_deviation);
  stack.residual_dropout = fields.number_or("dropout_rate", 0.1F);
  stack.embedding_dropout = stack.attention_dropout = stack.residual_dropout;
  return stack;
}

float output_scale(const StackSpecification& decoder) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(decoder.channels)));
}

Architecture read(const ConfigFields& fields) {
  fields.need({"is_encoder_decoder"});
  fields.refuse({"is_decoder", "tie_encoder_decoder"});
  Architecture architecture{
      .stacks = {read_stack(fields, "num_layers"), read_stack(fields, "num_decoder_layers")}};
  StackSpecification& encoder = architecture.stacks.front();
  StackSpecification& decoder = architecture.stacks.back();
  set_encoder(encoder);
  encoder.block.attention.relative.both_directions = true;
  decoder.block.cross_attention = cross_attention_like(decoder.block.attention);
  // Where `scale_decoder_outputs` is there, `tie_word_embeddings` is true whether files hold an
  // unembedding of their own or not: those of T5 1.1 do, whose outputs are not scaled.
  const bool is_tied = fields.boolean_or("tie_word_embeddings", true);
  const bool is_scaled = fields.boolean_or("scale_decoder_outputs", is_tied);
  decoder.tied_unembedding = is_tied && is_scaled;
  if (is_scaled) decoder.logit_scale = output_scale(decoder);
  read_special_tokens(fields, architecture);
  return architecture;
}

std::string feed_forward_name(const FeedForwardSpecification& feed_forward) {
  const char* const name = activation_name(feed_forward.activation);
  if (!feed_forward.gated) return name;
  return feed_forward.activation == Activation::gelu_tanh ? "gated-gelu"
                                                          : fmt::format("gated-{}", name);
}

OrderedJson write(const Architecture& architecture) {
  const StackSpecification& decoder = architecture.decoder();
  const AttentionSpecification& attention = decoder.block.attention;
  OrderedJson json;
  json["architectures"] = {"T5ForConditionalGeneration"};
  json["model_type"] = "t5";
  json["is_encoder_decoder"] = true;
  json["vocab_size"] = decoder.vocabulary_size;
  json["d_model"] = decoder.channels;
  json["d_kv"] = attention.head_size;
  json["d_ff"] = decoder.feed_forward();
  json["num_layers"] = architecture.encoder().layers;
  json["num_decoder_layers"] = decoder.layers;
  json["num_heads"] = attention.query_heads;
  json["n_positions"] = decoder.context;
  json["relative_attention_num_buckets"] = attention.relative.buckets;
  json["relative_attention_max_distance"] = attention.relative.max_distance;
  json["feed_forward_proj"] = feed_forward_name(decoder.block.feed_forward);
  json["dense_act_fn"] = activation_name(decoder.block.feed_forward.activation);
  json["is_gated_act"] = decoder.block.feed_forward.gated;
  json["layer_norm_epsilon"] = short_decimal(decoder.block.norm.epsilon);
  json["dropout_rate"] = short_decimal(decoder.residual_dropout);
  json["initializer_factor"] = 1.0;
  json["tie_word_embeddings"] = decoder.tied_unembedding;
  json["scale_decoder_outputs"] = decoder.logit_scale != 1.0F;
  json["torch_dtype"] = "float32";
  write_special_tokens(architecture, json);
  if (decoder.initial_deviation != default_deviation) {
    json["heed"] = {{"initial_deviation", short_decimal(decoder.initial_deviation)}};
  }
  return json;
}

bool expresses(const Architecture& architecture) {
  return architecture.is_encoder_decoder() && reads_as_written(&read, &write, architecture);
}

// Of a tensor in a layer; a block's sublayers are attention, in decoders attention to the encoder,
// and feed-forward.
std::string stem_of(Role role, bool crosses, bool gated) {
  const auto sublayer = [](int index, const char* name) {
    return fmt::format("layer.{}.{}", index, name);
  };
  const int last = crosses ? 2 : 1;
  switch (role) {
    case Role::norm_1: return sublayer(0, "layer_norm");
    case Role::query_key_value: return sublayer(0, "SelfAttention");
    case Role::attention_output: return sublayer(0, "SelfAttention.o");
    case Role::cross_norm: return sublayer(1, "layer_norm");
    case Role::cross_query: return sublayer(1, "EncDecAttention.q");
    case Role::cross_key_value: return sublayer(1, "EncDecAttention");
    case Role::cross_output: return sublayer(1, "EncDecAttention.o");
    case Role::norm_2: return sublayer(last, "layer_norm");
    case Role::gate: return sublayer(last, "DenseReluDense.wi_0");
    case Role::up: return sublayer(last, gated ? "DenseReluDense.wi_1" : "DenseReluDense.wi");
    case Role::down: return sublayer(last, "DenseReluDense.wo");
    default: break;
  }
  fail(ErrorCode::internal, "T5 has no tensor for {}", role_name(role));
}

StoredTensor of_stack(const Architecture& architecture, const Parameter& parameter) {
  const std::string_view side = site_prefix(parameter.id.site);
  StoredTensor stored{.parameter = parameter.id, .shape = parameter.shape};
  switch (parameter.id.role) {
    case Role::token_embedding:
      stored.name = "shared.weight";
      stored.aliases = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
      if (architecture.decoder().tied_unembedding) stored.aliases.emplace_back("lm_head.weight");
      return stored;
    case Role::position_bias:  // the first block's is that of all
      stored.name =
          fmt::format("{}block.0.layer.0.SelfAttention.relative_attention_bias.weight", side);
      return stored;
    case Role::final_norm:
      stored.name = fmt::format("{}final_layer_norm.weight", side);
      return stored;
    case Role::unembedding:  // absent where it is equal to the embedding
      stored.name = "lm_head.weight";
      stored.otherwise = "shared.weight";
      return stored;
    default: break;
  }
  fail(ErrorCode::internal, "T5 has no tensor for {}", role_name(parameter.id.role));
}

std::vector<StoredTensor> tensors(const Architecture& architecture) {
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(architecture)) {
    const auto& [role, part, layer, site] = parameter.id;
    if (layer < 0) {
      stored.push_back(of_stack(architecture, parameter));
      continue;
    }
    const BlockSpecification& block = architecture.of(site).block;
    const std::string stem =
        fmt::format("{}block.{}.{}", site_prefix(site), layer,
                    stem_of(role, block.cross_attention.has_value(), block.feed_forward.gated));
    if (role == Role::query_key_value || role == Role::cross_key_value) {
      append_apart(stored, parameter,
                   role == Role::cross_key_value ? *block.cross_attention : block.attention, stem,
                   {"q", "k", "v"});
      continue;
    }
    stored.push_back(
        {.name = stem + ".weight", .parameter = parameter.id, .shape = parameter.shape});
  }
  return stored;
}

// A table that nothing reads, in the first checkpoints.
bool is_buffer(std::string_view name) {
  return name == "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
}

}  // namespace t5
}  // namespace

const Format& t5_format() {
  static const Format format{.name = "t5",
                             .model_types = {"t5"},
                             .prefix = "",
                             .is_encoder_decoder = true,
                             .expresses = &t5::expresses,
                             .read = &t5::read,
                             .write = &t5::write,
                             .tensors = &t5::tensors,
                             .is_buffer = &t5::is_buffer};
  return format;
}

}  // namespace heed
