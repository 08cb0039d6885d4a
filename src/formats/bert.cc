// BertForMaskedLM: an encoder alone, norms after its branches, with the head of a masked language
// model. BertModel: the same without the head, which gives no logits.
#include "formats/encoder_fields.h"

namespace heed {
namespace {
namespace bert {

constexpr const char* headless_class = "BertModel";

// Whether the model has the head of a masked language model, by the class that config.json names.
bool has_head(const ConfigFields& fields) {
  return !fields.has("architectures") ||
         fields.at("architectures") != Json::array({headless_class});
}

Architecture read(const ConfigFields& fields) {
  fields.refuse({"is_decoder", "add_cross_attention", "is_encoder_decoder"});
  const std::string positions = fields.text_or("position_embedding_type", "absolute");
  require(positions == "absolute", ErrorCode::unsupported,
          "{}: 'position_embedding_type' is '{}'; heed supports absolute", fields.source(),
          positions);
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.channels = fields.integer("hidden_size");
  stack.context = fields.integer("max_position_embeddings");
  stack.layers = fields.integer("num_hidden_layers");
  set_heads(fields, "num_attention_heads", stack);
  set_encoder(stack);
  stack.has_unembedding = stack.prediction_head = stack.unembedding_bias = has_head(fields);
  stack.tied_unembedding = !stack.has_unembedding || fields.boolean_or("tie_word_embeddings", true);
  stack.block.norm = {.placement = NormPlacement::post,
                      .epsilon = fields.number_or("layer_norm_eps", 1e-12F)};
  stack.block.feed_forward = {.width = fields.integer("intermediate_size"),
                              .activation = activation_from_name(fields, "hidden_act", "gelu")};
  stack.embedding_norm = true;
  stack.token_types = fields.integer_or("type_vocab_size", 2);
  stack.final_norm = false;
  stack.initial_deviation = fields.number_or("initializer_range", 0.02F);
  stack.residual_dropout = fields.number_or("hidden_dropout_prob", 0.1F);
  stack.embedding_dropout = stack.residual_dropout;
  stack.attention_dropout = fields.number_or("attention_probs_dropout_prob", 0.1F);
  stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);
  return {.stacks = {stack},
          .padding = fields.token_or_none("pad_token_id", stack.vocabulary_size)};
}

OrderedJson write(const Architecture& architecture) {
  const StackSpecification& stack = architecture.encoder();
  OrderedJson json;
  json["architectures"] = {stack.has_unembedding ? "BertForMaskedLM" : headless_class};
  json["model_type"] = "bert";
  json["vocab_size"] = stack.vocabulary_size;
  json["max_position_embeddings"] = stack.context;
  json["position_embedding_type"] = "absolute";
  json["hidden_size"] = stack.channels;
  json["intermediate_size"] = stack.feed_forward();
  json["num_hidden_layers"] = stack.layers;
  json["num_attention_heads"] = stack.heads();
  json["type_vocab_size"] = stack.token_types;
  json["hidden_act"] = activation_name(stack.block.feed_forward.activation);
  json["layer_norm_eps"] = short_decimal(stack.block.norm.epsilon);
  json["initializer_range"] = short_decimal(stack.initial_deviation);
  json["hidden_dropout_prob"] = short_decimal(stack.residual_dropout);
  json["attention_probs_dropout_prob"] = short_decimal(stack.attention_dropout);
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  if (stack.end_of_text >= 0) json["eos_token_id"] = stack.end_of_text;
  json["pad_token_id"] =
      architecture.padding >= 0 ? OrderedJson(architecture.padding) : OrderedJson(nullptr);
  return json;
}

bool expresses(const Architecture& architecture) {
  return !architecture.is_encoder_decoder() && reads_as_written(&read, &write, architecture);
}

const char* name_of(Role role) {
  switch (role) {
    case Role::token_embedding: return "bert.embeddings.word_embeddings";
    case Role::position_embedding: return "bert.embeddings.position_embeddings";
    case Role::token_type_embedding: return "bert.embeddings.token_type_embeddings";
    case Role::embedding_norm: return "bert.embeddings.LayerNorm";
    case Role::norm_1: return "attention.output.LayerNorm";
    case Role::query_key_value: return "attention.self";
    case Role::attention_output: return "attention.output.dense";
    case Role::norm_2: return "output.LayerNorm";
    case Role::up: return "intermediate.dense";
    case Role::down: return "output.dense";
    case Role::prediction: return "cls.predictions.transform.dense";
    case Role::prediction_norm: return "cls.predictions.transform.LayerNorm";
    case Role::unembedding: return "cls.predictions.decoder";
    default: break;
  }
  fail(ErrorCode::internal, "BERT has no tensor for {}", role_name(role));
}

// Other names of a tensor: a tied unembedding, its bias in files of two kinds, and norms in files
// converted from TensorFlow.
void add_aliases(const StackSpecification& stack, const std::string& stem, StoredTensor& stored) {
  const auto& [role, part, layer, site] = stored.parameter;
  if (role == Role::token_embedding && stack.has_unembedding && stack.tied_unembedding) {
    stored.aliases.emplace_back("cls.predictions.decoder.weight");
  }
  if (role == Role::unembedding && part == Part::bias) {
    stored.name = "cls.predictions.bias";
    stored.aliases.emplace_back("cls.predictions.decoder.bias");
  }
  if (is_norm(role)) stored.aliases.push_back(stem + (part == Part::weight ? ".gamma" : ".beta"));
}

std::vector<StoredTensor> tensors(const Architecture& architecture) {
  const StackSpecification& stack = architecture.encoder();
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(stack)) {
    const auto& [role, part, layer, site] = parameter.id;
    const std::string stem =
        layer < 0 ? name_of(role) : fmt::format("bert.encoder.layer.{}.{}", layer, name_of(role));
    if (role == Role::query_key_value) {
      append_apart(stored, parameter, stack.block.attention, stem, {"query", "key", "value"});
      continue;
    }
    StoredTensor tensor{.name = fmt::format("{}.{}", stem, part_name(part)),
                        .parameter = parameter.id,
                        .shape = parameter.shape};
    add_aliases(stack, stem, tensor);
    stored.push_back(std::move(tensor));
  }
  return stored;
}

// Positions in order, and the heads of the second task of pretraining.
bool is_buffer(std::string_view name) {
  return name == "embeddings.position_ids" || name.starts_with("pooler.") ||
         name.starts_with("cls.seq_relationship.");
}

}  // namespace bert
}  // namespace

const Format& bert_format() {
  static const Format format{.name = "bert",
                             .model_types = {"bert"},
                             .prefix = "bert.",
                             .expresses = &bert::expresses,
                             .read = &bert::read,
                             .write = &bert::write,
                             .tensors = &bert::tensors,
                             .is_buffer = &bert::is_buffer};
  return format;
}

}  // namespace heed
