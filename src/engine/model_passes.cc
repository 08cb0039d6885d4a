#include "engine/model_passes.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "engine/facade.h"
#include "generate/sampler.h"
#include "generate/session.h"
#include "kernels/elements.h"
#include "model/input_checks.h"

namespace heed {
Array next_logits(const LoadedModel& model, std::span<const std::int32_t> tokens) {
  require_text_fits(model.transformer.specification(), tokens);
  Session session(model.transformer, std::ssize(tokens), model.cache_type);
  const std::span<const float> logits = session.feed(tokens);
  return Array(std::vector<float>(logits.begin(), logits.end()));
}

Array all_logits(const LoadedModel& model, std::span<const std::int32_t> tokens) {
  require_text_fits(model.transformer.specification(), tokens);
  Session session(model.transformer, std::ssize(tokens), model.cache_type);
  return make_array(session.feed_for_all_positions(tokens));
}

Array final_states(const LoadedModel& model, std::span<const std::int32_t> tokens) {
  const StackSpecification& config = model.transformer.specification();
  require_text_fits(config, tokens);
  const auto positions = std::ssize(tokens);
  const StackActivations activations(config, 1, positions, Keep::one_block, 0,
                                     model.transformer.device());
  model.transformer.forward({tokens.data(), {1, positions}}, {.sequences = {1, positions}},
                            activations);
  Tensor<float> states(Shape{positions, config.channels});
  kernels::copy(activations.final_norm(), states);
  return make_array(std::move(states));
}

std::vector<Model::Next> next_tokens(const LoadedModel& model, std::span<const float> logits,
                                     std::span<const std::int32_t> tokens,
                                     const SamplingOptions& sampling, std::size_t max_count) {
  require(std::ssize(logits) == model.transformer.specification().vocabulary_size,
          ErrorCode::invalid_argument, "there are {} logits, expected one for each of {} tokens",
          logits.size(), model.transformer.specification().vocabulary_size);
  const std::vector<Candidate> candidates = trace_candidates(logits, sampling, tokens);
  const std::size_t count =
      max_count == 0 ? candidates.size() : std::min(max_count, candidates.size());
  std::vector<Model::Next> next;
  for (const Candidate& candidate : std::span(candidates).first(count)) {
    next.push_back({.token = candidate.token,
                    .text = model.token_bytes(candidate.token),
                    .logit = candidate.logit,
                    .probability = candidate.probability(SamplingStage::model),
                    .drawn = candidate.probability(SamplingStage::temperature),
                    .filtered = candidate.kept() ? std::string_view{}
                                                 : sampling_stage_name(candidate.removed_by),
                    .rank = candidate.rank,
                    .scaled_logit = candidate.scaled_logit,
                    .probability_after = candidate.probability_after});
  }
  return next;
}

GenerateOptions generation_options(const LoadedModel& model,
                                   const Model::GenerateOptions& options) {
  GenerateOptions inner{.max_new_tokens = options.max_new_tokens,
                        .sampling = options.sampling,
                        .cache_type = model.cache_type,
                        .stop_strings = options.stop,
                        .end_tokens = model.end_tokens()};
  if (options.ignore_end_of_text) {
    inner.ignore_end_of_text = true;
    inner.end_tokens.clear();
  }
  if (options.shift_context) inner.overflow = ContextOverflow::shift_window;
  return inner;
}

Model::Generation continue_prompt(const LoadedModel& model, std::span<const std::int32_t> prompt,
                                  const Model::GenerateOptions& options,
                                  const Model::TextCallback& callback) {
  std::atomic<bool> enough{false};
  GenerateOptions inner = generation_options(model, options);
  inner.stop = &enough;
  const GenerationResult result = generate(
      model.transformer, model.tokenizer.get(), prompt, inner, [&](const GenerationEvent& event) {
        if (callback && !event.text.empty() && !callback(event.text)) enough = true;
      });
  return {.tokens = result.tokens,
          .text = result.text,
          .finish_reason = finish_reason_name(result.finish_reason)};
}

}  // namespace heed
