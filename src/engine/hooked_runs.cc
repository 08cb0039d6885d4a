// Passes of a model of one stack with hooks, of the public facade.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/facade.h"
#include "engine/hooks.h"
#include "kernels/kernels.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/text_pass.h"
#include "model/editor.h"
#include "model/input_checks.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

const Transformer& gpt_behind(const Model& model) { return ModelAccess::loaded(model).gpt; }

// (B, T) of the tokens of a batch.
View<const std::int32_t> checked_tokens(const Transformer& gpt, const TokenBatch& batch) {
  require_tokens(batch.tokens);
  require(batch.sequences >= 1 && std::ssize(batch.tokens) % batch.sequences == 0,
          ErrorCode::invalid_argument, "{} tokens are not {} sequences of one length",
          batch.tokens.size(), batch.sequences);
  const std::int64_t positions = std::ssize(batch.tokens) / batch.sequences;
  require_text_fits(gpt.specification(), batch.tokens.first(static_cast<std::size_t>(positions)));
  return {batch.tokens.data(), {batch.sequences, positions}};
}

// A pass with the hooks of `options`, and backward from the target where gradients are wanted.
class HookedRun {
 public:
  HookedRun(const Transformer& gpt, const TokenBatch& batch, const RunOptions& options)
      : gpt_(gpt),
        tokens_(checked_tokens(gpt, batch)),
        token_types_(batch.token_types),
        options_(options),
        editor_({.stacks = {gpt.specification()}}, options.hooks, options.gradient_hooks) {}

  std::int64_t batch() const { return tokens_.extent(0); }
  std::int64_t positions() const { return tokens_.extent(1); }
  HookEditor* editor() { return editor_.empty() ? nullptr : &editor_; }
  const View<const std::int32_t>& tokens() const { return tokens_; }
  const StackActivations& activations() const { return *activations_; }

  void keep(std::vector<Point> points, std::vector<Point> gradients) {
    keeps_gradients_ = !gradients.empty();
    keeper_.emplace(Architecture{.stacks = {gpt_.specification()}},
                    PointKeeper::Request{.points = std::move(points),
                                         .gradients = std::move(gradients),
                                         .batch = batch(),
                                         .positions = positions(),
                                         .model_editor = gpt_.editor()},
                    editor());
  }
  PointKeeper& keeper() { return *keeper_; }

  void run() {
    const bool backward = keeps_gradients_ || editor_.has_gradient_hooks();
    require(!backward || batch() == 1, ErrorCode::invalid_argument,
            "gradients are those of one sequence, not of a batch of {}", batch());
    activations_.emplace(gpt_.specification(), batch(), positions(),
                         !backward ? Keep::one_block
                         : editor_.has_hooks() || gpt_.editor() != nullptr
                             ? Keep::every_block  // each hook is called once
                             : Keep::residuals);
    if (backward) editor_.note_changes();
    HookProbe probe(editor(), options_.poll, keeper_ ? &*keeper_ : nullptr);
    const bool observed = keeper_ || options_.poll || editor() != nullptr;
    const Pass pass{.sequences = {batch(), positions()},
                    .token_types = token_types_,
                    .probe = observed ? &probe : nullptr,
                    .editor = editor()};
    gpt_.forward(tokens_, pass, *activations_);
    if (!backward) return;
    const EditorOfPass all(gpt_.editor(), editor());
    require_gradients_past(all.get(), {.stacks = {gpt_.specification()}}, [&](const Point& point) {
      return editor_.has_gradient_hook(point) || (keeper_ && keeper_->wants_gradient(point));
    });
    run_backward(pass);
  }

  Array logits() const {
    const std::int64_t vocabulary = gpt_.specification().vocabulary_size;
    Tensor<float> logits(Shape{batch(), positions(), vocabulary});
    gpt_.project(activations_->unembedding_in(),
                 logits.view().reshape({batch() * positions(), vocabulary}), positions());
    return make_array(std::move(logits));
  }

 private:
  // Forward left what the unembedding reads, which backward needs too.
  void run_backward(const Pass& pass) {
    const ActivationGradients buffers(gpt_.specification(), positions());
    std::vector<std::int32_t> next;
    if (options_.target.logits.empty()) {
      next = next_tokens_of(gpt_, tokens_.reshape({positions()}).span());
    }
    start_gradient(gpt_.stack(), pass, options_.target,
                   {next, activations_->unembedding_in(), buffers.norm});
    gpt_.backward(tokens_, pass, *activations_, buffers, nullptr);
  }

  const Transformer& gpt_;
  View<const std::int32_t> tokens_;
  std::span<const std::int32_t> token_types_;
  const RunOptions& options_;
  HookEditor editor_;
  bool keeps_gradients_ = false;
  std::optional<PointKeeper> keeper_;
  std::optional<StackActivations> activations_;
};

}  // namespace

Array run(const Model& model, const TokenBatch& batch, const RunOptions& options) {
  HookedRun pass(gpt_behind(model), batch, options);
  pass.run();
  return pass.logits();
}

Array next_token_losses(const Model& model, const TokenBatch& batch, const RunOptions& options) {
  const Transformer& gpt = gpt_behind(model);
  require_predicts_next(gpt.specification(), "the loss of a text");
  HookedRun pass(gpt, batch, options);
  require(pass.positions() >= 2, ErrorCode::invalid_argument,
          "the loss needs a text of at least two tokens, not one");
  pass.run();
  const std::int64_t positions = pass.positions();
  std::vector<std::int32_t> next;
  for (std::int64_t b = 0; b < pass.batch(); ++b) {
    const auto row = pass.tokens()[b].span();
    next.insert(next.end(), row.begin() + 1, row.end());
    next.push_back(kernels::ignored_target);
  }
  Tensor<float> all(Shape{pass.batch() * positions});
  VocabularyLoss loss(gpt.specification().vocabulary_size);
  loss.forward(pass.activations().unembedding_in(), gpt.parameters().unembedding(),
               {next.data(), all.shape()}, all, positions);
  Tensor<float> losses(Shape{pass.batch(), positions - 1});
  for (std::int64_t b = 0; b < pass.batch(); ++b) {
    std::copy_n(&all[b * positions], positions - 1, losses.view()[b].data());
  }
  return make_array(std::move(losses));
}

Array losses_from_logits(const Array& logits, const TokenBatch& batch) {
  require(logits.shape().size() == 3 && logits.shape()[0] == batch.sequences &&
              logits.shape()[0] * logits.shape()[1] == std::ssize(batch.tokens),
          ErrorCode::invalid_argument,
          "logits of shape ({}) are not those of {} sequences of {} tokens",
          fmt::join(logits.shape(), ", "), batch.sequences,
          std::ssize(batch.tokens) / std::max<std::int64_t>(batch.sequences, 1));
  const std::int64_t positions = logits.shape()[1], vocabulary = logits.shape()[2];
  require(positions >= 2, ErrorCode::invalid_argument,
          "the loss needs a text of at least two tokens, not one");
  Tensor<float> losses(Shape{batch.sequences, positions - 1});
  for (std::int64_t b = 0; b < batch.sequences; ++b) {
    const std::int64_t first = b * positions;
    const std::span<const std::int32_t> next = batch.tokens.subspan(
        static_cast<std::size_t>(first + 1), static_cast<std::size_t>(positions - 1));
    for (const std::int32_t token : next) {
      require(token >= 0 && token < vocabulary, ErrorCode::invalid_argument,
              "token {} is outside the {} logits", token, vocabulary);
    }
    kernels::cross_entropy_forward(
        {logits.data() + first * vocabulary, {positions - 1, vocabulary}},
        {next.data(), {positions - 1}}, losses.view()[b]);
  }
  return make_array(std::move(losses));
}

Activations record(const Model& model, const TokenBatch& batch, const RecordRequest& request,
                   const RunOptions& options) {
  const Transformer& gpt = gpt_behind(model);
  const View<const std::int32_t> tokens = checked_tokens(gpt, batch);
  auto parts = std::make_shared<ActivationsAccess::Parts>();
  parts->architecture = {.stacks = {gpt.specification()}};
  parts->gpt = &gpt;
  parts->tokens.assign(batch.tokens.begin(), batch.tokens.end());
  parts->sequences = tokens.extent(0);
  parts->positions = tokens.extent(1);
  RequestedPoints requested(request, parts->architecture);
  parts->names = std::move(requested.names);
  const bool plain =
      options.hooks.empty() && options.gradient_hooks.empty() && gpt.editor() == nullptr;
  if (request.points.empty() && plain) {
    HookProbe probe(nullptr, options.poll);
    parts->pass.emplace(
        gpt,
        RecordedPass::Batch{.tokens = parts->tokens,
                            .token_types = {batch.token_types.begin(), batch.token_types.end()},
                            .sequences = parts->sequences},
        options.poll ? &probe : nullptr);
    if (request.logits) parts->logits = make_array(parts->pass->logits());
    return ActivationsAccess::make(std::move(parts));
  }
  HookedRun pass(gpt, batch, options);
  pass.keep(std::move(requested.points), std::move(requested.gradients));
  pass.run();
  for (auto& [name, values] : pass.keeper().take()) parts->kept.emplace(name, std::move(values));
  parts->attention = pass.keeper().take_attention();
  if (request.logits) parts->logits = pass.logits();
  return ActivationsAccess::make(std::move(parts));
}

Model with_hooks(const Model& model, const std::vector<Hook>& hooks) {
  auto editor = std::make_shared<HookEditor>(
      Architecture{.stacks = {gpt_behind(model).specification()}}, hooks);
  editor->note_changes();
  editor->remember_planes();
  return ModelAccess::with_editor(model, std::move(editor));
}

std::vector<std::string> point_names(const Model& model) {
  std::vector<std::string> names;
  for (const Point& point : all_points(gpt_behind(model).specification())) {
    names.push_back(point_name(point));
  }
  return names;
}

std::vector<std::string> points_named(const Model& model, std::string_view name) {
  std::vector<std::string> names;
  for (const Point& point : points_named(name, gpt_behind(model).specification())) {
    names.push_back(point_name(point));
  }
  return names;
}

}  // namespace heed
