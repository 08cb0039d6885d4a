#include "model/config.h"

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_fields.h"

namespace heed {
namespace {

// Bounds above any real model, low enough that their products fit in 63 bits.
constexpr std::int64_t largest_extent = std::int64_t{1} << 24;
constexpr std::int64_t most_layers = 4096;
constexpr std::size_t largest_config_file = std::size_t{1} << 20;

void require_extent(std::int64_t value, std::int64_t largest, const char* name) {
  require(value >= 1 && value <= largest, ErrorCode::invalid_argument,
          "the model's {} must be between 1 and {}, not {}", name, largest, value);
}

void require_rate(float rate, const char* name) {
  require(rate >= 0.0F && rate < 1.0F, ErrorCode::invalid_argument,
          "{} must be at least 0 and below 1, not {}", name, rate);
}

// Reads fields of one JSON object; errors name the document.
class Fields {
 public:
  // A copy: an object within a document may be a temporary.
  Fields(Json object, std::string source) : object_(std::move(object)), source_(std::move(source)) {
    require(object_.is_object(), ErrorCode::corrupt_data, "{}: expected a JSON object", source_);
  }

  bool has(const char* key) const { return find(key) != nullptr; }

  std::int64_t integer(const char* key) const {
    require(has(key), ErrorCode::corrupt_data, "{}: '{}' is missing", source_, key);
    return json_integer(*find(key), label(key));
  }
  std::int64_t integer_or(const char* key, std::int64_t otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  float number_or(const char* key, float otherwise) const {
    return has(key) ? static_cast<float>(json_real(*find(key), label(key))) : otherwise;
  }
  bool boolean_or(const char* key, bool otherwise) const {
    return has(key) ? json_boolean(*find(key), label(key)) : otherwise;
  }
  std::string text_or(const char* key, const char* otherwise) const {
    return has(key) ? json_string(*find(key), label(key)) : otherwise;
  }

  void refuse(const char* key) const {
    require(!boolean_or(key, false), ErrorCode::unsupported,
            "{}: '{}' is true; heed does not support it", source_, key);
  }

 private:
  const Json* find(const char* key) const { return find_json_member(object_, key); }
  JsonLabel label(const char* key) const { return {fmt::format("{}: '{}'", source_, key)}; }

  const Json object_;
  std::string source_;
};

// An impossible config in a document is corrupt data: the same message, with the source.
template <class Validate>
void validate_document(const std::string& source, Validate&& validate) {
  try {
    validate();
  } catch (const Error& error) {
    fail(ErrorCode::corrupt_data, "{}: {}", source, error.what());
  }
}

Activation activation_from_name(const std::string& name, const std::string& source) {
  for (const Activation known : {Activation::gelu_tanh, Activation::gelu_erf, Activation::relu}) {
    if (name == activation_name(known)) return known;
  }
  if (name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  fail(ErrorCode::unsupported,
       "{}: activation_function '{}' is not one of gelu_new, gelu_pytorch_tanh, gelu, relu", source,
       name);
}

}  // namespace

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh: return "gelu_new";
    case Activation::gelu_erf: return "gelu";
    case Activation::relu: return "relu";
  }
  return "unknown";
}

void GptConfig::validate() const {
  require_extent(vocabulary_size, largest_extent, "vocabulary size");
  require_extent(context, largest_extent, "context");
  require_extent(channels, largest_extent, "channels");
  require_extent(heads, 65536, "heads");
  require_extent(head_size, 65536, "head size");
  require_extent(feed_forward, largest_extent, "feed-forward size");
  require_extent(layers, most_layers, "layers");
  require(std::isfinite(norm_epsilon) && norm_epsilon > 0, ErrorCode::invalid_argument,
          "layer_norm_epsilon must be positive, not {}", norm_epsilon);
  require(std::isfinite(initial_deviation) && initial_deviation >= 0, ErrorCode::invalid_argument,
          "initializer_range must be 0 or more, not {}", initial_deviation);
  require_rate(embedding_dropout, "embd_pdrop");
  require_rate(attention_dropout, "attn_pdrop");
  require_rate(residual_dropout, "resid_pdrop");
  require(end_of_text >= -1 && end_of_text < vocabulary_size, ErrorCode::invalid_argument,
          "eos_token_id is {}, outside the vocabulary of {}", end_of_text, vocabulary_size);
}

GptConfig make_gpt_config(std::int64_t layers, std::int64_t heads, std::int64_t channels,
                          std::int64_t context, std::int64_t vocabulary_size) {
  require(heads >= 1 && channels % heads == 0, ErrorCode::invalid_argument,
          "{} channels cannot be divided into {} heads of equal size", channels, heads);
  GptConfig config;
  config.layers = layers;
  config.heads = heads;
  config.channels = channels;
  config.head_size = channels / heads;
  config.feed_forward = 4 * channels;
  config.context = context;
  config.vocabulary_size = vocabulary_size;
  return config;
}

GptConfig gpt_config_from_json(const Json& document, const std::string& source) {
  const Fields fields(document, source);
  const std::string type = fields.text_or("model_type", "gpt2");
  require(type == "gpt2", ErrorCode::unsupported,
          "{}: model_type is '{}'; heed reads models of type gpt2", source, type);
  for (const char* option :
       {"scale_attn_by_inverse_layer_idx", "add_cross_attention", "is_encoder_decoder"}) {
    fields.refuse(option);
  }
  require(fields.boolean_or("scale_attn_weights", true), ErrorCode::unsupported,
          "{}: scale_attn_weights is false; heed always scales scores by 1/sqrt(head size)",
          source);

  GptConfig config;
  config.vocabulary_size = fields.integer("vocab_size");
  config.context =
      fields.has("n_positions") ? fields.integer("n_positions") : fields.integer("n_ctx");
  config.channels = fields.integer("n_embd");
  config.layers = fields.integer("n_layer");
  config.heads = fields.integer("n_head");
  // Checked before other values are derived from them.
  validate_document(source, [&] {
    require_extent(config.channels, largest_extent, "channels");
    require_extent(config.heads, 65536, "heads");
  });
  config.feed_forward = fields.integer_or("n_inner", 4 * config.channels);
  config.activation =
      activation_from_name(fields.text_or("activation_function", "gelu_new"), source);
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5F);
  config.initial_deviation = fields.number_or("initializer_range", 0.02F);
  config.embedding_dropout = fields.number_or("embd_pdrop", 0.1F);
  config.attention_dropout = fields.number_or("attn_pdrop", 0.1F);
  config.residual_dropout = fields.number_or("resid_pdrop", 0.1F);
  config.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  config.end_of_text = fields.integer_or("eos_token_id", -1);
  // Small published vocabularies keep GPT-2's default of 50256 although they have no such token.
  if (config.end_of_text >= config.vocabulary_size) config.end_of_text = -1;

  const Fields own(fields.has("heed") ? document["heed"] : Json::object(), source + ": heed");
  config.has_bias = own.boolean_or("bias", true);
  config.unembedding_bias = own.boolean_or("head_bias", false);
  if (own.has("head_size")) {
    config.head_size = own.integer("head_size");
  } else {
    require(config.channels % config.heads == 0, ErrorCode::corrupt_data,
            "{}: n_embd {} is not a multiple of n_head {}", source, config.channels, config.heads);
    config.head_size = config.channels / config.heads;
  }
  validate_document(source, [&] { config.validate(); });
  return config;
}

OrderedJson gpt_config_to_json(const GptConfig& config) {
  OrderedJson json;
  json["architectures"] = {"GPT2LMHeadModel"};
  json["model_type"] = "gpt2";
  json["vocab_size"] = config.vocabulary_size;
  json["n_positions"] = config.context;
  json["n_ctx"] = config.context;  // read by older converters
  json["n_embd"] = config.channels;
  json["n_layer"] = config.layers;
  json["n_head"] = config.heads;
  json["n_inner"] = config.feed_forward;
  json["activation_function"] = activation_name(config.activation);
  // Through a decimal of seven digits, so that 1e-5F is written as 1e-05 and not 9.99999974e-06.
  const auto decimal = [](float value) { return std::stod(fmt::format("{:.7g}", value)); };
  json["layer_norm_epsilon"] = decimal(config.norm_epsilon);
  json["initializer_range"] = decimal(config.initial_deviation);
  json["embd_pdrop"] = decimal(config.embedding_dropout);
  json["attn_pdrop"] = decimal(config.attention_dropout);
  json["resid_pdrop"] = decimal(config.residual_dropout);
  json["scale_attn_weights"] = true;
  json["tie_word_embeddings"] = config.tied_unembedding;
  json["torch_dtype"] = "float32";
  if (config.end_of_text >= 0) {
    json["bos_token_id"] = config.end_of_text;
    json["eos_token_id"] = config.end_of_text;
  } else {
    json["bos_token_id"] = nullptr;
    json["eos_token_id"] = nullptr;
  }
  OrderedJson own = OrderedJson::object();
  if (!config.has_bias) own["bias"] = false;  // zero biases are written all the same
  if (config.unembedding_bias) own["head_bias"] = true;
  if (config.attention_width() != config.channels) own["head_size"] = config.head_size;
  if (!own.empty()) json["heed"] = own;
  return json;
}

Json read_config_document(const std::filesystem::path& file) {
  return parse_json(read_text_file(file, largest_config_file), file.string());
}

GptConfig read_gpt_config(const std::filesystem::path& file) {
  return gpt_config_from_json(read_config_document(file), file.string());
}

}  // namespace heed
