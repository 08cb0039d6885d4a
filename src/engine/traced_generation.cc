#include "engine/traced_generation.h"

#include <algorithm>

#include "base/error.h"
#include "generate/session.h"
#include "microscope/traces/activation_trace.h"
#include "model/input_checks.h"

namespace heed {

Trace trace_generation(const Transformer& gpt, std::span<const std::int32_t> prompt,
                       std::int64_t new_tokens, const TraceRequest& request, Editor* editor) {
  require_tokens(prompt, "the prompt");
  require(new_tokens >= 0, ErrorCode::invalid_argument,
          "the number of new tokens must be 0 or more, not {}", new_tokens);
  require(!asks_for_gradients(request), ErrorCode::invalid_argument,
          "gradients are not available during a generation: trace its text instead");
  const std::int64_t positions = std::ssize(prompt) + new_tokens;
  require(positions <= gpt.specification().context, ErrorCode::invalid_argument,
          "{} tokens and {} new tokens exceed the model's context of {}", prompt.size(), new_tokens,
          gpt.specification().context);
  ActivationTrace trace(gpt.architecture(), request, {.positions = positions});
  Session session(gpt, positions);
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
