#include "formats/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "formats/gguf_fields.h"
#include "model/rotary.h"

namespace heed {
namespace {

constexpr double low_frequency_factor = 1;       // of LLaMA 3.1 and later, which no key names
constexpr double high_frequency_factor = 4;      // likewise
constexpr const char* biases_key = "heed.bias";  // of a GPT-2 whose biases are written as zeros

// Options of files of the same architectures that heed does not compute: they must be absent or 0.
constexpr std::string_view refused_keys[] = {
    "expert_count",           "attention.scale", "logit_scale",
    "embedding_scale",        "residual_scale",  "attn_logit_softcapping",
    "final_logit_softcapping"};
constexpr std::string_view attention_factor_key = "rope.scaling.attn_factor";

// Of encoders.
constexpr std::string_view causal_key = "attention.causal";
constexpr std::int64_t max_pooling = 4;  // none, mean, of the first token, of the last, a rank
constexpr const char* token_types_key = "tokenizer.ggml.token_type_count";

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, const FindTensor& find)
      : fields_(file),
        find_(find),
        family_(gguf_family(
            fields_.need("general.architecture", fields_.find_text("general.architecture")),
            file.source())) {}

  Json read() {
    config_ = {{"model_type", family_.model_types.front()}};
    for (const GgufField& field : family_.fields) read_field(field);
    for (const std::string_view key : refused_keys) {
      if (!family_.has_field(key)) refuse(key);
    }
    read_vocabulary();
    if (is("t5")) {
      read_t5();
    } else if (is("bert")) {
      check_heads();
      read_bert();
    } else {
      check_heads();
      read_biases();
    }
    if (has_rotary()) {
      read_rotary_channels();
      read_rotary_scaling();
    }
    if (is("gemma2") || is("gemma3")) read_query_scale();
    if (is("falcon")) read_falcon();
    if (!family_.has_field("attention.sliding_window")) read_window();
    read_tokens();
    return std::move(config_);
  }

 private:
  bool is(std::string_view architecture) const { return family_.architecture == architecture; }
  bool has_rotary() const { return !is("gpt2") && !is("t5") && !is("bert"); }
  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", family_.architecture, name);
  }
  const std::string& source() const { return fields_.source(); }
  bool has_tensor(std::string_view name) const { return find_(name) != nullptr; }

  std::optional<std::int64_t> extent(std::string_view name, std::int64_t most = max_extent) const {
    return fields_.find_integer(key(name), {.least = 1, .most = most});
  }
  std::int64_t needed(std::string_view name) const { return fields_.need(key(name), extent(name)); }

  void read_field(const GgufField& field) {
    const std::string name = key(field.key);
    if (field.presence == GgufField::Presence::optional && !fields_.has(name)) return;
    switch (field.kind) {
      case GgufKind::integer: {
        const bool is_token = field.key.ends_with("token_id");
        const std::int64_t most = field.key.ends_with("block_count") ? max_layers
                                  : field.key.find("head_count") != std::string_view::npos
                                      ? max_heads
                                      : max_extent;
        config_[field.config] = fields_.need(
            name, fields_.find_integer(name, {.least = is_token ? 0 : 1, .most = most}));
        return;
      }
      case GgufKind::number: {
        const double value = fields_.need(name, fields_.find_number(name));
        require(std::isfinite(value) && value > 0, ErrorCode::corrupt_data,
                "{}: '{}' is {}; expected a number above 0", source(), name, value);
        // An epsilon is a decimal of a few digits, which f32 has rounded.
        config_[field.config] =
            field.key == "rope.freq_base" ? value : short_decimal(static_cast<float>(value));
        return;
      }
      case GgufKind::boolean:
        config_[field.config] = fields_.need(name, fields_.find_boolean(name));
    }
  }

  void refuse(std::string_view name) const {
    if (!fields_.has(key(name))) return;
    const double value = fields_.need(key(name), fields_.find_number(key(name)));
    const bool is_factor = name.ends_with("scale") || name.ends_with("factor");
    require(value == 0 || (is_factor && value == 1), ErrorCode::unsupported,
            "{}: '{}' is {}; heed does not support it", source(), key(name), value);
  }

  void read_vocabulary() {
    constexpr std::string_view embedding = "token_embd.weight";
    const TensorEntry* const table = find_(embedding);
    require(table != nullptr && table->shape.rank() == 2, ErrorCode::corrupt_data,
            "{}: tensor '{}' {}; expected a matrix of one row a token", source(), embedding,
            table == nullptr ? "is missing" : "has shape " + table->shape.text());
    const std::int64_t rows = table->shape[0];
    const std::int64_t named = extent("vocab_size").value_or(rows);
    require(rows == named, ErrorCode::corrupt_data, "{}: '{}' is {}, but '{}' has {} rows",
            source(), key("vocab_size"), named, embedding, rows);
    config_["vocab_size"] = rows;
    config_["tie_word_embeddings"] = !has_tensor("output.weight");
  }

  void read_t5() {
    config_["is_encoder_decoder"] = true;
    const bool is_gated = has_tensor("dec.blk.0.ffn_gate.weight");
    config_["feed_forward_proj"] = is_gated ? "gated-gelu" : "relu";
  }

  // The model without a head, in which every token attends to all.
  void read_bert() {
    constexpr std::string_view types = "token_types.weight";
    const TensorEntry* const table = find_(types);
    require(
        table != nullptr, ErrorCode::unsupported,
        "{}: tensor '{}' is missing; encoders without types of tokens, as DistilBERT, are not read",
        source(), types);
    require(table->shape.rank() == 2, ErrorCode::corrupt_data,
            "{}: tensor '{}' has shape {}; expected a matrix of one row a type", source(), types,
            table->shape.text());
    const std::int64_t rows = table->shape[0];
    const std::int64_t named =
        fields_.find_integer(token_types_key, {.least = 1, .most = max_extent}).value_or(rows);
    require(named == rows, ErrorCode::corrupt_data, "{}: '{}' is {}, but '{}' has {} rows",
            source(), token_types_key, named, types, rows);
    config_["architectures"] = Json::array({"BertModel"});
    config_["type_vocab_size"] = rows;
    const bool is_causal = fields_.find_boolean(key(causal_key)).value_or(false);
    require(!is_causal, ErrorCode::unsupported,
            "{}: '{}' is true; heed supports encoders, in which every token attends to all",
            source(), key(causal_key));
    const auto pooling =
        fields_.find_integer(key(pooling_field), {.least = 0, .most = max_pooling});
    if (pooling) config_[pooling_field] = *pooling;
  }

  // By which queries are scaled, as llama.cpp knows it: of the largest models by the number of
  // their layers.
  void read_query_scale() {
    const std::int64_t layers = config_.at("num_hidden_layers").get<std::int64_t>();
    const bool is_largest = layers == (is("gemma2") ? 46 : 62);
    config_["query_pre_attn_scalar"] =
        is_largest ? static_cast<double>(needed("embedding_length")) / static_cast<double>(heads())
                   : static_cast<double>(head_size());
  }

  void read_falcon() {
    const bool has_two_norms = has_tensor("blk.0.attn_norm_2.weight");
    const std::int64_t shared = config_.value("num_kv_heads", heads());
    config_["multi_query"] = shared == 1;
    config_["new_decoder_architecture"] = has_two_norms || (shared != 1 && shared != heads());
    config_["num_ln_in_parallel_attn"] = has_two_norms ? 2 : 1;
    config_["bias"] = has_tensor("blk.0.attn_qkv.bias");
  }

  // D, where heads have one size.
  std::int64_t head_size() const {
    const auto named = extent("attention.key_length");
    return named ? *named : needed("embedding_length") / heads();
  }
  std::int64_t heads() const { return needed("attention.head_count"); }

  void check_heads() const {
    const std::int64_t channels = needed("embedding_length");
    const auto divides = [&](std::int64_t part, std::string_view part_key, std::int64_t whole,
                             std::string_view whole_key) {
      require(whole % part == 0, ErrorCode::corrupt_data,
              "{}: '{}' is {}, which does not divide '{}', {}", source(), key(part_key), part,
              key(whole_key), whole);
    };
    const bool may_name_size = family_.has_field("attention.key_length");
    const auto named = extent("attention.key_length");
    if (!may_name_size || !named) {
      divides(heads(), "attention.head_count", channels, "embedding_length");
    }
    const auto shared = extent("attention.head_count_kv", max_heads);
    if (shared) divides(*shared, "attention.head_count_kv", heads(), "attention.head_count");
    const auto same = [&](std::string_view name, std::int64_t expected) {
      const std::int64_t size = extent(name).value_or(expected);
      require(size == expected, ErrorCode::unsupported,
              "{}: '{}' is {}; heed supports heads of one size, here {}", source(), key(name), size,
              expected);
    };
    if (!may_name_size) same("attention.key_length", channels / heads());
    same("attention.value_length", head_size());
  }

  void read_biases() {
    if (is("gpt2")) {
      const bool has_biases = fields_.find_boolean(biases_key).value_or(true);
      if (!has_biases) config_["heed"] = {{"bias", false}};
    } else if (is("gptneox")) {
      config_["attention_bias"] = has_tensor("blk.0.attn_qkv.bias");
    } else if (is("starcoder2")) {
      config_["use_bias"] = has_tensor("blk.0.attn_output.bias");
    } else if (!is("qwen2") && !is("falcon")) {
      config_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
      if (is("llama")) config_["mlp_bias"] = has_tensor("blk.0.ffn_up.bias");
    }
  }

  void read_rotary_channels() {
    const std::int64_t rotating = extent("rope.dimension_count").value_or(head_size());
    require(rotating <= head_size() && rotating % 2 == 0, ErrorCode::corrupt_data,
            "{}: '{}' is {}; expected an even number up to {}, the size of a head", source(),
            key("rope.dimension_count"), rotating, head_size());
    if (is("gptneox")) {
      config_["rotary_pct"] = static_cast<double>(rotating) / static_cast<double>(head_size());
      return;
    }
    if (is("phi3")) {
      config_["partial_rotary_factor"] =
          static_cast<double>(rotating) / static_cast<double>(head_size());
      return;
    }
    require(rotating == head_size(), ErrorCode::unsupported,
            "{}: '{}' is {} of the {} channels of a head; heed supports all of them in '{}'",
            source(), key("rope.dimension_count"), rotating, head_size(), family_.architecture);
  }

  void read_rotary_scaling() {
    if (const TensorEntry* const factors = find_(gguf_rotary_factors)) {
      read_rotary_factors(*factors);
      return refuse(attention_factor_key);
    }
    if (find_(gguf_short_factors) != nullptr || find_(gguf_long_factors) != nullptr) {
      return read_longrope();
    }
    refuse(attention_factor_key);
    const std::string kind = fields_.find_text(key("rope.scaling.type")).value_or("none");
    require(kind == "none" || kind == "linear" || kind == "yarn", ErrorCode::unsupported,
            "{}: '{}' is '{}'; heed supports none, linear and yarn", source(),
            key("rope.scaling.type"), kind);
    if (kind == "none") return;
    const std::string factor_key = key("rope.scaling.factor");
    const double factor = fields_.need(factor_key, fields_.find_number(factor_key));
    require(std::isfinite(factor) && factor >= 1, ErrorCode::corrupt_data,
            "{}: '{}' is {}; expected at least 1", source(), factor_key, factor);
    Json scaling = {{"rope_type", kind}, {"factor", factor}};
    if (kind == "yarn") {
      const auto original = extent("rope.scaling.original_context_length");
      if (original) scaling["original_max_position_embeddings"] = *original;
      for (const auto& [name, config] : {std::pair{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                         std::pair{"rope.scaling.yarn_beta_slow", "beta_slow"}}) {
        if (const auto value = fields_.find_number(key(name))) scaling[config] = *value;
      }
    }
    config_["rope_scaling"] = std::move(scaling);
  }

  // Two tensors of factors, for short texts and for long ones.
  void read_longrope() {
    const std::int64_t rotating = extent("rope.dimension_count").value_or(head_size());
    const auto factors_of = [&](std::string_view name) {
      const TensorEntry* const entry = find_(name);
      require(entry != nullptr && entry->shape.size() == rotating / 2, ErrorCode::corrupt_data,
              "{}: tensor '{}' {}; expected {} factors, one a pair of channels", source(), name,
              entry == nullptr ? "is missing" : "has shape " + entry->shape.text(), rotating / 2);
      std::vector<float> factors(static_cast<std::size_t>(rotating / 2));
      read_as_f32(*entry, View<float>(factors.data(), entry->shape));
      return factors;
    };
    Json scaling = {
        {"rope_type", "longrope"},
        {"short_factor", factors_of(gguf_short_factors)},
        {"long_factor", factors_of(gguf_long_factors)},
        {"original_max_position_embeddings", needed("rope.scaling.original_context_length")}};
    // Files name the factor that follows from the contexts, too.
    const double original = scaling["original_max_position_embeddings"].get<double>();
    RotarySpecification rotary{
        .scaling = {.kind = RotaryScalingKind::longrope,
                    .factor = static_cast<double>(needed("context_length")) / original,
                    .original_context = static_cast<std::int64_t>(original)}};
    const auto factor = fields_.find_number(key(attention_factor_key));
    if (factor && *factor != static_cast<float>(rotary_magnitude(rotary))) {
      scaling["attention_factor"] = *factor;
    }
    config_["rope_scaling"] = std::move(scaling);
  }

  // The scaling of LLaMA 3.1 whose factors these are: the largest is its own, and one between it
  // and 1 tells the context of pretraining.
  void read_rotary_factors(const TensorEntry& entry) {
    const std::int64_t pairs = head_size() / 2;
    require(entry.shape.size() == pairs, ErrorCode::corrupt_data,
            "{}: tensor '{}' has shape {}; expected {} factors, one a pair of a head's channels",
            source(), entry.name, entry.shape.text(), pairs);
    std::vector<float> factors(static_cast<std::size_t>(pairs));
    read_as_f32(entry, View<float>(factors.data(), entry.shape));
    RotarySpecification rotary{.base = config_.value("rope_theta", 10000.0)};
    rotary.scaling = {.kind = RotaryScalingKind::llama3,
                      .factor = *std::ranges::max_element(factors),
                      .low_frequency_factor = low_frequency_factor,
                      .high_frequency_factor = high_frequency_factor};
    for (const std::int64_t context : contexts_of(factors, rotary)) {
      rotary.scaling.original_context = context;
      if (!std::isfinite(rotary.scaling.factor) || !fits(factors, rotary)) continue;
      config_["rope_scaling"] = {{"rope_type", "llama3"},
                                 {"factor", rotary.scaling.factor},
                                 {"low_freq_factor", low_frequency_factor},
                                 {"high_freq_factor", high_frequency_factor},
                                 {"original_max_position_embeddings", context}};
      return;
    }
    fail(ErrorCode::unsupported,
         "{}: the factors of '{}', up to {}, are not those of LLaMA 3.1's rotary scaling", source(),
         entry.name, rotary.scaling.factor);
  }

  // Contexts of pretraining that may be meant.
  static std::vector<std::int64_t> contexts_of(const std::vector<float>& factors,
                                               const RotarySpecification& rotary) {
    std::vector<std::int64_t> contexts;
    const double factor = rotary.scaling.factor;
    const auto channels = static_cast<double>(2 * factors.size());
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (!(factors[i] > 1.001F) || !(factors[i] < 0.999F * rotary.scaling.factor)) continue;
      const double wavelength =
          2 * std::numbers::pi * std::pow(rotary.base, 2.0 * static_cast<double>(i) / channels);
      const double kept = (1.0 / factors[i] - 1 / factor) / (1 - 1 / factor);
      const double context = wavelength * (kept * (high_frequency_factor - low_frequency_factor) +
                                           low_frequency_factor);
      if (context >= 1 && context < static_cast<double>(max_extent)) {
        contexts.push_back(std::llround(context));
      }
    }
    contexts.push_back(8192);  // of all published models
    for (std::int64_t context = 16; context < max_extent; context *= 2) {
      contexts.push_back(context);
    }
    return contexts;
  }

  // Factors are rounded to f32, and computed in it.
  static bool fits(const std::vector<float>& factors, const RotarySpecification& rotary) {
    constexpr float tolerance = 1e-5F;  // relative
    const auto size = static_cast<std::int64_t>(2 * factors.size());
    if (rotary.scaling.factor < 1) return false;
    return std::ranges::equal(factors, rotary_factors(rotary, size), [](float left, float right) {
      return std::abs(left - right) <= tolerance * right;
    });
  }

  void read_window() {
    const auto window =
        fields_.find_integer(key("attention.sliding_window"), {.least = 0, .most = max_extent});
    if (!window || *window == 0) return;
    require(is("llama") || is("starcoder2") || is("phi3"), ErrorCode::unsupported,
            "{}: '{}' is {}; heed supports no windows of '{}'", source(),
            key("attention.sliding_window"), *window, family_.architecture);
    if (is("llama")) config_["model_type"] = "mistral";
    config_["sliding_window"] = *window;
  }

  std::optional<std::int64_t> token(std::string_view role) const {
    const std::int64_t last = config_.at("vocab_size").get<std::int64_t>() - 1;
    return fields_.find_integer(fmt::format("tokenizer.ggml.{}_token_id", role),
                                {.least = 0, .most = last});
  }

  void read_tokens() {
    if (is("bert")) {  // whose texts are not continued
      if (const auto id = token("padding")) config_["pad_token_id"] = *id;
      return;
    }
    if (const auto id = token("bos")) config_["bos_token_id"] = *id;
    if (const auto id = token("padding")) config_["pad_token_id"] = *id;
    Json ends = Json::array();
    for (const char* const role : {"eos", "eot", "eom"}) {
      const auto id = token(role);
      if (id && std::ranges::count(ends, Json(*id)) == 0) ends.push_back(*id);
    }
    add_turn_ends(ends);
    if (ends.size() == 1) config_["eos_token_id"] = ends[0];
    if (ends.size() > 1) config_["eos_token_id"] = std::move(ends);
  }

  // Tokens that end a turn of a conversation, by the names that published models give them: files
  // may name the end of a document alone.
  void add_turn_ends(Json& ends) const {
    constexpr std::string_view names[] = {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>",
                                          "<end_of_turn>"};
    const auto tokens = fields_.find_texts("tokenizer.ggml.tokens");
    if (!tokens || ends.empty()) return;
    const auto vocabulary = config_.at("vocab_size").get<std::size_t>();
    for (std::size_t id = 0; id < std::min(tokens->size(), vocabulary); ++id) {
      const bool ends_turn = std::ranges::count(names, (*tokens)[id]) > 0;
      if (ends_turn && std::ranges::count(ends, Json(id)) == 0) ends.push_back(id);
    }
  }

  GgufFields fields_;
  const FindTensor& find_;
  const GgufFamily& family_;
  Json config_;
};

void write_field(const GgufFamily& family, const GgufField& field, const Json& config,
                 GgufMetadata& metadata) {
  const std::string key = fmt::format("{}.{}", family.architecture, field.key);
  const auto found = config.find(field.config);
  if (found == config.end() || found->is_null()) return;
  switch (field.kind) {
    case GgufKind::integer: return metadata.add(key, found->get<std::uint32_t>());
    case GgufKind::number: return metadata.add(key, static_cast<float>(found->get<double>()));
    case GgufKind::boolean: return metadata.add(key, found->get<bool>());
  }
}

void write_bert(const Json& config, const StackSpecification& stack, const std::string& prefix,
                GgufMetadata& metadata) {
  metadata.add(fmt::format("{}.{}", prefix, causal_key), false);
  metadata.add(fmt::format("{}.{}", prefix, pooling_field),
               config.value(pooling_field, std::uint32_t{0}));
  metadata.add(token_types_key, static_cast<std::uint32_t>(stack.token_types));
}

void write_rotary(const std::string& architecture, const AttentionSpecification& attention,
                  GgufMetadata& metadata) {
  metadata.add(architecture + ".rope.dimension_count",
               static_cast<std::uint32_t>(attention.rotary_channels()));
  const RotaryScaling& scaling = attention.rotary.scaling;
  const bool is_linear = scaling.kind == RotaryScalingKind::linear;
  if (scaling.kind == RotaryScalingKind::longrope) {
    metadata.add(architecture + ".rope.scaling.original_context_length",
                 static_cast<std::uint32_t>(scaling.original_context));
    metadata.add(fmt::format("{}.{}", architecture, attention_factor_key),
                 static_cast<float>(rotary_magnitude(attention.rotary)));
    return;
  }
  if (!is_linear && scaling.kind != RotaryScalingKind::yarn) return;
  const std::string prefix = architecture + ".rope.scaling.";
  metadata.add(prefix + "type", std::string_view(is_linear ? "linear" : "yarn"));
  metadata.add(prefix + "factor", static_cast<float>(scaling.factor));
  if (is_linear) return;
  metadata.add(prefix + "original_context_length",
               static_cast<std::uint32_t>(scaling.original_context));
  const RotaryScaling usual;
  if (scaling.fast_rotations != usual.fast_rotations) {
    metadata.add(prefix + "yarn_beta_fast", static_cast<float>(scaling.fast_rotations));
  }
  if (scaling.slow_rotations != usual.slow_rotations) {
    metadata.add(prefix + "yarn_beta_slow", static_cast<float>(scaling.slow_rotations));
  }
}

}  // namespace

Json gguf_config(const GgufFile& file, const FindTensor& find) {
  return ConfigReader(file, find).read();
}

std::vector<RotaryFactors> rotary_factor_tensors(const AttentionSpecification& attention) {
  const RotaryScaling& scaling = attention.rotary.scaling;
  std::vector<RotaryFactors> tensors;
  const auto add = [&](std::string_view name, const auto& factors) {
    RotaryFactors& tensor = tensors.emplace_back();
    tensor.name = name;
    for (const auto factor : factors) tensor.factors.push_back(static_cast<float>(factor));
  };
  if (scaling.kind == RotaryScalingKind::llama3) {
    add(gguf_rotary_factors, rotary_factors(attention.rotary, attention.head_size));
  } else if (scaling.kind == RotaryScalingKind::longrope) {
    add(gguf_short_factors, scaling.short_factors);
    add(gguf_long_factors, scaling.long_factors);
  }
  return tensors;
}

std::vector<float> rotary_factors(const RotarySpecification& rotary, std::int64_t head_size) {
  std::vector<float> factors;
  if (rotary.scaling.kind != RotaryScalingKind::llama3) return factors;
  AttentionSpecification attention{
      .head_size = head_size, .positions = PositionKind::rotary, .rotary = rotary};
  const std::vector<double> scaled = rotary_frequencies(attention);
  attention.rotary.scaling = {};
  const std::vector<double> plain = rotary_frequencies(attention);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    factors.push_back(static_cast<float>(plain[i] / scaled[i]));
  }
  return factors;
}

void write_gguf_config(const GgufFamily& family, const Json& config,
                       const Architecture& architecture, GgufMetadata& metadata) {
  const StackSpecification& stack = architecture.decoder();
  const AttentionSpecification& attention = stack.block.attention;
  const std::string prefix(family.architecture);
  for (const GgufField& field : family.fields) write_field(family, field, config, metadata);
  metadata.add(prefix + ".vocab_size", static_cast<std::uint32_t>(stack.vocabulary_size));
  if (config.contains("head_dim") || prefix == "t5") {
    metadata.add(prefix + ".attention.value_length",
                 static_cast<std::uint32_t>(attention.head_size));
  }
  if (attention.positions == PositionKind::rotary) write_rotary(prefix, attention, metadata);
  const std::vector<std::int64_t>& windows = attention.mask.windows;
  if (!windows.empty() && !family.has_field("attention.sliding_window")) {
    metadata.add(prefix + ".attention.sliding_window", static_cast<std::uint32_t>(windows.front()));
  }
  if (prefix == "bert") write_bert(config, stack, prefix, metadata);
  if (prefix == "gpt2" && !has_biases(stack)) metadata.add(biases_key, false);
}

}  // namespace heed
