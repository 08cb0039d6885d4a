#include "microscope/traces/gradients.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "kernels/elements.h"
#include "microscope/traces/recorded_pass.h"
#include "model/derived_points.h"
#include "model/here.h"
#include "model/input_checks.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

// −1 is the last.
std::int64_t row_of_logit(std::int64_t wanted, std::int64_t positions) {
  require(wanted >= -positions && wanted < positions, ErrorCode::invalid_argument,
          "position {} does not exist: there are positions 0 to {}, or from the end from -1 on",
          wanted, positions - 1);
  return wanted < 0 ? wanted + positions : wanted;
}

// Of one text: the mean loss of its next tokens. d_logits (T, V) may be absent.
void start_from_loss(const Stack& stack, const TargetGradient& rows, View<float> d_logits) {
  const View<const float> x = rows.unembedding_in;
  const std::int64_t positions = x.extent(0);
  const auto& unembedding = stack.parameters.unembedding;
  const View<const std::int32_t> next(rows.next.data(), {positions});
  const auto counted = positions - std::ranges::count(rows.next, kernels::ignored_target);
  const float scale = 1.0F / static_cast<float>(counted);
  Tensor<float> losses(Shape{positions});
  if (d_logits.present()) {
    kernels::linear_forward(x, unembedding, d_logits);
    kernels::cross_entropy_forward_backward(d_logits, next, scale, losses, {});
  }
  VocabularyLoss loss(stack.specification.vocabulary_size);
  loss.forward_backward(x, unembedding, next, losses,
                        {.scale = scale, .d_x = rows.d_unembedding_in, .d_unembedding = {}});
}

// By which a soft cap multiplies the gradient of a logit, of this row of the unembedding.
double cap_derivative(const LinearWeights& unembedding, std::int32_t token,
                      std::span<const float> weights, std::span<const float> x) {
  if (unembedding.soft_cap == 0) return 1;
  double logit = unembedding.bias.present() ? double{unembedding.bias(token)} : 0;
  for (std::size_t c = 0; c < weights.size(); ++c) logit += double{weights[c]} * x[c];
  const double share = std::tanh(logit / unembedding.soft_cap);
  return 1 - share * share;
}

// Of one text: a logit is a row of the unembedding times what it reads, within its soft cap.
void start_from_logits(const Stack& stack, const GradientTarget& target, View<const float> x,
                       View<float> d_x, View<float> d_logits) {
  const std::int64_t positions = d_x.extent(0), vocabulary = stack.specification.vocabulary_size;
  std::ranges::fill(d_x.span(), 0.0F);
  for (const GradientTarget::Logit& logit : target.logits) {
    require(logit.token >= 0 && logit.token < vocabulary, ErrorCode::invalid_argument,
            "token {} is outside the vocabulary of {}", logit.token, vocabulary);
    const std::int64_t row = row_of_logit(logit.position, positions);
    if (d_logits.present()) d_logits(row, logit.token) += static_cast<float>(logit.weight);
    const std::vector<float> weights =
        kernels::multiplied_row(stack.parameters.unembedding, logit.token);
    const double weight = logit.weight * cap_derivative(stack.parameters.unembedding, logit.token,
                                                        weights, x[row].span());
    for (std::size_t channel = 0; channel < weights.size(); ++channel) {
      d_x(row, channel) += static_cast<float>(weight * double{weights[channel]});
    }
  }
}

// Of one text: the unembedding of the weights (T, V) of all logits, within their soft cap.
void start_from_weights(const Stack& stack, View<const float> weights, const TargetGradient& rows,
                        View<float> d_logits) {
  const LinearWeights& unembedding = stack.parameters.unembedding;
  Tensor<float> before_cap;
  if (unembedding.soft_cap != 0) {
    before_cap = Tensor<float>(weights.shape());
    kernels::linear_forward(rows.unembedding_in, unembedding, before_cap);
    for (std::int64_t t = 0; t < weights.extent(0); ++t) {
      for (std::int64_t v = 0; v < weights.extent(1); ++v) {
        const float share = before_cap.view()(t, v) / unembedding.soft_cap;
        before_cap.view()(t, v) = weights(t, v) * (1 - share * share);
      }
    }
  }
  kernels::linear_backward_input(kernels::MultipliedWeight(unembedding).view(),
                                 before_cap.present() ? View<const float>(before_cap) : weights,
                                 rows.d_unembedding_in, unembedding.precision);
  if (d_logits.present()) kernels::copy(weights, d_logits);
}

}  // namespace

void require_gradients_past(const Editor* editor, const Architecture& architecture,
                            const std::function<bool(const Point&)>& wanted) {
  if (editor == nullptr) return;
  std::optional<Point> asked;
  for (const Point& point : all_points(architecture)) {
    require(!asked || !editor->edits(point) || editor->only_adds(point), ErrorCode::unsupported,
            "the gradient at {} would have to pass through the intervention at {}: gradients pass "
            "only through added vectors; request points after the intervention",
            point_name(asked.value_or(point)), point_name(point));
    if (!asked && wanted(point)) asked = point;
  }
}

std::vector<std::int32_t> next_tokens_of(const Architecture& architecture,
                                         std::span<const std::int32_t> tokens) {
  std::int64_t end = -1;
  if (architecture.is_encoder_decoder()) {
    end = architecture.decoder().end_of_text;
  } else {
    require_predicts_next(architecture.decoder(), "the gradient of the loss of a text");
    require(tokens.size() >= 2, ErrorCode::invalid_argument,
            "the loss needs a text of at least two tokens, not one");
  }
  std::vector<std::int32_t> next(tokens.begin() + 1, tokens.end());
  next.push_back(end < 0 ? kernels::ignored_target : static_cast<std::int32_t>(end));
  return next;
}

void start_gradient(const Stack& stack, const Pass& pass, const GradientTarget& target,
                    const TargetGradient& rows) {
  const std::int64_t vocabulary = stack.specification.vocabulary_size;
  if (target.is_loss() || !target.logits.empty() || !target.logit_weights.empty()) {
    require_unembedding(stack.specification, "the gradient of logits or of a loss");
  }
  Tensor<float> d_logits;
  if (pass.wants_gradient(PointKind::logits, -1)) {
    d_logits = Tensor<float>(Shape{pass.rows(), vocabulary});
    d_logits.fill(0.0F);
  }
  std::int64_t text = 0;
  for (const Sequence each : pass.sequences) {
    const auto own = [&](auto view) { return view.slice(0, each.row_begin, each.row_end); };
    const View<float> d_own = d_logits.present() ? own(d_logits.view()) : View<float>{};
    if (!target.logit_weights.empty()) {
      const View<const float> weights(
          target.logit_weights.data(),
          Shape{pass.sequences.count(), pass.sequences.positions_end(), vocabulary});
      start_from_weights(stack, weights[text++].slice(0, 0, each.length()),
                         {{}, own(rows.unembedding_in), own(rows.d_unembedding_in)}, d_own);
    } else if (target.is_loss()) {
      start_from_loss(stack,
                      {rows.next.subspan(static_cast<std::size_t>(each.row_begin),
                                         static_cast<std::size_t>(each.length())),
                       own(rows.unembedding_in), own(rows.d_unembedding_in)},
                      d_own);
    } else {
      start_from_logits(stack, target, own(rows.unembedding_in), own(rows.d_unembedding_in), d_own);
    }
  }
  if (d_logits.present()) pass.observe_gradient_rows(PointKind::logits, -1, d_logits);
}

void require_weights_fit(const GradientTarget& target, const Pass& pass, std::int64_t vocabulary) {
  if (target.logit_weights.empty()) return;
  const std::vector<std::int64_t> expected{pass.sequences.count(), pass.sequences.positions_end(),
                                           vocabulary};
  require(target.logit_weights.shape() == expected, ErrorCode::invalid_argument,
          "weights of logits have the shape ({}), expected ({})",
          fmt::join(target.logit_weights.shape(), ", "), fmt::join(expected, ", "));
}

void RecordedPass::backward(const GradientTarget& target, Probe& probe) const {
  const Editor* const editor = editor_.get();
  // After the pass: functions of the user show only then which values they change.
  require_gradients_past(editor, architecture(), [&](const Point& point) {
    return probe.wants_gradient(point) || (editor != nullptr && editor->edits_gradient(point));
  });
  std::vector<std::int32_t> next;
  if (target.is_loss()) {
    for (const Sequence each : sequences()) {
      const std::vector<std::int32_t> own =
          next_tokens_of(architecture(), tokens().subspan(static_cast<std::size_t>(each.row_begin),
                                                          static_cast<std::size_t>(each.length())));
      next.insert(next.end(), own.begin(), own.end());
    }
  }

  // 2. the decoder, or the only stack
  const StackSite last = stacks_.back().site;
  const bool attends = last == StackSite::decoder;  // to an encoder's rows
  Pass of_target = pass(&probe, last);
  CrossMemory memory;
  Tensor<float> d_memory;
  if (attends) {
    memory = {.rows = of(StackSite::encoder).activations->final_norm(), .texts = source_rows_};
    of_target.memory = &memory;
    d_memory = Tensor<float>(memory.rows.shape(), model_.device());
  }
  const std::int64_t memory_rows = attends ? source_rows_.rows() : 0;
  const StackActivations& activations = *of(last).activations;  // where they were computed
  const ActivationGradients buffers(architecture().decoder(), target_rows_.rows(), memory_rows,
                                    model_.device());
  if (of_target.layers.has_end(architecture().decoder().layers)) {
    require_weights_fit(target, of_target, architecture().decoder().vocabulary_size);
    const HereAndBack start(buffers.norm);
    start_gradient(model_.stack_here(last), of_target, target,
                   {next, final_rows(last), start.values()});
    start.finish();
  } else {
    require(!target.points.empty() && target.logits.empty() && target.logit_weights.empty(),
            ErrorCode::invalid_argument,
            "a pass that ends before layer {} has no logits: expected weights of points",
            of_target.layers.end);
    kernels::fill(buffers.norm, 0.0F);
  }
  stack_backward(model_.stack(last), token_view(last), of_target, activations, buffers, nullptr,
                 attends ? d_memory.view() : View<float>{});
  if (!attends) return;

  // 1. the encoder: the gradient of what the decoder attended to sums over its layers
  const StackSite first = StackSite::encoder;
  const ActivationGradients of_encoder(architecture().encoder(), memory_rows, 0, model_.device());
  kernels::copy(d_memory, of_encoder.norm);
  stack_backward(model_.stack(first), token_view(first), pass(&probe, first),
                 *of(first).activations, of_encoder, nullptr);
}

}  // namespace heed
