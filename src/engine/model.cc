// The public facade: heed's own types in, standard types out.
#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "engine/facade.h"
#include "engine/generations.h"
#include "engine/loaded_model.h"
#include "engine/model_passes.h"
#include "heed/heed.h"
#include "kernels/prepared_weight.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"
#include "model/parameter_count.h"

namespace heed {
namespace {

std::vector<std::int64_t> layer_windows(const StackSpecification& config) {
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    windows.push_back(config.block.attention.window(layer));
  }
  return windows;
}

}  // namespace

ModelArchitecture describe_architecture(const Transformer& model, StackSite site) {
  const StackSpecification& config = model.specification(site);
  const AttentionSpecification& attention = config.block.attention;
  const NormSpecification& norm = config.block.norm;
  const bool rotary = attention.positions == PositionKind::rotary;
  return {
      .vocabulary = config.vocabulary_size,
      .context = config.context,
      .channels = config.channels,
      .layers = config.layers,
      .query_heads = attention.query_heads,
      .key_value_heads = attention.key_value_heads,
      .head_size = attention.head_size,
      .parameters = count_parameters(model.architecture()).total,
      .positions = position_kind_name(attention.positions),
      .rotary_base = rotary ? attention.rotary.base : 0,
      .rotary_channels = rotary ? attention.rotary_channels() : 0,
      .windows = layer_windows(config),
      .query_key_norm = attention.query_key_norm,
      .norm = norm_kind_name(norm.kind),
      .norm_placement = norm_placement_name(norm.placement),
      .norm_epsilon = norm.epsilon,
      .parallel = config.is_parallel(),
      .feed_forward = config.feed_forward(),
      .activation = activation_name(config.block.feed_forward.activation),
      .gated = config.block.feed_forward.gated,
      .biases = has_biases(config),
      .tied_unembedding = config.has_unembedding && config.tied_unembedding,
      .device = device_name(model.device()),
      .weights = std::string(kernels::weight_format_name(model.parameters().prepared_format()))};
}

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::load(const std::string& name_or_directory, const LoadOptions& options) {
  return Model(
      std::make_unique<Parts>(Parts{load_model(name_or_directory, options, StacksWanted::any)}));
}

Model::Dimensions Model::dimensions() const {
  const StackSpecification& config = parts_->of_one_text().transformer.specification();
  return {.vocabulary = config.vocabulary_size,
          .context = config.context,
          .channels = config.channels,
          .layers = config.layers,
          .heads = config.heads(),
          .head_size = config.head_size(),
          .feed_forward = config.feed_forward(),
          .parameters = count_parameters(config).total};
}

bool Model::is_translator() const { return parts_->model.is_translator(); }

ModelArchitecture Model::architecture(std::string_view stack) const {
  require(stack == "decoder" || (stack == "encoder" && is_translator()),
          ErrorCode::invalid_argument, "the stack is '{}', expected {}", stack,
          is_translator() ? "encoder or decoder" : "decoder, the only one");
  const StackSite site = stack == "encoder" ? StackSite::encoder : StackSite::decoder;
  return describe_architecture(parts_->model.transformer, is_translator() ? site : StackSite::only);
}

const std::string& Model::name() const { return parts_->model.name; }

bool Model::has_tokenizer() const {
  const LoadedModel& model = parts_->model;
  return model.tokenizer != nullptr &&
         (!model.is_translator() || model.source_tokenizer != nullptr);
}

std::vector<std::int32_t> Model::encode(std::string_view text) const {
  if (is_translator()) return parts_->model.encode_source(text, "the text");
  return parts_->model.require_tokenizer().encode(text);
}

std::string Model::decode(std::span<const std::int32_t> tokens) const {
  const Tokenizer& tokenizer = parts_->model.require_tokenizer();
  return is_translator() ? decode_target(tokenizer, tokens) : tokenizer.decode(tokens);
}

Array Model::logits(std::span<const std::int32_t> tokens) const {
  return next_logits(parts_->of_one_text(), tokens);
}

Array Model::all_logits(std::span<const std::int32_t> tokens) const {
  return heed::all_logits(parts_->of_one_text(), tokens);
}

Array Model::embeddings(std::span<const std::int32_t> tokens) const {
  return final_states(parts_->of_one_text(), tokens);
}

std::vector<Model::Next> Model::predict(std::span<const std::int32_t> tokens,
                                        const Sampling& sampling, std::size_t most) const {
  return next_tokens(parts_->of_one_text(), logits(tokens), tokens, sampling, most);
}

std::vector<Model::Next> Model::rank(std::span<const float> logits,
                                     std::span<const std::int32_t> tokens, const Sampling& sampling,
                                     std::size_t most) const {
  return next_tokens(parts_->of_one_text(), logits, tokens, sampling, most);
}

Model::Generation Model::generate(std::string_view prompt, const GenerateOptions& options,
                                  const TextCallback& callback) const {
  return generate(parts_->of_one_text().encode(prompt), options, callback);
}

Model::Generation Model::generate(std::span<const std::int32_t> prompt,
                                  const GenerateOptions& options,
                                  const TextCallback& callback) const {
  return continue_prompt(parts_->of_one_text(), prompt, options, callback);
}

Model::Attention Model::attention(std::span<const std::int32_t> tokens) const {
  const StackSpecification& config = parts_->of_one_text().transformer.specification();
  const Capture capture = trace_patterns(parts_->of_one_text().transformer, tokens);
  const auto count = std::ssize(tokens);
  Tensor<float> weights(Shape{config.layers, config.heads(), count, count});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::span<const float> pattern = capture.at({PointKind::pattern, layer}).span();
    std::ranges::copy(pattern, weights.data() + layer * std::ssize(pattern));
  }
  return {.layers = config.layers,
          .heads = config.heads(),
          .tokens = count,
          .weights = make_array(std::move(weights))};
}

AttentionReader Model::read_attention(std::span<const std::int32_t> tokens,
                                      const std::vector<std::int64_t>& layers) const {
  return AttentionReader::read(parts_->of_one_text().transformer, tokens, layers);
}

Trace Model::trace(std::span<const std::int32_t> tokens, const TraceRequest& request,
                   const GradientTarget& target) const {
  return with_shapes(trace_prompt(parts_->of_one_text().transformer, tokens, request, target));
}

Trace Model::trace_generation(std::span<const std::int32_t> prompt, std::int64_t new_tokens,
                              const TraceRequest& request) const {
  return with_shapes(
      heed::trace_generation(parts_->of_one_text().transformer, prompt, new_tokens, request));
}

void set_threads(int count) { set_thread_count(count); }
int threads() { return thread_count(); }

void allow_integer_prompts() { kernels::allow_integers_for_long_rows(); }
void refuse_integer_prompts() { kernels::refuse_integers_for_long_rows(); }

}  // namespace heed
