// Traces of prompts.
#include <algorithm>

#include "base/error.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/text_pass.h"
#include "model/derived_points.h"
#include "model/editor.h"
#include "model/input_checks.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

// −1 is the last.
std::int64_t position_of(std::int64_t wanted, std::int64_t positions) {
  require(wanted >= -positions && wanted < positions, ErrorCode::invalid_argument,
          "position {} does not exist: there are positions 0 to {}, or from the end from -1 on",
          wanted, positions - 1);
  return wanted < 0 ? wanted + positions : wanted;
}

}  // namespace

std::vector<std::int32_t> next_tokens_of(const Transformer& gpt,
                                         std::span<const std::int32_t> tokens) {
  require_predicts_next(gpt.specification(), "the gradient of the loss of a text");
  require(tokens.size() >= 2, ErrorCode::invalid_argument,
          "the loss needs a text of at least two tokens, not one");
  std::vector<std::int32_t> next(tokens.begin() + 1, tokens.end());
  next.push_back(kernels::ignored_target);
  return next;
}

void start_gradient(const Stack& stack, const Pass& pass, const GradientTarget& target,
                    const TargetGradient& rows) {
  const View<const float> x = rows.unembedding_in;
  const View<float> d_x = rows.d_unembedding_in;
  const std::int64_t positions = x.extent(0), vocabulary = stack.specification.vocabulary_size;
  const auto& unembedding = stack.parameters.unembedding;
  if (target.logits.empty()) {
    const View<const std::int32_t> next(rows.next.data(), {positions});
    const auto counted = positions - std::ranges::count(rows.next, kernels::ignored_target);
    const float scale = 1.0F / static_cast<float>(counted);
    observe_logit_gradients(pass, unembedding, x, {next, scale});
    Tensor<float> losses(Shape{positions});
    VocabularyLoss loss(vocabulary);
    loss.forward_backward(x, unembedding, next, losses,
                          {.scale = scale, .d_x = d_x, .d_unembedding = {}});
    return;
  }
  // A logit is a row of the unembedding times the final norm.
  Tensor<float> d_logits;
  if (pass.wants_gradient(PointKind::logits, -1)) {
    d_logits = Tensor<float>(Shape{positions, vocabulary});
  }
  std::ranges::fill(d_x.span(), 0.0F);
  for (const GradientTarget::Logit& logit : target.logits) {
    require(logit.token >= 0 && logit.token < vocabulary, ErrorCode::invalid_argument,
            "token {} is outside the vocabulary of {}", logit.token, vocabulary);
    const std::int64_t row = position_of(logit.position, positions);
    if (d_logits.present()) d_logits.view()(row, logit.token) += static_cast<float>(logit.weight);
    const std::vector<float> weights = kernels::multiplied_row(unembedding, logit.token);
    for (std::size_t channel = 0; channel < weights.size(); ++channel) {
      d_x(row, channel) += static_cast<float>(logit.weight * double{weights[channel]});
    }
  }
  if (d_logits.present()) pass.observe_gradient_rows(PointKind::logits, -1, d_logits);
}

Trace trace_prompt(const Transformer& gpt, std::span<const std::int32_t> tokens,
                   const TraceRequest& request, const GradientTarget& target, Editor* editor) {
  const StackSpecification& config = gpt.specification();
  require_text_fits(config, tokens);
  const auto positions = std::ssize(tokens);
  const bool gradients = asks_for_gradients(request);
  const std::int64_t more =
      gradients ? StackActivations::bytes_needed(config, 1, positions, Keep::residuals) +
                      ActivationGradients::bytes_needed(config, positions)
                : 0;
  ActivationTrace trace(config, request, 1, positions, more);
  const EditorOfPass all(gpt.editor(), editor);
  const View<const std::int32_t> read(tokens.data(), {1, positions});
  const Pass pass{.sequences = {1, positions}, .probe = &trace, .editor = all.get()};
  const StackActivations activations(config, 1, positions,
                                     gradients ? Keep::residuals : Keep::one_block);
  gpt.forward(read, pass, activations);
  if (gradients) {
    // After the pass: functions of the user show only then which values they change.
    require_gradients_past(all.get(), {.stacks = {config}},
                           [&](const Point& point) { return trace.wants_gradient(point); });
    const ActivationGradients buffers(config, positions);
    const std::vector<std::int32_t> next =
        target.logits.empty() ? next_tokens_of(gpt, tokens) : std::vector<std::int32_t>{};
    start_gradient(gpt.stack(), pass, target, {next, activations.unembedding_in(), buffers.norm});
    gpt.backward(read, pass, activations, buffers, nullptr);
  }
  Trace taken = trace.take();
  taken.tokens.assign(tokens.begin(), tokens.end());
  return taken;
}

const TracedArray* Trace::find(std::string_view name) const {
  const auto found = std::ranges::find(arrays, name, &TracedArray::name);
  return found == arrays.end() ? nullptr : &*found;
}

const TracedArray& Trace::at(std::string_view name) const {
  const TracedArray* found = find(name);
  require(found != nullptr, ErrorCode::not_found, "'{}' was not traced", name);
  return *found;
}

}  // namespace heed
