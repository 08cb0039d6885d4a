// Generations of the public facade, token by token.
#include <algorithm>

#include "engine/hooks.h"
#include "engine/model_parts.h"
#include "engine/model_passes.h"
#include "generate/generator.h"
#include "heed/generation.h"

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
        editor({.stacks = {model.gpt.specification()}}, run_options.hooks),
        probe(&editor, poll),
        session(model.gpt, session_capacity(model.gpt, std::ssize(prompt), options.max_new_tokens),
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
    : parts_(std::make_unique<Parts>(ModelAccess::loaded(model), std::move(prompt), options,
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

}  // namespace heed
