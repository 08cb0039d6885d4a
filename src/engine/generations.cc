// Generations of the public facade, token by token.
#include "engine/generations.h"

#include <algorithm>

#include "base/error.h"
#include "engine/facade.h"
#include "engine/hooks.h"
#include "engine/model_passes.h"
#include "generate/generator.h"
#include "generate/session.h"
#include "heed/generation.h"
#include "microscope/traces/activation_trace.h"
#include "model/input_checks.h"

namespace heed {

struct GenerationSteps::Parts {
  std::vector<std::int32_t> prompt;
  std::function<void()> poll;
  HookEditor editor;
  HookProbe probe;
  Session session;
  Generation generation;
  bool begun = false;
  bool ended = false;

  Parts(const LoadedModel& model, std::vector<std::int32_t> tokens,
        const Model::GenerateOptions& options, const RunOptions& run_options)
      : prompt(std::move(tokens)),
        poll(run_options.poll),
        editor({.stacks = {model.transformer.specification()}}, run_options.hooks),
        probe(&editor, poll),
        session(model.transformer,
                session_capacity(model.transformer, std::ssize(prompt), options.max_new_tokens),
                model.cache_type),
        generation(session, model.tokenizer.get(), generate_options(model, options, *this)) {}

  static GenerateOptions generate_options(const LoadedModel& model,
                                          const Model::GenerateOptions& options, Parts& parts) {
    GenerateOptions inner = generation_options(model, options);
    inner.editor = parts.editor.empty() ? nullptr : &parts.editor;
    // For an observer, quantised caches are restored in every step.
    const bool may_observe = parts.poll && model.cache_type == CacheType::f32;
    if (inner.editor != nullptr || may_observe) inner.probe = &parts.probe;
    return inner;
  }
};

GenerationSteps::GenerationSteps(const Model& model, std::vector<std::int32_t> prompt,
                                 const Model::GenerateOptions& options,
                                 const RunOptions& run_options)
    : parts_(std::make_unique<Parts>(ModelAccess::of_one_text(model), std::move(prompt), options,
                                     run_options)) {}
GenerationSteps::GenerationSteps(GenerationSteps&&) noexcept = default;
GenerationSteps& GenerationSteps::operator=(GenerationSteps&&) noexcept = default;
GenerationSteps::~GenerationSteps() = default;

std::optional<GenerationSteps::Step> GenerationSteps::next() {
  if (parts_->ended) return std::nullopt;
  parts_->ended = true;  // unless all goes well
  if (parts_->poll) parts_->poll();
  if (!parts_->begun) parts_->generation.begin(parts_->prompt);
  parts_->begun = true;
  const std::optional<GenerationEvent> event = parts_->generation.next();
  if (!event) return std::nullopt;
  parts_->ended = false;
  return Step{.token = event->token,
              .text = std::string(event->text),
              .logits = Array(std::vector<float>(event->logits.begin(), event->logits.end()))};
}

Model::Generation GenerationSteps::generation() const {
  const GenerationResult& result = parts_->generation.result();
  return {.tokens = result.tokens,
          .text = result.text,
          .finish_reason = parts_->ended ? finish_reason_name(result.finish_reason) : ""};
}

Trace trace_generation(const Transformer& transformer, std::span<const std::int32_t> prompt,
                       std::int64_t new_tokens, const TraceRequest& request, Editor* editor) {
  require_tokens(prompt, "the prompt");
  require(new_tokens >= 0, ErrorCode::invalid_argument,
          "the number of new tokens must be 0 or more, not {}", new_tokens);
  require(!asks_for_gradients(request), ErrorCode::invalid_argument,
          "gradients are not available during a generation: trace its text instead");
  const std::int64_t positions = std::ssize(prompt) + new_tokens;
  require(positions <= transformer.specification().context, ErrorCode::invalid_argument,
          "{} tokens and {} new tokens exceed the model's context of {}", prompt.size(), new_tokens,
          transformer.specification().context);
  ActivationTrace trace(transformer.architecture(), request, {.positions = positions});
  Session session(transformer, positions);
  session.set_editor(editor);
  std::span<const float> logits = session.feed(prompt, &trace);
  for (std::int64_t i = 0; i < new_tokens; ++i) {
    const auto likeliest =
        static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
    logits = session.step(likeliest, &trace);
  }
  Trace taken = trace.take();
  taken.tokens.assign(session.tokens().begin(), session.tokens().end());
  return taken;
}

}  // namespace heed
