// The public facade: heed's own types in, standard types out.
#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "engine/model_parts.h"
#include "engine/read_attention.h"
#include "engine/traced_generation.h"
#include "generate/generator.h"
#include "generate/sampler.h"
#include "generate/session.h"
#include "heed/heed.h"
#include "microscope/activation_trace.h"
#include "microscope/trace.h"
#include "model/parameter_count.h"

namespace heed {
namespace {

SamplingOptions sampling_options(const Model::Sampling& sampling) {
  return {.temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .repeat_penalty = sampling.repeat_penalty,
          .repeat_last_n = sampling.repeat_last_n,
          .seed = sampling.seed};
}

std::vector<float> to_vector(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

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
  require(!tokens.empty(), ErrorCode::invalid_argument, "there are no tokens to read");
  Session session(parts_->model.gpt, std::ssize(tokens));
  return to_vector(session.feed(tokens));
}

std::vector<Model::Next> Model::predict(std::span<const std::int32_t> tokens,
                                        const Sampling& sampling, std::size_t most) const {
  const std::vector<Candidate> candidates =
      trace_candidates(logits(tokens), sampling_options(sampling), tokens);
  const std::size_t count = most == 0 ? candidates.size() : std::min(most, candidates.size());
  std::vector<Next> next;
  for (const Candidate& candidate : std::span(candidates).first(count)) {
    next.push_back({.token = candidate.token,
                    .text = parts_->model.token_bytes(candidate.token),
                    .logit = candidate.logit,
                    .probability = candidate.probability(SamplingStage::model),
                    .drawn = candidate.probability(SamplingStage::temperature),
                    .filtered = candidate.kept() ? std::string_view{}
                                                 : sampling_stage_name(candidate.removed_by)});
  }
  return next;
}

Model::Generation Model::generate(std::string_view prompt, const GenerateOptions& options,
                                  const TextCallback& callback) const {
  return generate(parts_->model.encode(prompt), options, callback);
}

Model::Generation Model::generate(std::span<const std::int32_t> prompt,
                                  const GenerateOptions& options,
                                  const TextCallback& callback) const {
  std::atomic<bool> enough{false};
  heed::GenerateOptions inner{.max_new_tokens = options.max_new_tokens,
                              .sampling = sampling_options(options.sampling),
                              .stop_strings = options.stop,
                              .stop = &enough};
  if (options.shift_context) inner.overflow = ContextOverflow::shift_window;
  const GenerationResult result =
      heed::generate(parts_->model.gpt, parts_->model.tokenizer.get(), prompt, inner,
                     [&](const GenerationEvent& event) {
                       if (callback && !event.text.empty() && !callback(event.text)) enough = true;
                     });
  return {.tokens = result.tokens,
          .text = result.text,
          .finish_reason = finish_reason_name(result.finish_reason)};
}

Model::Attention Model::attention(std::span<const std::int32_t> tokens) const {
  const GptConfig& config = parts_->model.gpt.config();
  const Capture capture = trace_patterns(parts_->model.gpt, tokens);
  Attention attention{.layers = config.layers, .heads = config.heads, .tokens = std::ssize(tokens)};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::span<const float> pattern = capture.at({Point::pattern, layer}).span();
    attention.weights.insert(attention.weights.end(), pattern.begin(), pattern.end());
  }
  return attention;
}

std::vector<Model::Values> Model::trace(std::span<const std::int32_t> tokens,
                                        const std::vector<std::string>& names) const {
  const Gpt& gpt = parts_->model.gpt;
  const Capture capture = heed::trace(gpt, tokens, Capture(names, gpt.config().layers).sites());
  std::vector<Values> traced;
  for (const Site& site : capture.sites()) {
    const Tensor<float>& values = capture.at(site);
    traced.push_back({.name = site_name(site),
                      .shape = {values.shape().begin(), values.shape().end()},
                      .values = to_vector(values.span())});
  }
  return traced;
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

void set_threads(int count) {
  require(count >= 1, ErrorCode::invalid_argument, "{} threads are fewer than 1", count);
  set_thread_count(count);
}

}  // namespace heed
