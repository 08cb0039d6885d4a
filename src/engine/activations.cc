// Passes with hooks, and passes that are recorded, of the public facade.
#include "heed/activations.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/arrays.h"
#include "engine/hooks.h"
#include "engine/model_parts.h"
#include "engine/model_passes.h"
#include "engine/point_keeper.h"
#include "kernels/kernels.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "microscope/traces/text_pass.h"
#include "model/input_checks.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

const Gpt& gpt_behind(const Model& model) { return ModelAccess::loaded(model).gpt; }

// (B, T) of the tokens of a batch.
View<const std::int32_t> checked_tokens(const Gpt& gpt, const TokenBatch& batch) {
  require_tokens(batch.tokens);
  require(batch.sequences >= 1 && std::ssize(batch.tokens) % batch.sequences == 0,
          ErrorCode::invalid_argument, "{} tokens are not {} sequences of one length",
          batch.tokens.size(), batch.sequences);
  const std::int64_t positions = std::ssize(batch.tokens) / batch.sequences;
  require_text_fits(gpt.config(), batch.tokens.first(static_cast<std::size_t>(positions)));
  return {batch.tokens.data(), {batch.sequences, positions}};
}

SharedView dense_view(const Array& array) {
  SharedView view{.data = array.owner().get(), .shape = array.shape(), .owner = array.owner()};
  view.strides.assign(view.shape.size(), 1);
  for (std::size_t i = view.shape.size(); i-- > 1;) {
    view.strides[i - 1] = view.strides[i] * view.shape[i];
  }
  return view;
}

bool is_plane_point(PointKind kind) {
  return kind == PointKind::scores || kind == PointKind::pattern;
}

// Points that only some readers want, and that take the memory of all heads' streams.
bool is_optional(PointKind kind) {
  return kind == PointKind::attention_in || kind == PointKind::query_input ||
         kind == PointKind::key_input || kind == PointKind::value_input ||
         kind == PointKind::feed_forward_in || kind == PointKind::head_results;
}

// A pass with the hooks of `options`, and backward from the target where gradients are wanted.
class HookedRun {
 public:
  HookedRun(const Gpt& gpt, const TokenBatch& batch, const RunOptions& options)
      : gpt_(gpt),
        tokens_(checked_tokens(gpt, batch)),
        options_(options),
        editor_(gpt.config(), options.hooks),
        gradient_hooks_(gpt.config(), options.gradient_hooks) {}

  std::int64_t batch() const { return tokens_.extent(0); }
  std::int64_t positions() const { return tokens_.extent(1); }
  HookEditor* editor() { return editor_.empty() ? nullptr : &editor_; }
  const View<const std::int32_t>& tokens() const { return tokens_; }
  const GptActivations& activations() const { return *activations_; }

  void keep(std::vector<Point> points, std::vector<Point> gradients) {
    keeps_gradients_ = !gradients.empty();
    keeper_.emplace(gpt_.config(),
                    PointKeeper::Request{.points = std::move(points),
                                         .gradients = std::move(gradients),
                                         .batch = batch(),
                                         .positions = positions()},
                    editor(), &gradient_hooks_);
  }
  PointKeeper& keeper() { return *keeper_; }

  void run() {
    const bool backward = keeps_gradients_ || !gradient_hooks_.empty();
    if (backward) {
      require(batch() == 1, ErrorCode::invalid_argument,
              "gradients are those of one sequence, not of a batch of {}", batch());
      if (!keeper_) keep({}, {});
      require_gradients_past(editor(), gpt_.config(),
                             [&](const Point& point) { return keeper_->wants_gradient(point); });
    }
    activations_.emplace(gpt_.config(), batch(), positions(),
                         !backward             ? Keep::one_block
                         : editor() == nullptr ? Keep::residuals
                                               : Keep::every_block);  // each hook is called once
    HookProbe probe(editor(), options_.poll, keeper_ ? &*keeper_ : nullptr);
    const bool observed = keeper_ || options_.poll || editor() != nullptr;
    const Pass pass{.batch = batch(),
                    .positions = positions(),
                    .probe = observed ? &probe : nullptr,
                    .editor = editor()};
    gpt_.forward(tokens_, pass, *activations_);
    if (backward) run_backward(pass);
  }

  Array logits() const {
    const std::int64_t vocabulary = gpt_.config().vocabulary_size;
    Tensor<float> logits(Shape{batch(), positions(), vocabulary});
    gpt_.project(activations_->unembedding_in(),
                 logits.view().reshape({batch() * positions(), vocabulary}), positions());
    return make_array(std::move(logits));
  }

 private:
  // Forward left what the unembedding reads, which backward needs too.
  void run_backward(const Pass& pass) {
    const GptActivationGradients buffers(gpt_.config(), positions());
    start_gradient(gpt_, tokens_.reshape({positions()}).span(), pass, options_.target,
                   {activations_->unembedding_in(), buffers.norm});
    gpt_.backward(tokens_, pass, *activations_, buffers, nullptr);
  }

  const Gpt& gpt_;
  View<const std::int32_t> tokens_;
  const RunOptions& options_;
  HookEditor editor_;
  GradientHooks gradient_hooks_;
  bool keeps_gradients_ = false;
  std::optional<PointKeeper> keeper_;
  std::optional<GptActivations> activations_;
};

}  // namespace

Array run(const Model& model, const TokenBatch& batch, const RunOptions& options) {
  HookedRun pass(gpt_behind(model), batch, options);
  pass.run();
  return pass.logits();
}

Array next_token_losses(const Model& model, const TokenBatch& batch, const RunOptions& options) {
  const Gpt& gpt = gpt_behind(model);
  require_predicts_next(gpt.config(), "the loss of a text");
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
  VocabularyLoss loss(gpt.config().vocabulary_size);
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

struct Activations::Parts {
  const Gpt& gpt;
  std::vector<std::int32_t> tokens;
  std::int64_t sequences = 1;
  std::int64_t positions = 1;
  std::vector<std::string> names;
  std::optional<RecordedPass> pass;
  std::map<std::string, Array, std::less<>> kept;
  std::optional<LazyAttention> attention;
  Array logits;
  // Computed values in use: another reader gets the same.
  mutable std::mutex mutex;
  mutable std::map<std::string, std::weak_ptr<float[]>, std::less<>> computed;

  explicit Parts(const Gpt& of) : gpt(of) {}

  Point point(std::string_view name) const {
    const std::optional<Point> point = point_from_name(name);
    require(point.has_value() && has(name), ErrorCode::not_found, "'{}' was not recorded", name);
    return *point;
  }
  bool has(std::string_view name) const {
    if (kept.contains(name) || std::ranges::find(names, name) != names.end()) return true;
    const std::optional<Point> point = point_from_name(name);
    return pass && point && has_point(gpt.config(), point->kind) &&
           point->layer < gpt.config().layers;
  }
  Array tiles(const Point& point, AttentionTiles wanted) const;
};

Array Activations::Parts::tiles(const Point& point, AttentionTiles wanted) const {
  const auto all = [](std::vector<std::int64_t>& indices, std::int64_t count) {
    if (!indices.empty()) return;
    indices.resize(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), 0);
  };
  all(wanted.sequences, sequences);
  all(wanted.heads, gpt.config().heads());
  const std::int64_t queries = wanted.query_end - wanted.query_begin;
  const std::int64_t keys = wanted.key_end - wanted.key_begin;
  require(0 <= wanted.query_begin && queries >= 0 && wanted.query_end <= positions &&
              0 <= wanted.key_begin && keys >= 0 && wanted.key_end <= positions,
          ErrorCode::invalid_argument,
          "queries [{}, {}) and keys [{}, {}) are not within {} positions", wanted.query_begin,
          wanted.query_end, wanted.key_begin, wanted.key_end, positions);
  for (const std::int64_t sequence : wanted.sequences) {
    require(sequence >= 0 && sequence < sequences, ErrorCode::invalid_argument,
            "sequence {} does not exist: the batch has {}", sequence, sequences);
  }
  for (const std::int64_t head : wanted.heads) checked_head(head, gpt.config());
  Tensor<float> planes(
      Shape{std::ssize(wanted.sequences), std::ssize(wanted.heads), queries, keys});
  if (planes.shape().size() == 0) return make_array(std::move(planes));
  for (std::size_t b = 0; b < wanted.sequences.size(); ++b) {
    for (std::size_t h = 0; h < wanted.heads.size(); ++h) {
      const View<float> out =
          planes.view()[static_cast<std::int64_t>(b)][static_cast<std::int64_t>(h)];
      if (pass) {
        pass->attention_tile(point,
                             {.batch = wanted.sequences[b],
                              .head = wanted.heads[h],
                              .query_begin = wanted.query_begin,
                              .query_end = wanted.query_end,
                              .key_begin = wanted.key_begin,
                              .key_end = wanted.key_end},
                             out);
        continue;
      }
      const Tensor<float> plane =
          attention->region({.layer = point.layer,
                             .head = wanted.heads[h],
                             .query_begin = wanted.query_begin,
                             .query_end = wanted.query_end,
                             .key_begin = wanted.key_begin,
                             .key_end = wanted.key_end,
                             .values = point.kind == PointKind::scores ? AttentionValues::scores
                                                                       : AttentionValues::pattern});
      std::ranges::copy(plane.span(), out.data());
    }
  }
  return make_array(std::move(planes));
}

struct ActivationsAccess {
  static const Gpt& gpt(const Activations& found) { return found.parts_->gpt; }
};

const Gpt& activations_model(const Activations& found) { return ActivationsAccess::gpt(found); }

Activations::Activations(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Activations::Activations(Activations&&) noexcept = default;
Activations& Activations::operator=(Activations&&) noexcept = default;
Activations::~Activations() = default;

std::int64_t Activations::sequences() const { return parts_->sequences; }
std::int64_t Activations::positions() const { return parts_->positions; }
const std::vector<std::int32_t>& Activations::tokens() const { return parts_->tokens; }
const std::vector<std::string>& Activations::names() const { return parts_->names; }
const Array& Activations::logits() const { return parts_->logits; }

std::string Activations::full_name(std::string_view name) const {
  const bool gradient = name.ends_with(gradient_suffix);
  const std::string_view plain =
      gradient ? name.substr(0, name.size() - gradient_suffix.size()) : name;
  const std::vector<Point> points = heed::points_named(plain, parts_->gpt.config());
  require(points.size() == 1, ErrorCode::invalid_argument,
          "'{}' names {} points, from {} to {}: add a layer", name, points.size(),
          point_name(points.front()), point_name(points.back()));
  return point_name(points.front()) + std::string(gradient ? gradient_suffix : "");
}

bool Activations::has(std::string_view name) const { return parts_->has(name); }

bool Activations::is_lazy_attention(std::string_view name) const {
  const std::optional<Point> point = point_from_name(name);
  return point && is_plane_point(point->kind) && !parts_->kept.contains(name) && has(name);
}

std::vector<std::int64_t> Activations::shape(std::string_view name) const {
  if (const auto kept = parts_->kept.find(name); kept != parts_->kept.end()) {
    return kept->second.shape();
  }
  const StackSpecification& config = parts_->gpt.config();
  const Point point = parts_->point(name);
  const PointShape shape = point_shape(config, point.kind);
  const std::int64_t b = parts_->sequences, t = parts_->positions;
  if (shape.is_plane) return {b, shape.heads, t, t};
  if (shape.has_heads) return {b, t, shape.heads, shape.width};
  return {b, t, shape.width};
}

SharedView Activations::at(std::string_view name) const {
  if (const auto kept = parts_->kept.find(name); kept != parts_->kept.end()) {
    return dense_view(kept->second);
  }
  const Point point = parts_->point(name);
  if (parts_->pass) {
    if (point.kind == PointKind::logits && !parts_->logits.empty()) {
      return dense_view(parts_->logits);
    }
    const View<float> stored = parts_->pass->stored(point);
    if (stored.present()) {
      return {.data = stored.data(),
              .shape = {stored.shape().begin(), stored.shape().end()},
              .strides = {stored.strides().begin(), stored.strides().begin() + stored.rank()},
              .owner = parts_};
    }
  }
  const std::vector<std::int64_t> extents = shape(name);
  const std::lock_guard lock(parts_->mutex);
  std::weak_ptr<float[]>& known = parts_->computed[std::string(name)];
  if (const auto owner = known.lock()) return dense_view(Array(extents, owner));
  const Array values = is_plane_point(point.kind)
                           ? parts_->tiles(point, {.query_end = extents[2], .key_end = extents[3]})
                           : make_array(parts_->pass->computed(point));
  known = values.owner();
  return dense_view(values);
}

Array Activations::attention(std::string_view name, const AttentionTiles& tiles) const {
  const Point point = parts_->point(name);
  require(is_plane_point(point.kind) && !parts_->kept.contains(name), ErrorCode::invalid_argument,
          "'{}' has no tiles: expected scores or a pattern that no hook changed", name);
  return parts_->tiles(point, tiles);
}

std::int64_t Activations::bytes() const {
  std::int64_t bytes = parts_->pass ? parts_->pass->bytes() : 0;
  for (const auto& [name, values] : parts_->kept) {
    bytes += static_cast<std::int64_t>(values.size() * sizeof(float));
  }
  if (parts_->attention) {
    bytes += LazyAttention::bytes_needed(
        parts_->gpt.config(), std::ssize(parts_->attention->layers()), parts_->positions);
  }
  return bytes;
}

Activations record(const Model& model, const TokenBatch& batch, const RecordRequest& request,
                   const RunOptions& options) {
  const Gpt& gpt = gpt_behind(model);
  const View<const std::int32_t> tokens = checked_tokens(gpt, batch);
  auto parts = std::make_shared<Activations::Parts>(gpt);
  parts->tokens.assign(batch.tokens.begin(), batch.tokens.end());
  parts->sequences = tokens.extent(0);
  parts->positions = tokens.extent(1);
  std::vector<Point> points, gradients;
  for (const std::string_view name : request.points) {
    const bool gradient = name.ends_with(gradient_suffix);
    const std::string_view plain =
        gradient ? name.substr(0, name.size() - gradient_suffix.size()) : name;
    std::vector<Point>& wanted = gradient ? gradients : points;
    for (const Point& point : points_named(plain, gpt.config())) wanted.push_back(point);
  }
  if (request.points.empty()) {
    for (const Point& point : all_points(gpt.config())) {
      if (!is_optional(point.kind)) points.push_back(point);
    }
  }
  std::vector<Point> ordered;
  for (const Point& point : all_points(gpt.config())) {
    if (std::ranges::find(points, point) == points.end()) continue;
    ordered.push_back(point);
    parts->names.push_back(point_name(point));
  }
  for (const Point& point : gradients) {
    parts->names.push_back(point_name(point) + std::string(gradient_suffix));
  }
  const bool plain = options.hooks.empty() && options.gradient_hooks.empty();
  if (request.points.empty() && plain) {
    HookProbe probe(nullptr, options.poll);
    parts->pass.emplace(gpt, parts->tokens, parts->sequences, options.poll ? &probe : nullptr);
    if (request.logits) parts->logits = make_array(parts->pass->logits());
    return Activations(std::move(parts));
  }
  HookedRun pass(gpt, batch, options);
  pass.keep(std::move(ordered), std::move(gradients));
  pass.run();
  for (auto& [name, values] : pass.keeper().take()) parts->kept.emplace(name, std::move(values));
  parts->attention = pass.keeper().take_attention();
  if (request.logits) parts->logits = pass.logits();
  return Activations(std::move(parts));
}

std::vector<std::string> point_names(const Model& model) {
  std::vector<std::string> names;
  for (const Point& point : all_points(gpt_behind(model).config())) {
    names.push_back(point_name(point));
  }
  return names;
}

std::vector<std::string> points_named(const Model& model, std::string_view name) {
  std::vector<std::string> names;
  for (const Point& point : points_named(name, gpt_behind(model).config())) {
    names.push_back(point_name(point));
  }
  return names;
}

}  // namespace heed
