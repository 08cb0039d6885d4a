// Passes with hooks and recorded passes, of the public facade: of models and of translators.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/facade.h"
#include "engine/hooks.h"
#include "heed/translate.h"
#include "kernels/kernels.h"
#include "microscope/intervene/pair_effects.h"
#include "microscope/traces/gradients.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/editor.h"
#include "model/input_checks.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

// That reads the texts of the batch.
const Transformer& transformer_for(const Model& model, const TokenBatch& batch) {
  return ModelAccess::for_source(model, batch.sources).transformer;
}

const Transformer& of_two_texts(const Model& translator) {
  return ModelAccess::translator(translator).transformer;
}

const Architecture& architecture_of(const Model& model) {
  return ModelAccess::loaded(model).architecture();
}

// Of all passes of a model.
std::shared_ptr<HookEditor> standing_hooks(const Transformer& model,
                                           const std::vector<Hook>& hooks) {
  auto editor = std::make_shared<HookEditor>(model.architecture(), hooks);
  editor->note_changes();
  editor->remember_planes();
  editor->call_by_text();
  return editor;
}

// Of each of `count` sequences, which have `lengths`, or one length.
std::vector<std::int64_t> checked_lengths(std::int64_t tokens, std::int64_t count,
                                          std::span<const std::int64_t> lengths) {
  if (lengths.empty()) {
    require(count >= 1 && (tokens == 0 || tokens % count == 0), ErrorCode::invalid_argument,
            "{} tokens are not {} sequences of one length", tokens, count);
    return std::vector<std::int64_t>(static_cast<std::size_t>(count), tokens / count);
  }
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    require(length >= 1 && length <= tokens - sum, ErrorCode::invalid_argument,
            "{} tokens are not sequences of the lengths {}", tokens, fmt::join(lengths, ", "));
    sum += length;
  }
  require(sum == tokens && std::ssize(lengths) == count, ErrorCode::invalid_argument,
          "{} tokens are not {} sequences of the lengths {}", tokens, count,
          fmt::join(lengths, ", "));
  return {lengths.begin(), lengths.end()};
}

// What a pass reads: texts, or sources and targets.
struct RunInput {
  std::vector<Texts> texts{};
  std::vector<std::int32_t> token_types{};

  explicit RunInput(const TokenBatch& batch)
      : token_types(batch.token_types.begin(), batch.token_types.end()) {
    auto next = batch.tokens.begin();
    for (const std::int64_t length :
         checked_lengths(std::ssize(batch.tokens), batch.sequences, batch.lengths)) {
      texts.push_back({.source = {}, .target = {next, next + length}});
      next += length;
    }
    if (batch.sources.empty()) return;
    auto source = batch.sources.begin();
    auto text = texts.begin();
    for (const std::int64_t length :
         checked_lengths(std::ssize(batch.sources), batch.sequences, batch.source_lengths)) {
      (text++)->source = {source, source + length};
      source += length;
    }
  }

  RecordOptions options(Keep keep, Probe* observer) const {
    return {.keep = keep, .token_types = token_types, .observer = observer};
  }
};

// Whether a pass begins with a stream, or leaves out layers.
bool is_partial(const RunOptions& options) {
  return options.layer_begin != 0 || options.layer_end >= 0 || !options.stream.empty();
}

// Tokens (B, T) of rows.
std::vector<std::int32_t> padded_tokens(const Sequences& sequences,
                                        std::span<const std::int32_t> rows) {
  constexpr std::int32_t no_token = -1;
  const std::int64_t positions = sequences.positions_end();
  std::vector<std::int32_t> all(static_cast<std::size_t>(sequences.count() * positions), no_token);
  auto to = all.begin();
  for (const Sequence each : sequences) {
    std::copy_n(rows.begin() + each.row_begin, each.length(), to);
    to += positions;
  }
  return all;
}

// A pass with the hooks of `options`, and backward from the target where gradients are wanted.
class HookedRun {
 public:
  HookedRun(const Transformer& model, RunInput input, const RunOptions& options)
      : model_(model),
        input_(std::move(input)),
        options_(options),
        editor_(model.architecture(), options.hooks, options.gradient_hooks,
                options.target.points) {
    read_layers();
    read_stream();
  }

  void keep(RequestedPoints requested) {
    keeps_gradients_ = !requested.gradients.empty();
    keeper_.emplace(model_.architecture(),
                    PointKeeper::Request{.points = std::move(requested.points),
                                         .gradients = std::move(requested.gradients),
                                         .batch = std::ssize(input_.texts),
                                         .positions = std::ssize(input_.texts.front().target),
                                         .sources = std::ssize(input_.texts.front().source),
                                         .model_editor = model_.editor()},
                    editor());
  }
  PointKeeper& keeper() { return *keeper_; }

  // Has the pass end with the last block of which points are wanted.
  void end_with(const std::vector<Point>& points) {
    const bool is_looked_at = editor() != nullptr || model_.editor() != nullptr || keeps_gradients_;
    if (is_looked_at || options_.layer_end >= 0 || model_.architecture().is_encoder_decoder())
      return;
    std::int64_t end = layers_.begin;
    for (const Point& point : points) {
      const bool is_before =
          point.kind == PointKind::embedding || point.kind == PointKind::position;
      if (point.layer < 0 && !is_before) return;
      end = std::max(end, point.layer + 1);
    }
    layers_.end = end;
  }
  // Whether the pass comes by the point.
  bool computes(const Point& point) const {
    const std::int64_t layers = model_.architecture().of(point.site).layers;
    if (point.layer >= 0)
      return point.layer >= layers_.begin && point.layer < layers_.end_of(layers);
    const bool is_before = point.kind == PointKind::embedding || point.kind == PointKind::position;
    return is_before ? options_.stream.empty() : layers_.has_end(layers);
  }
  // Of a part of the layers, which has to have some of what is asked for.
  void leave_out_others(RequestedPoints& requested) const {
    if (!is_partial(options_)) return;
    const auto is_left_out = [&](const Point& point) { return !computes(point); };
    std::erase_if(requested.points, is_left_out);
    std::erase_if(requested.gradients, is_left_out);
    std::erase_if(requested.names, [&](std::string_view name) {
      if (name.ends_with(gradient_suffix)) name.remove_suffix(gradient_suffix.size());
      const std::optional<Point> point = point_from_name(name);
      return point && is_left_out(*point);
    });
    require(!requested.names.empty(), ErrorCode::invalid_argument,
            "the pass computes none of the points that are asked for: it is of layers [{}, {})",
            layers_.begin, layers_.end_of(model_.architecture().decoder().layers));
  }
  bool has_logits() const { return layers_.has_end(model_.architecture().decoder().layers); }
  // (B, T, C)
  Array stream() const {
    const Sequences& rows = pass_->sequences();
    const View<const float> end = pass_->stream();
    if (rows.is_ragged())
      return make_array(padded(rows, end.reshape({1, rows.rows(), end.extent(1)})));
    return dense_copy(end.reshape({rows.count(), rows.length(), end.extent(1)}));
  }

  const RecordedPass& run() {
    const bool backward = keeps_gradients_ || editor_.has_gradient_hooks();
    editor_.call_by_text();
    if (backward) editor_.note_changes();
    HookProbe probe(editor(), options_.poll, keeper_ ? &*keeper_ : nullptr);
    const bool observed = keeper_ || options_.poll || editor() != nullptr;
    const bool is_edited = editor_.has_hooks() || model_.editor() != nullptr;
    const Keep keep = !backward                    ? Keep::one_block
                      : is_edited || fits_memory() ? Keep::every_block  // each hook is called once
                                                   : Keep::residuals;
    RecordOptions record = input_.options(keep, observed ? &probe : nullptr);
    for (const FrozenPart part : options_.freeze) {
      (part == FrozenPart::pattern ? record.frozen.pattern : record.frozen.scale) = true;
    }
    record.layers = layers_;
    if (stream_.present()) record.stream = stream_;
    pass_.emplace(model_, input_.texts, borrowed_editor(editor()), std::move(record));
    if (backward) pass_->backward(target(), probe);
    return *pass_;
  }

 private:
  void read_layers() {
    const Architecture& architecture = model_.architecture();
    layers_ = {.begin = options_.layer_begin, .end = options_.layer_end};
    if (!is_partial(options_)) return;
    require(!architecture.is_encoder_decoder(), ErrorCode::unsupported,
            "a pass over a part of the layers is of a model of one stack");
    const std::int64_t layers = architecture.decoder().layers, end = layers_.end_of(layers);
    require(layers_.begin >= 0 && layers_.begin <= end && end <= layers,
            ErrorCode::invalid_argument, "layers [{}, {}) are not among the {} of the model",
            layers_.begin, end, layers);
    require(layers_.begin < layers, ErrorCode::invalid_argument,
            "a pass cannot begin at layer {}: the model has layers 0 to {}", layers_.begin,
            layers - 1);
    require(layers_.begin == 0 || !options_.stream.empty(), ErrorCode::invalid_argument,
            "a pass that begins at layer {} needs the stream that the layer reads", layers_.begin);
    for (const GradientTarget::PointWeights& weights : options_.target.points) {
      const Point point = points_named(weights.point, architecture).front();
      require(computes(point), ErrorCode::invalid_argument,
              "the pass does not compute '{}', which is weighted: it is of layers [{}, {})",
              point_name(point), layers_.begin, end);
    }
  }

  // From (B, T, C) to the rows of texts.
  void read_stream() {
    if (options_.stream.empty()) return;
    const std::int64_t channels = model_.architecture().decoder().channels;
    std::int64_t longest = 0, rows = 0;
    for (const Texts& texts : input_.texts) {
      longest = std::max<std::int64_t>(longest, std::ssize(texts.target));
      rows += std::ssize(texts.target);
    }
    const std::vector<std::int64_t> expected{std::ssize(input_.texts), longest, channels};
    require(options_.stream.shape() == expected, ErrorCode::invalid_argument,
            "the stream has the shape ({}), expected ({})",
            fmt::join(options_.stream.shape(), ", "), fmt::join(expected, ", "));
    stream_ = Tensor<float>(Shape{rows, channels});
    float* to = stream_.data();
    for (std::size_t text = 0; text < input_.texts.size(); ++text) {
      const std::int64_t size = std::ssize(input_.texts[text].target) * channels;
      to = std::copy_n(
          options_.stream.data() + static_cast<std::int64_t>(text) * longest * channels, size, to);
    }
  }

  // Whether all blocks are kept for backward, which otherwise computes each again.
  bool fits_memory() const {
    constexpr std::int64_t max_bytes = std::int64_t{256} << 20;
    std::int64_t rows = 0, sources = 0;
    for (const Texts& texts : input_.texts) {
      rows += std::ssize(texts.target);
      sources += std::ssize(texts.source);
    }
    return RecordedPass::bytes_needed(model_.architecture(), rows, sources) <= max_bytes;
  }

  // What backward starts from.
  GradientTarget target() const {
    require(options_.stream.empty() || options_.metric || !options_.target.is_loss(),
            ErrorCode::invalid_argument,
            "a pass that begins with a stream has read no tokens, whose loss could be "
            "differentiated: expected weights, or a metric of the logits");
    if (!options_.metric) return options_.target;
    require(has_logits(), ErrorCode::invalid_argument,
            "a pass that ends before layer {} has no logits for a metric", layers_.end);
    GradientTarget target = options_.target;
    target.logits.clear();
    target.logit_weights = options_.metric(make_array(pass_->logits()));
    return target;
  }

  HookEditor* editor() { return editor_.empty() ? nullptr : &editor_; }

  const Transformer& model_;
  RunInput input_;
  const RunOptions& options_;
  HookEditor editor_;
  LayerRange layers_;
  Tensor<float> stream_;  // (N, C)
  bool keeps_gradients_ = false;
  std::optional<PointKeeper> keeper_;
  std::optional<RecordedPass> pass_;
};

// Of the tokens `next` (N) of a pass, in nats.
Tensor<float> losses_of(const RecordedPass& pass, const std::vector<std::int32_t>& next) {
  const StackSpecification& stack = pass.architecture().decoder();
  Tensor<float> losses(Shape{std::ssize(next)});
  VocabularyLoss loss(stack.vocabulary_size);
  loss.forward(pass.final_rows(), pass.model().stack().parameters.unembedding,
               {next.data(), losses.shape()}, losses, pass.arithmetic_length());
  return losses;
}

// (B, T) of the losses of rows, without the last `unknown` of each sequence; zeros after its end.
Array losses_by_text(const RecordedPass& pass, const Tensor<float>& rows, std::int64_t unknown) {
  Tensor<float> losses(Shape{pass.sequences().count(), pass.positions() - unknown});
  losses.fill(0.0F);
  std::int64_t text = 0;
  for (const Sequence each : pass.sequences()) {
    std::copy_n(&rows[each.row_begin], each.length() - unknown, losses.view()[text++].data());
  }
  return make_array(std::move(losses));
}

Activations recorded(const Transformer& model, RunInput input, const RecordRequest& request,
                     const RunOptions& options) {
  auto parts = std::make_shared<ActivationsAccess::Parts>();
  parts->architecture = model.architecture();
  parts->device = model.device();
  if (!model.architecture().is_encoder_decoder()) parts->transformer = &model;
  RequestedPoints requested(request, parts->architecture);
  const bool plain =
      options.hooks.empty() && options.gradient_hooks.empty() && model.editor() == nullptr;
  if (request.points.empty() && plain && !is_partial(options)) {
    parts->names = std::move(requested.names);
    HookProbe probe(nullptr, options.poll);
    parts->pass.emplace(model, input.texts, nullptr,
                        input.options(Keep::points, options.poll ? &probe : nullptr));
    parts->read(*parts->pass);
    if (request.logits) parts->logits = make_array(parts->pass->logits());
    return ActivationsAccess::make(std::move(parts));
  }
  HookedRun run(model, std::move(input), options);
  run.leave_out_others(requested);
  parts->names = requested.names;
  const std::vector<Point> points = requested.points;
  run.keep(std::move(requested));
  if (!request.logits) run.end_with(points);
  const RecordedPass& pass = run.run();
  parts->read(pass);
  for (auto& [name, values] : run.keeper().take()) parts->kept.emplace(name, std::move(values));
  parts->attention = run.keeper().take_attention();
  if (request.logits) parts->logits = run.has_logits() ? make_array(pass.logits()) : run.stream();
  return ActivationsAccess::make(std::move(parts));
}

std::vector<std::string> names_of(const std::vector<Point>& points) {
  std::vector<std::string> names;
  for (const Point& point : points) names.push_back(point_name(point));
  return names;
}

}  // namespace

void Activations::Parts::read(const RecordedPass& recorded) {
  rows = recorded.sequences();
  positions = recorded.positions();
  tokens = padded_tokens(rows, recorded.texts().target);
  if (!architecture.is_encoder_decoder()) return;
  source_rows = recorded.sequences(StackSite::encoder);
  sources = recorded.sources();
  source = padded_tokens(source_rows, recorded.texts().source);
}

Array run(const Model& model, const TokenBatch& batch, const RunOptions& options) {
  HookedRun run(transformer_for(model, batch), RunInput(batch), options);
  const RecordedPass& pass = run.run();
  return run.has_logits() ? make_array(pass.logits()) : run.stream();
}

Array next_token_losses(const Model& model, const TokenBatch& batch, const RunOptions& options) {
  const Transformer& transformer = transformer_for(model, batch);
  require(!is_partial(options), ErrorCode::unsupported,
          "the loss of a text needs its tokens and all layers: expected neither a stream nor a "
          "part of the layers");
  RunInput input(batch);
  std::vector<std::int32_t> next;
  for (const Texts& texts : input.texts) {
    const std::vector<std::int32_t> own = tokens_after(model, texts.target);
    next.insert(next.end(), own.begin(), own.end());
  }
  HookedRun run(transformer, std::move(input), options);
  const RecordedPass& pass = run.run();
  // What follows a text is not known, but for the end of a translation.
  return losses_by_text(pass, losses_of(pass, next),
                        transformer.architecture().is_encoder_decoder() ? 0 : 1);
}

std::vector<std::int32_t> tokens_after(const Model& model, std::span<const std::int32_t> tokens) {
  const Architecture& architecture = architecture_of(model);
  require_tokens(tokens, "the text");
  if (!architecture.is_encoder_decoder()) {
    require_predicts_next(architecture.decoder(), "the loss of a text");
  }
  return next_tokens_of(architecture, tokens);
}

Array losses_from_logits(const Array& logits, std::span<const std::int32_t> next) {
  const std::vector<std::int64_t>& shape = logits.shape();
  require(shape.size() == 3 && shape[0] * shape[1] == std::ssize(next), ErrorCode::invalid_argument,
          "logits of shape ({}) are not those of {} tokens", fmt::join(shape, ", "), next.size());
  for (const std::int32_t token : next) {
    require(token == kernels::ignored_target || (token >= 0 && token < shape[2]),
            ErrorCode::invalid_argument, "token {} is outside the {} logits", token, shape[2]);
  }
  Tensor<float> losses(Shape{shape[0], shape[1]});
  kernels::cross_entropy_forward({logits.data(), {std::ssize(next), shape[2]}},
                                 {next.data(), {std::ssize(next)}},
                                 losses.view().reshape({std::ssize(next)}));
  return make_array(std::move(losses));
}

Activations record(const Model& model, const TokenBatch& batch, const RecordRequest& request,
                   const RunOptions& options) {
  return recorded(transformer_for(model, batch), RunInput(batch), request, options);
}

Model with_hooks(const Model& model, const std::vector<Hook>& hooks) {
  return ModelAccess::with_editor(model,
                                  standing_hooks(ModelAccess::loaded(model).transformer, hooks));
}

std::vector<std::string> point_names(const Model& model) {
  return names_of(all_points(architecture_of(model)));
}

std::vector<std::string> points_named(const Model& model, std::string_view name) {
  return names_of(points_named(name, architecture_of(model)));
}

std::vector<std::int32_t> decoder_tokens(const Model& translator, std::string_view text) {
  const LoadedModel& own = ModelAccess::translator(translator);
  return decoder_tokens(translator, own.require_tokenizer().encode(text, {.add_beginning = true}));
}

std::vector<std::int32_t> decoder_tokens(const Model& translator,
                                         std::span<const std::int32_t> tokens) {
  const Architecture& architecture = of_two_texts(translator).architecture();
  const bool has_start = !tokens.empty() && tokens.front() == architecture.decoder_start;
  return decoder_input(architecture, tokens.subspan(has_start ? 1 : 0));
}

Model::Hypothesis translate_greedily(const Model& translator, std::span<const std::int32_t> source,
                                     std::int64_t max_length, const RunOptions& options) {
  const LoadedModel& own = ModelAccess::translator(translator);
  const Architecture& architecture = own.transformer.architecture();
  HookEditor editor(architecture, options.hooks);
  HookProbe probe(&editor, options.poll);
  const GreedyTranslation found = translate_greedily(
      own.transformer, source,
      {.max_length = max_length > 0 ? max_length : architecture.decoder().context - 1,
       .editor = editor.empty() ? nullptr : &editor,
       .probe = &probe});
  const bool has_text = own.tokenizer != nullptr;
  Model::Hypothesis hypothesis{.text = has_text ? own.target_text(found.tokens) : "",
                               .tokens = found.tokens,
                               .log_probability = found.log_probability,
                               .finished = found.is_finished()};
  if (found.end) hypothesis.tokens.push_back(*found.end);
  const auto count = static_cast<double>(std::max<std::size_t>(hypothesis.tokens.size(), 1));
  hypothesis.score = found.log_probability / count;
  return hypothesis;
}

}  // namespace heed
