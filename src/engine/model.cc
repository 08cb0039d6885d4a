// The public facade: heed's own types in, standard types out.
#include "base/error.h"
#include "base/threads.h"
#include "engine/model_parts.h"
#include "engine/model_passes.h"
#include "engine/read_attention.h"
#include "engine/traced_generation.h"
#include "heed/heed.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/trace.h"
#include "model/parameter_count.h"

namespace heed {
Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::load(const std::string& name_or_directory) {
  return Model(std::make_unique<Parts>(Parts{load_model(name_or_directory)}));
}

Model::Dimensions Model::dimensions() const {
  const GptConfig& config = parts_->model.gpt.config();
  return {.vocabulary = config.vocabulary_size,
          .context = config.context,
          .channels = config.channels,
          .layers = config.layers,
          .heads = config.heads,
          .head_size = config.head_size,
          .feed_forward = config.feed_forward,
          .parameters = count_parameters(config).total};
}

bool Model::has_tokenizer() const { return parts_->model.tokenizer != nullptr; }

std::vector<std::int32_t> Model::encode(std::string_view text) const {
  return parts_->model.require_tokenizer().encode(text);
}

std::string Model::decode(std::span<const std::int32_t> tokens) const {
  return parts_->model.require_tokenizer().decode(tokens);
}

std::vector<float> Model::logits(std::span<const std::int32_t> tokens) const {
  return next_logits(parts_->model, tokens, nullptr);
}

std::vector<Model::Next> Model::predict(std::span<const std::int32_t> tokens,
                                        const Sampling& sampling, std::size_t most) const {
  return next_tokens(parts_->model, logits(tokens), tokens, {sampling, most});
}

Model::Generation Model::generate(std::string_view prompt, const GenerateOptions& options,
                                  const TextCallback& callback) const {
  return generate(parts_->model.encode(prompt), options, callback);
}

Model::Generation Model::generate(std::span<const std::int32_t> prompt,
                                  const GenerateOptions& options,
                                  const TextCallback& callback) const {
  return continue_prompt(parts_->model, prompt, options, callback, nullptr);
}

Model::Attention Model::attention(std::span<const std::int32_t> tokens) const {
  const GptConfig& config = parts_->model.gpt.config();
  const Capture capture = trace_patterns(parts_->model.gpt, tokens);
  Attention attention{.layers = config.layers, .heads = config.heads, .tokens = std::ssize(tokens)};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::span<const float> pattern = capture.at({PointKind::pattern, layer}).span();
    attention.weights.insert(attention.weights.end(), pattern.begin(), pattern.end());
  }
  return attention;
}

AttentionReader Model::read_attention(std::span<const std::int32_t> tokens,
                                      const std::vector<std::int64_t>& layers) const {
  return AttentionReader::read(parts_->model.gpt, tokens, layers);
}

std::vector<HeadSummary> Model::heads(std::span<const std::int32_t> tokens) const {
  return summarise_heads(parts_->model.gpt, tokens);
}

Trace Model::trace(std::span<const std::int32_t> tokens, const TraceRequest& request,
                   const GradientTarget& target) const {
  return trace_prompt(parts_->model.gpt, tokens, request, target);
}

Trace Model::trace_generation(std::span<const std::int32_t> prompt, std::int64_t new_tokens,
                              const TraceRequest& request) const {
  return heed::trace_generation(parts_->model.gpt, prompt, new_tokens, request);
}

void set_threads(int count) { set_thread_count(count); }

}  // namespace heed
