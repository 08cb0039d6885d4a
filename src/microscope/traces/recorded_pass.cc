#include "microscope/traces/recorded_pass.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/edited_points.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::int64_t absent_branch = -1;

// The branch of a block that adds the values of a point to the stream.
std::int64_t branch_of(PointKind kind) {
  switch (kind) {
    case PointKind::attention_out: return 0;
    case PointKind::feed_forward_out: return 1;
    case PointKind::cross_attention_out: return 2;
    default: return absent_branch;
  }
}

Shape added_shape(const StackSpecification& stack, std::int64_t rows) {
  const std::int64_t branches = stack.block.cross_attention ? 3 : 2;
  return {stack.layers, branches, rows, stack.channels};
}

// The point of the stream after block `layer`, which the next block reads.
Point stream_after(const StackSpecification& stack, StackSite site, std::int64_t layer) {
  return {stack.is_post_norm() ? PointKind::normalized_residual_post : PointKind::residual_post,
          layer, site};
}

}  // namespace

// Keeps what blocks share memory for or overwrite, and what attention read.
class RecordedPass::Recorder final : public Probe {
 public:
  explicit Recorder(RecordedPass& pass) : pass_(pass), next_(pass.options_.observer) {}

  void tick() override {
    require(!stop_requested(pass_.options_.stop), ErrorCode::interrupted, "stopped during a pass");
    if (next_ != nullptr) next_->tick();
  }
  bool wants(const Point& point) const override {
    return is_kept(point) || (next_ != nullptr && next_->wants(point));
  }
  void observe(const Point& point, View<const float> values) override {
    if (next_ != nullptr && next_->wants(point)) next_->observe(point, values);
    if (!is_kept(point)) return;
    const std::size_t at = pass_.index(point.site);
    if (const std::int64_t branch = branch_of(point.kind); branch != absent_branch) {
      Tensor<float>& added = pass_.buffers_.stacks[at].added;
      copy_elements(values, added.view()[point.layer][branch].data());
    } else {
      Tensor<float> stream(Shape{values.extent(0) * values.extent(1), values.extent(2)});
      copy_elements(values, stream.data());
      pass_.stacks_[at].streams.insert_or_assign(point.layer, std::move(stream));
    }
  }

  bool wants_attention_at(const Point& pattern) const override {
    return pass_.keeps_points() || (next_ != nullptr && next_->wants_attention_at(pattern));
  }
  void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                            View<const float> log_sum_exp) override {
    if (next_ != nullptr && next_->wants_attention_at(pattern)) {
      next_->observe_attention_at(pattern, input, log_sum_exp);
    }
    if (!pass_.keeps_points()) return;
    OfStack& stack = pass_.stacks_[pass_.index(pattern.site)];
    Attended kept{input, log_sum_exp};
    if (input.position_bias.present()) {
      const View<const float> bias = input.position_bias.values;
      if (!stack.bias.present()) {
        stack.bias = Tensor<float>(bias.shape());
        copy_elements(bias, stack.bias.data());
      }
      kept.input.position_bias.values = stack.bias.view();
    }
    (is_cross_point(pattern.kind) ? stack.cross : stack.self).push_back(kept);
  }

 private:
  bool is_kept(const Point& point) const {
    if (!pass_.keeps_points()) return false;
    if (branch_of(point.kind) != absent_branch) return true;
    const StackSpecification& stack = pass_.architecture().of(point.site);
    if (point != stream_after(stack, point.site, point.layer)) return false;
    return point.layer + 1 < stack.layers
               ? pass_.edits({PointKind::residual_pre, point.layer + 1, point.site})
               : !stack.final_norm && pass_.edits({PointKind::unembedding_in, -1, point.site});
  }

  RecordedPass& pass_;
  Probe* next_;
};

void require_texts_fit(const Architecture& architecture, const Texts& texts) {
  if (architecture.is_encoder_decoder()) {
    require_text_fits(architecture.encoder(), texts.source, "the source");
    return require_text_fits(architecture.decoder(), texts.target, "the target");
  }
  require(texts.source.empty(), ErrorCode::invalid_argument,
          "a source of {} tokens: a model of one stack reads one text", texts.source.size());
  require_text_fits(architecture.decoder(), texts.target);
}

std::int64_t position_in_text(std::int64_t position, std::int64_t positions) {
  if (position == -1) position = positions - 1;
  require(position >= 0 && position < positions, ErrorCode::invalid_argument,
          "position {} is not in a text of {} tokens", position, positions);
  return position;
}

RecordedPass::RecordedPass(const Transformer& model, Texts texts, std::shared_ptr<Editor> editor,
                           RecordOptions options)
    : model_(model),
      texts_(std::move(texts)),
      given_(std::move(editor)),
      editor_(model.editor(), given_.get()),
      options_(std::move(options)),
      buffers_(std::move(options_.reused)) {
  const std::int64_t count = sequences(), tokens = std::ssize(texts_.target);
  require(count >= 1 && (tokens == 0 || tokens % count == 0), ErrorCode::invalid_argument,
          "{} tokens are not {} sequences of one length", tokens, count);
  require(count == 1 || !architecture().is_encoder_decoder(), ErrorCode::unsupported,
          "a recorded batch of {} pairs: expected one", count);
  if (count == 1) {
    require_texts_fit(architecture(), texts_);
  } else {
    const auto length = tokens / count;
    require_texts_fit(architecture(),
                      {texts_.source, {texts_.target.begin(), texts_.target.begin() + length}});
  }
  if (architecture().is_encoder_decoder()) stacks_.push_back({.site = StackSite::encoder});
  stacks_.push_back(
      {.site = architecture().is_encoder_decoder() ? StackSite::decoder : StackSite::only});
  make_buffers();
  run();
}

void RecordedPass::make_buffers() {
  const bool is_reused = buffers_.stacks.size() == stacks_.size();
  if (!is_reused) buffers_ = {};
  buffers_.stacks.resize(stacks_.size());
  for (const OfStack& stack : stacks_) {
    const StackSpecification& config = architecture().of(stack.site);
    RecordedBuffers::OfStack& buffers = buffers_.stacks[index(stack.site)];
    const std::int64_t length = positions(stack.site), rows = sequences() * length;
    const std::int64_t memory_rows = config.block.cross_attention ? sources() : 0;
    const Shape added = keeps_points() ? added_shape(config, rows) : Shape{0};
    const std::int64_t bytes =
        StackActivations::bytes_needed(config, sequences(), length, options_.keep, memory_rows);
    const bool fits =
        buffers.activations != nullptr && buffers.activations->keep() == options_.keep &&
        buffers.activations->batch() == sequences() && buffers.activations->positions() == length &&
        static_cast<std::int64_t>(buffers.activations->bytes()) == bytes &&
        buffers.added.shape() == added;
    if (fits) continue;
    buffers = {};
    buffers.activations =
        std::make_unique<StackActivations>(config, sequences(), length, options_.keep, memory_rows);
    if (keeps_points()) buffers.added = Tensor<float>(added);
  }
}

void RecordedPass::run() {
  Recorder recorder(*this);
  Probe* const probe = keeps_points() || options_.stop != nullptr ? &recorder : options_.observer;
  const StackSite last = stacks_.back().site;
  const Pass target = pass(probe, last);
  if (last == StackSite::only) return model_.forward(token_view(last), target, activations(last));
  const Pass source = pass(probe, StackSite::encoder);
  model_.forward({token_view(StackSite::encoder), source, activations(StackSite::encoder)},
                 {token_view(last), target, activations(last)});
}

std::int64_t RecordedPass::bytes_needed(const Architecture& architecture, std::int64_t positions,
                                        std::int64_t sources) {
  const auto of_stack = [](const StackSpecification& stack, std::int64_t rows,
                           std::int64_t memory_rows) {
    return StackActivations::bytes_needed(stack, 1, rows, Keep::every_block, memory_rows) +
           added_shape(stack, rows).size() * static_cast<std::int64_t>(sizeof(float));
  };
  if (!architecture.is_encoder_decoder()) return of_stack(architecture.decoder(), positions, 0);
  return of_stack(architecture.encoder(), sources, 0) +
         of_stack(architecture.decoder(), positions, sources);
}

std::int64_t RecordedPass::bytes() const {
  std::size_t bytes = 0;
  for (const RecordedBuffers::OfStack& stack : buffers_.stacks) {
    bytes += stack.activations->bytes() + stack.added.span().size_bytes();
  }
  for (const OfStack& stack : stacks_) {
    for (const auto& [layer, stream] : stack.streams) bytes += stream.span().size_bytes();
  }
  return static_cast<std::int64_t>(bytes);
}

View<const std::int32_t> RecordedPass::token_view(StackSite site) const {
  const std::vector<std::int32_t>& tokens =
      site == StackSite::encoder ? texts_.source : texts_.target;
  return {tokens.data(), {sequences(), positions(site)}};
}

Pass RecordedPass::pass(Probe* probe, StackSite site) const {
  return {.sequences = {sequences(), positions(site)},
          .token_types = options_.token_types,
          .site = site,
          .probe = probe,
          .editor = editor_.get()};
}

Tensor<float> RecordedPass::logits(std::int64_t begin, std::int64_t end) const {
  Tensor<float> logits(Shape{end - begin, architecture().decoder().vocabulary_size});
  model_.project(final_rows().slice(0, begin, end), logits, positions());
  return logits;
}

Tensor<float> RecordedPass::logits() const {
  const std::int64_t vocabulary = architecture().decoder().vocabulary_size;
  Tensor<float> logits(Shape{sequences(), positions(), vocabulary});
  model_.project(final_rows(), logits.view().reshape({sequences() * positions(), vocabulary}),
                 positions());
  return logits;
}

std::vector<double> RecordedPass::next_probabilities(std::int64_t position) const {
  require(position >= 0 && position < positions(), ErrorCode::invalid_argument,
          "position {} is not in a target of {} tokens", position, positions());
  return probabilities_of(logits(position, position + 1).span());
}

const RecordedPass::Attended& RecordedPass::attended(AttentionSite site, std::int64_t layer) const {
  const OfStack& stack = stacks_[index(site.stack)];
  const std::vector<Attended>& kept = site.kind == AttentionKind::cross ? stack.cross : stack.self;
  check(layer >= 0 && layer < std::ssize(kept), "attention of a layer that was recorded");
  return kept[static_cast<std::size_t>(layer)];
}

void RecordedPass::attention_tile(const Point& point, const kernels::AttentionTile& tile,
                                  View<float> out) const {
  check(is_plane(point.kind), "a point of queries by keys");
  const Attended& attention = attended(site_of_pattern(pattern_of(point)), point.layer);
  if (is_scores_point(point.kind)) {
    kernels::attention_scores_tile(attention.input, tile, out);
  } else {
    kernels::attention_pattern_tile(attention.input, attention.log_sum_exp, tile, out);
  }
}

Tensor<float> RecordedPass::plane(const Point& point, std::int64_t head) const {
  const AttentionSite site = site_of_pattern(pattern_of(point));
  const Attended& attention = attended(site, point.layer);
  const AttentionPoints& points =
      site.kind == AttentionKind::cross ? cross_attention_points : self_attention_points;
  const Pass used = pass(nullptr, site.stack);
  Tensor<float> plane(Shape{queries(site), keys(site)});
  if (is_scores_point(point.kind)) {
    scores_plane(used, point.layer, points, attention.input, 0, head, plane);
  } else {
    pattern_plane(used, point.layer, points, attention.input, attention.log_sum_exp, 0, head,
                  plane);
  }
  return plane;
}

bool RecordedPass::edits_pattern(AttentionSite site, std::int64_t layer, std::int64_t head) const {
  const Point pattern = pattern_point(site, layer);
  return edits_head(pattern, head) || edits_head(scores_of(pattern), head);
}

void observe_pass(const Transformer& model, const Texts& texts, Probe& probe) {
  RecordedPass(model, texts, {}, {.keep = Keep::one_block, .observer = &probe});
}

void observe_pass(const Transformer& model, std::span<const std::int32_t> tokens, Probe& probe) {
  observe_pass(model, Texts{.source = {}, .target = {tokens.begin(), tokens.end()}}, probe);
}

std::vector<double> probabilities_of(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> probabilities;
  probabilities.reserve(logits.size());
  double sum = 0;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(logit - largest));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace heed
