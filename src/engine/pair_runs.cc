// Passes of a translator with hooks, of the public facade.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/arrays.h"
#include "engine/hooks.h"
#include "engine/translator_parts.h"
#include "heed/pair_activations.h"
#include "kernels/kernels.h"
#include "microscope/intervene/pair_effects.h"
#include "microscope/traces/pair_pass.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/text_pass.h"
#include "model/input_checks.h"
#include "model/joined_editor.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

const LoadedTranslator& loaded(const Translator& translator) {
  return TranslatorAccess::loaded(translator);
}

Texts checked_pair(const Transformer& model, const SourceAndTarget& pair) {
  Texts tokens{.source = {pair.source.begin(), pair.source.end()},
               .target = {pair.target.begin(), pair.target.end()}};
  require_pair_fits(model.architecture(), tokens);
  return tokens;
}

// The token after each position of the target: the next one, then the end.
std::vector<std::int32_t> next_tokens_of(std::span<const std::int32_t> target,
                                         const Architecture& architecture) {
  std::vector<std::int32_t> next(target.begin() + 1, target.end());
  const std::int64_t end = architecture.decoder().end_of_text;
  next.push_back(end < 0 ? kernels::ignored_target : static_cast<std::int32_t>(end));
  return next;
}

// A pass with the hooks of `options`, and backward from the target where gradients are wanted.
class HookedPair {
 public:
  HookedPair(const Transformer& model, const SourceAndTarget& pair, const RunOptions& options)
      : model_(model),
        tokens_(checked_pair(model, pair)),
        options_(options),
        editor_(model.architecture(), options.hooks, options.gradient_hooks) {}

  const Texts& tokens() const { return tokens_; }
  std::int64_t sources() const { return std::ssize(tokens_.source); }
  std::int64_t targets() const { return std::ssize(tokens_.target); }
  HookEditor* editor() { return editor_.empty() ? nullptr : &editor_; }
  PointKeeper& keeper() { return *keeper_; }
  View<const float> unembedding_in() const { return decoder_->unembedding_in(); }

  void keep(std::vector<Point> points, std::vector<Point> gradients) {
    keeps_gradients_ = !gradients.empty();
    keeper_.emplace(model_.architecture(),
                    PointKeeper::Request{.points = std::move(points),
                                         .gradients = std::move(gradients),
                                         .positions = targets(),
                                         .sources = sources(),
                                         .model_editor = model_.editor()},
                    editor());
  }

  void run() {
    const Architecture& architecture = model_.architecture();
    const bool backward = keeps_gradients_ || editor_.has_gradient_hooks();
    const Keep keep = backward ? Keep::every_block : Keep::one_block;
    encoder_.emplace(architecture.encoder(), 1, sources(), keep);
    decoder_.emplace(architecture.decoder(), 1, targets(), keep, sources());
    if (backward) editor_.note_changes();
    HookProbe probe(editor(), options_.poll, keeper_ ? &*keeper_ : nullptr);
    const bool observed = keeper_ || options_.poll || editor() != nullptr;
    const auto pass_of = [&](std::int64_t positions, StackSite site) {
      return Pass{.positions = positions,
                  .site = site,
                  .probe = observed ? &probe : nullptr,
                  .editor = editor()};
    };
    const Pass encoder = pass_of(sources(), StackSite::encoder);
    Pass decoder = pass_of(targets(), StackSite::decoder);
    model_.forward({source_view(), encoder, *encoder_}, {target_view(), decoder, *decoder_});
    if (!backward) return;
    const EditorOfPass all(model_.editor(), editor());
    require_gradients_past(all.get(), architecture, [&](const Point& point) {
      return editor_.has_gradient_hook(point) || (keeper_ && keeper_->wants_gradient(point));
    });
    const std::vector<std::int64_t> row_starts{0, sources()};
    const CrossMemory memory{.rows = encoder_->final_norm(), .row_starts = row_starts};
    decoder.memory = &memory;
    run_backward(encoder, decoder);
  }

  Array logits() const {
    Tensor<float> logits(Shape{1, targets(), model_.architecture().decoder().vocabulary_size});
    unembed(model_.stack(StackSite::decoder), decoder_->unembedding_in(), logits.view()[0],
            targets());
    return make_array(std::move(logits));
  }

 private:
  View<const std::int32_t> source_view() const { return {tokens_.source.data(), {1, sources()}}; }
  View<const std::int32_t> target_view() const { return {tokens_.target.data(), {1, targets()}}; }

  // 2. the decoder, 1. the encoder: the gradient of what the decoder attended to sums over layers.
  void run_backward(const Pass& encoder, const Pass& decoder) {
    const Architecture& architecture = model_.architecture();
    const ActivationGradients decoder_buffers(architecture.decoder(), targets(), sources());
    const ActivationGradients encoder_buffers(architecture.encoder(), sources());
    const std::vector<std::int32_t> next = next_tokens_of(tokens_.target, architecture);
    start_gradient(model_.stack(StackSite::decoder), decoder, options_.target,
                   {next, decoder_->unembedding_in(), decoder_buffers.norm});
    Tensor<float> d_memory(Shape{sources(), architecture.encoder().channels});
    std::ranges::fill(d_memory.span(), 0.0F);
    stack_backward(model_.stack(StackSite::decoder), target_view(), decoder, *decoder_,
                   decoder_buffers, nullptr, d_memory);
    std::ranges::copy(d_memory.span(), encoder_buffers.norm.data());
    stack_backward(model_.stack(StackSite::encoder), source_view(), encoder, *encoder_,
                   encoder_buffers, nullptr);
  }

  const Transformer& model_;
  Texts tokens_;
  const RunOptions& options_;
  HookEditor editor_;
  bool keeps_gradients_ = false;
  std::optional<PointKeeper> keeper_;
  std::optional<StackActivations> encoder_;
  std::optional<StackActivations> decoder_;
};

}  // namespace

Array run(const Translator& translator, const SourceAndTarget& pair, const RunOptions& options) {
  HookedPair pass(loaded(translator).model, pair, options);
  pass.run();
  return pass.logits();
}

Array next_token_losses(const Translator& translator, const SourceAndTarget& pair,
                        const RunOptions& options) {
  const Transformer& model = loaded(translator).model;
  HookedPair pass(model, pair, options);
  pass.run();
  const std::vector<std::int32_t> next = next_tokens_of(pass.tokens().target, model.architecture());
  Tensor<float> losses(Shape{1, pass.targets()});
  VocabularyLoss loss(model.architecture().decoder().vocabulary_size);
  loss.forward(pass.unembedding_in(), model.stack(StackSite::decoder).parameters.unembedding,
               {next.data(), {pass.targets()}}, losses.view()[0], pass.targets());
  return make_array(std::move(losses));
}

std::vector<std::int32_t> tokens_after(const Translator& translator,
                                       std::span<const std::int32_t> target) {
  require_tokens(target, "the target");
  return next_tokens_of(target, loaded(translator).model.architecture());
}

Array losses_of_next(const Array& logits, std::span<const std::int32_t> next) {
  require(
      logits.shape().size() == 3 && logits.shape()[0] == 1 && logits.shape()[1] == std::ssize(next),
      ErrorCode::invalid_argument, "logits of shape ({}) are not those of {} tokens",
      fmt::join(logits.shape(), ", "), next.size());
  const std::int64_t positions = logits.shape()[1], vocabulary = logits.shape()[2];
  Tensor<float> losses(Shape{1, positions});
  kernels::cross_entropy_forward({logits.data(), {positions, vocabulary}},
                                 {next.data(), {positions}}, losses.view()[0]);
  return make_array(std::move(losses));
}

Activations record(const Translator& translator, const SourceAndTarget& pair,
                   const RecordRequest& request, const RunOptions& options) {
  const Transformer& model = loaded(translator).model;
  HookedPair pass(model, pair, options);
  RequestedPoints requested(request, model.architecture());
  auto parts = std::make_shared<ActivationsAccess::Parts>();
  parts->architecture = model.architecture();
  parts->tokens = pass.tokens().target;
  parts->source = pass.tokens().source;
  parts->positions = pass.targets();
  parts->names = std::move(requested.names);
  pass.keep(std::move(requested.points), std::move(requested.gradients));
  pass.run();
  for (auto& [name, values] : pass.keeper().take()) parts->kept.emplace(name, std::move(values));
  parts->attention = pass.keeper().take_attention();
  if (request.logits) parts->logits = pass.logits();
  return ActivationsAccess::make(std::move(parts));
}

std::vector<std::string> point_names(const Translator& translator) {
  std::vector<std::string> names;
  for (const Point& point : all_points(loaded(translator).model.architecture())) {
    names.push_back(point_name(point));
  }
  return names;
}

std::vector<std::string> points_named(const Translator& translator, std::string_view name) {
  std::vector<std::string> names;
  for (const Point& point : points_named(name, loaded(translator).model.architecture())) {
    names.push_back(point_name(point));
  }
  return names;
}

std::vector<std::int32_t> decoder_tokens(const Translator& translator, std::string_view text) {
  const LoadedTranslator& own = loaded(translator);
  return decoder_tokens(translator, own.target_tokenizer().encode(text, {.add_beginning = true}));
}

std::vector<std::int32_t> decoder_tokens(const Translator& translator,
                                         std::span<const std::int32_t> tokens) {
  const Architecture& architecture = loaded(translator).model.architecture();
  const bool has_start = !tokens.empty() && tokens.front() == architecture.decoder_start;
  return decoder_input(architecture, tokens.subspan(has_start ? 1 : 0));
}

Translator::Hypothesis translate_greedily(const Translator& translator,
                                          std::span<const std::int32_t> source,
                                          std::int64_t longest, const RunOptions& options) {
  const LoadedTranslator& own = loaded(translator);
  const Architecture& architecture = own.model.architecture();
  HookEditor editor(architecture, options.hooks);
  HookProbe probe(&editor, options.poll);
  const GreedyTranslation found =
      translate_greedily(own.model, source,
                         {.longest = longest > 0 ? longest : architecture.decoder().context - 1,
                          .editor = editor.empty() ? nullptr : &editor,
                          .probe = &probe});
  const bool has_text = own.tokenizers.target != nullptr;
  Translator::Hypothesis hypothesis{.text = has_text ? own.decode(found.tokens) : "",
                                    .tokens = found.tokens,
                                    .log_probability = found.log_probability,
                                    .finished = found.is_finished()};
  if (found.end) hypothesis.tokens.push_back(*found.end);
  const auto count = static_cast<double>(std::max<std::size_t>(hypothesis.tokens.size(), 1));
  hypothesis.score = found.log_probability / count;
  return hypothesis;
}

}  // namespace heed
