// BartForConditionalGeneration: learned positions, and a norm of the embedding.
#include "formats/bart.h"

#include <cmath>

namespace heed {
namespace {

// Rows of BART's position tables before that of the first position.
constexpr std::int64_t unused_positions = 2;

StackSpecification read_side(const ConfigFields& fields, const std::string& side) {
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.channels = fields.integer("d_model");
  stack.context = fields.integer("max_position_embeddings");
  stack.layers = fields.integer((side + "_layers").c_str());
  set_heads(fields, (side + "_attention_heads").c_str(), stack);
  stack.block.norm.placement = NormPlacement::post;
  stack.block.feed_forward = {
      .width = fields.integer((side + "_ffn_dim").c_str()),
      .activation = activation_from_name(fields, "activation_function", "gelu")};
  if (fields.boolean_or("scale_embedding", false)) {
    stack.embedding_scale = std::sqrt(static_cast<float>(stack.channels));
  }
  stack.final_norm = false;
  stack.initial_deviation = fields.number_or("init_std", 0.02F);
  stack.residual_dropout = fields.number_or("dropout", 0.1F);
  stack.embedding_dropout = stack.residual_dropout;
  stack.attention_dropout = fields.number_or("attention_dropout", 0.0F);
  return stack;
}

const char* bart_name(Role role) {
  switch (role) {
    case Role::token_embedding: return "embed_tokens";
    case Role::position_embedding: return "embed_positions";
    case Role::position_bias: return "relative_attention_bias";  // of heed's own
    case Role::embedding_norm: return "layernorm_embedding";
    case Role::norm_1: return "self_attn_layer_norm";
    case Role::query_key_value: return "self_attn";
    case Role::attention_output: return "self_attn.out_proj";
    case Role::cross_norm: return "encoder_attn_layer_norm";
    case Role::cross_query: return "encoder_attn.q_proj";
    case Role::cross_key_value: return "encoder_attn";
    case Role::cross_output: return "encoder_attn.out_proj";
    case Role::norm_2: return "final_layer_norm";
    case Role::up: return "fc1";
    case Role::down: return "fc2";
    case Role::final_norm: return "layer_norm";
    default: break;
  }
  fail(ErrorCode::internal, "BART has no tensor for {}", role_name(role));
}

// The token embedding of both stacks, or of one, which may also be the unembedding.
StoredTensor token_embedding(const Architecture& architecture, const Parameter& parameter) {
  const std::string own =
      fmt::format("model.{}embed_tokens.weight", site_prefix(parameter.id.site));
  StoredTensor stored{.name = own, .parameter = parameter.id, .shape = parameter.shape};
  if (architecture.shared_embedding) {
    stored.name = "model.shared.weight";
    stored.aliases = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"};
  }
  const bool is_decoders = architecture.shared_embedding || parameter.id.site == StackSite::decoder;
  if (architecture.decoder().tied_unembedding && is_decoders) {
    stored.aliases.emplace_back("lm_head.weight");
  }
  return stored;
}

namespace bart {

Architecture read(const ConfigFields& fields) {
  // One embedding serves both stacks and the unembedding.
  fields.need({"normalize_embedding", "tie_word_embeddings"});
  fields.refuse({"static_position_embeddings"});
  Architecture architecture = read_bart_like(fields);
  in_both(architecture, [](StackSpecification& stack) { stack.embedding_norm = true; });
  read_special_tokens(fields, architecture);
  return architecture;
}

OrderedJson write(const Architecture& architecture) {
  return write_bart_like(architecture, "bart", "BartForConditionalGeneration");
}

bool expresses(const Architecture& architecture) {
  return architecture.is_encoder_decoder() && reads_as_written(&read, &write, architecture);
}

bool is_buffer(std::string_view) { return false; }

}  // namespace bart

}  // namespace

Architecture read_bart_like(const ConfigFields& fields) {
  fields.need({"is_encoder_decoder"});
  fields.refuse(
      {"normalize_before", "add_final_layer_norm", "add_bias_logits", "tie_encoder_decoder"});
  Architecture architecture{.stacks = {read_side(fields, "encoder"), read_side(fields, "decoder")}};
  StackSpecification& decoder = architecture.stacks.back();
  set_encoder(architecture.stacks.front());
  decoder.unembedding_bias = true;
  decoder.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  decoder.block.cross_attention = cross_attention_like(decoder.block.attention);
  return architecture;
}

OrderedJson write_bart_like(const Architecture& architecture, const char* model_type,
                            const char* class_name) {
  const StackSpecification& encoder = architecture.encoder();
  const StackSpecification& decoder = architecture.decoder();
  OrderedJson json;
  json["architectures"] = {class_name};
  json["model_type"] = model_type;
  json["is_encoder_decoder"] = true;
  json["vocab_size"] = encoder.vocabulary_size;
  json["d_model"] = decoder.channels;
  json["max_position_embeddings"] = decoder.context;
  const auto write_side = [&](const std::string& side, const StackSpecification& stack) {
    json[side + "_layers"] = stack.layers;
    json[side + "_attention_heads"] = stack.heads();
    json[side + "_ffn_dim"] = stack.feed_forward();
  };
  write_side("encoder", encoder);
  write_side("decoder", decoder);
  json["num_hidden_layers"] = encoder.layers;
  json["activation_function"] = activation_name(decoder.block.feed_forward.activation);
  json["scale_embedding"] = decoder.embedding_scale != 1.0F;
  json["init_std"] = short_decimal(decoder.initial_deviation);
  json["dropout"] = short_decimal(decoder.residual_dropout);
  json["attention_dropout"] = short_decimal(decoder.attention_dropout);
  json["activation_dropout"] = 0.0;
  json["tie_word_embeddings"] = decoder.tied_unembedding;
  json["torch_dtype"] = "float32";
  write_special_tokens(architecture, json);
  return json;
}

std::vector<StoredTensor> bart_like_tensors(const Architecture& architecture) {
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(architecture)) {
    const auto& [role, part, layer, site] = parameter.id;
    if (role == Role::token_embedding) {
      stored.push_back(token_embedding(architecture, parameter));
      continue;
    }
    StoredTensor tensor{.parameter = parameter.id, .shape = parameter.shape};
    if (role == Role::unembedding && part == Part::weight) {
      tensor.name = "lm_head.weight";
      stored.push_back(tensor);
      continue;
    }
    if (role == Role::unembedding) {  // absent from files of the model without its unembedding
      tensor.name = "final_logits_bias";
      tensor.storage = Storage::one_row;
      tensor.may_be_absent = true;
      stored.push_back(tensor);
      continue;
    }
    const std::string stem =
        layer < 0 ? fmt::format("model.{}{}", site_prefix(site), bart_name(role))
                  : fmt::format("model.{}layers.{}.{}", site_prefix(site), layer, bart_name(role));
    if (role == Role::query_key_value || role == Role::cross_key_value) {
      const BlockSpecification& block = architecture.of(site).block;
      append_apart(stored, parameter,
                   role == Role::cross_key_value ? *block.cross_attention : block.attention, stem,
                   {"q_proj", "k_proj", "v_proj"});
      continue;
    }
    tensor.name = fmt::format("{}.{}", stem, part_name(part));
    if (role == Role::position_embedding) tensor.unused_rows = unused_positions;
    stored.push_back(tensor);
  }
  return stored;
}

const Format& bart_format() {
  static const Format format{.name = "bart",
                             .model_types = {"bart"},
                             .prefix = "model.",
                             .is_encoder_decoder = true,
                             .expresses = &bart::expresses,
                             .read = &bart::read,
                             .write = &bart::write,
                             .tensors = &bart_like_tensors,
                             .is_buffer = &bart::is_buffer};
  return format;
}

}  // namespace heed
