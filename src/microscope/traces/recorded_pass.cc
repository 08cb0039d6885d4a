#include "microscope/traces/recorded_pass.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/edited_points.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::int64_t absent_branch = -1;

// Of one pass over many texts: enough for products at full speed, in little memory.
constexpr std::int64_t rows_of_a_pass = 1024;

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
  void begin_pass(StackSite site, const Sequences& sequences) override {
    if (next_ != nullptr) next_->begin_pass(site, sequences);
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
                            View<const float> log_sum_exp, std::int64_t text) override {
    if (next_ != nullptr && next_->wants_attention_at(pattern)) {
      next_->observe_attention_at(pattern, input, log_sum_exp, text);
    }
    if (!pass_.keeps_points()) return;
    OfStack& stack = pass_.stacks_[pass_.index(pattern.site)];
    Attended kept{input, log_sum_exp};
    if (input.position_bias.present()) {
      const View<const float> bias = input.position_bias.values;
      if (!stack.bias.present()) {
        stack.bias = Tensor<float>(bias.shape());
        kernels::copy(bias, stack.bias);
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

namespace {

// One text below the other. Pairs have rows of their own lengths, also where these agree: keys of
// sources are projected as rows of any texts.
Sequences rows_of(std::span<const Texts> batch, std::vector<std::int32_t> Texts::*text,
                  const Architecture& architecture) {
  const std::int64_t count = std::ssize(batch), length = std::ssize(batch.front().*text);
  const bool alike = std::ranges::all_of(
      batch, [&](const Texts& texts) { return std::ssize(texts.*text) == length; });
  if (count == 1 || (alike && !architecture.is_encoder_decoder())) return {count, length};
  std::vector<std::int64_t> row_starts{0};
  for (const Texts& texts : batch)
    row_starts.push_back(row_starts.back() + std::ssize(texts.*text));
  return Sequences::of_lengths(row_starts);
}

}  // namespace

std::int64_t position_in_text(std::int64_t position, std::int64_t positions) {
  if (position == -1) position = positions - 1;
  require(position >= 0 && position < positions, ErrorCode::invalid_argument,
          "position {} is not in a text of {} tokens", position, positions);
  return position;
}

RecordedPass::RecordedPass(const Transformer& model, Texts texts, std::shared_ptr<Editor> editor,
                           RecordOptions options)
    : RecordedPass(model, std::span<const Texts>(&texts, 1), std::move(editor),
                   std::move(options)) {}

RecordedPass::RecordedPass(const Transformer& model, std::span<const Texts> batch,
                           std::shared_ptr<Editor> editor, RecordOptions options)
    : model_(model),
      given_(std::move(editor)),
      editor_(model.editor(), given_.get()),
      options_(std::move(options)),
      buffers_(std::move(options_.reused)) {
  require(!batch.empty(), ErrorCode::invalid_argument, "a batch has at least one text");
  for (const Texts& texts : batch) {
    require_texts_fit(architecture(), texts);
    texts_.source.insert(texts_.source.end(), texts.source.begin(), texts.source.end());
    texts_.target.insert(texts_.target.end(), texts.target.begin(), texts.target.end());
  }
  target_rows_ = rows_of(batch, &Texts::target, architecture());
  if (architecture().is_encoder_decoder()) {
    source_rows_ = rows_of(batch, &Texts::source, architecture());
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
    const Sequences& read = sequences(stack.site);
    const std::int64_t batch = read.view_batch(), length = read.view_positions();
    const std::int64_t rows = read.rows();
    const std::int64_t memory_rows = config.block.cross_attention ? source_rows_.rows() : 0;
    const Shape added = keeps_points() ? added_shape(config, rows) : Shape{0};
    const std::int64_t bytes =
        StackActivations::bytes_needed(config, batch, length, options_.keep, memory_rows);
    const bool fits =
        buffers.activations != nullptr && buffers.activations->keep() == options_.keep &&
        buffers.activations->batch() == batch && buffers.activations->positions() == length &&
        static_cast<std::int64_t>(buffers.activations->bytes()) == bytes &&
        buffers.added.shape() == added;
    buffers.here.reset();
    if (fits && buffers.activations->device() == model_.device()) continue;
    buffers = {};
    buffers.activations = std::make_unique<StackActivations>(config, batch, length, options_.keep,
                                                             memory_rows, model_.device());
    if (keeps_points()) buffers.added = Tensor<float>(added);
  }
}

void RecordedPass::run() {
  Recorder recorder(*this);
  Probe* const probe = keeps_points() || options_.stop != nullptr ? &recorder : options_.observer;
  const StackSite last = stacks_.back().site;
  const Pass target = pass(probe, last);
  const StackActivations& activations = *of(last).activations;
  if (last == StackSite::only) return model_.forward(token_view(last), target, activations);
  const Pass source = pass(probe, StackSite::encoder);
  model_.forward({token_view(StackSite::encoder), source, *of(StackSite::encoder).activations},
                 {token_view(last), target, activations});
}

// With what attention read.
const StackActivations& RecordedPass::brought_here(StackSite site) const {
  const std::lock_guard lock(bringing_);
  RecordedBuffers::OfStack& buffers = buffers_.stacks[index(site)];
  if (buffers.here != nullptr) return *buffers.here;
  buffers.here = std::make_unique<StackActivations>(buffers.activations->on(Device{}));
  const auto bring = [&](auto& view) { view = buffers.here->same_of(*buffers.activations, view); };
  OfStack& stack = stacks_[index(site)];
  stack.self_here = stack.self;
  stack.cross_here = stack.cross;
  for (std::vector<Attended>* attended : {&stack.self_here, &stack.cross_here}) {
    for (Attended& each : *attended) {
      bring(each.input.query);
      bring(each.input.key);
      bring(each.input.value);
      bring(each.log_sum_exp);
    }
  }
  return *buffers.here;
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
  const std::lock_guard lock(bringing_);
  std::size_t bytes = 0;
  for (const RecordedBuffers::OfStack& stack : buffers_.stacks) {
    bytes += stack.activations->bytes() + stack.added.span().size_bytes();
    if (stack.here != nullptr) bytes += stack.here->bytes();
  }
  for (const OfStack& stack : stacks_) {
    for (const auto& [layer, stream] : stack.streams) bytes += stream.span().size_bytes();
  }
  return static_cast<std::int64_t>(bytes);
}

View<const std::int32_t> RecordedPass::token_view(StackSite site) const {
  const std::vector<std::int32_t>& tokens =
      site == StackSite::encoder ? texts_.source : texts_.target;
  const Sequences& rows = sequences(site);
  if (rows.is_ragged()) return {tokens.data(), {rows.rows()}};
  return {tokens.data(), {rows.count(), rows.length()}};
}

Pass RecordedPass::pass(Probe* probe, StackSite site) const {
  return {.sequences = sequences(site),
          .token_types = options_.token_types,
          .site = site,
          .probe = probe,
          .editor = editor_.get(),
          .frozen = options_.frozen,
          .layers = options_.layers,
          .stream = options_.stream};
}

Tensor<float> RecordedPass::logits(std::int64_t begin, std::int64_t end) const {
  Tensor<float> logits(Shape{end - begin, architecture().decoder().vocabulary_size});
  const StackSite last = stacks_.back().site;
  model_.project(activations(last, Place::of_pass).unembedding_in().slice(0, begin, end), logits,
                 arithmetic_length());
  return logits;
}

std::int64_t RecordedPass::arithmetic_length() const {
  return pass(nullptr, stacks_.back().site).arithmetic_length();
}

Tensor<float> RecordedPass::logits(Device device) const {
  const std::int64_t vocabulary = architecture().decoder().vocabulary_size;
  const View<const float> read = activations(stacks_.back().site, Place::of_pass).unembedding_in();
  Tensor<float> logits(Shape{sequences().count(), positions(), vocabulary}, device);
  if (!sequences().is_ragged()) {
    model_.project(read, logits.view().reshape({sequences().rows(), vocabulary}),
                   arithmetic_length());
    return logits;
  }
  std::int64_t text = 0;
  for (const Sequence each : sequences()) {
    model_.project(read.slice(0, each.row_begin, each.row_end),
                   logits.view()[text++].slice(0, 0, each.length()), arithmetic_length());
  }
  return logits;
}

std::vector<double> RecordedPass::next_probabilities(std::int64_t position) const {
  require(position >= 0 && position < positions(), ErrorCode::invalid_argument,
          "position {} is not in a target of {} tokens", position, positions());
  return probabilities_of(logits(position, position + 1).span());
}

std::span<const Attended> RecordedPass::attended(AttentionSite site, std::int64_t layer,
                                                 Place place) const {
  const bool is_copy =
      &activations(site.stack, place) != of(site.stack).activations.get();  // brings both
  const OfStack& stack = stacks_[index(site.stack)];
  const std::span<const Attended> kept = site.kind == AttentionKind::cross
                                             ? (is_copy ? stack.cross_here : stack.cross)
                                             : (is_copy ? stack.self_here : stack.self);
  const std::int64_t texts = sequences().is_ragged() ? sequences().count() : 1;
  check(layer >= 0 && (layer + 1) * texts <= std::ssize(kept),
        "attention of a layer that was recorded");
  return kept.subspan(static_cast<std::size_t>(layer * texts), static_cast<std::size_t>(texts));
}

const Attended& RecordedPass::attended(AttentionSite site, std::int64_t layer, std::int64_t text,
                                       Place place) const {
  check(text >= 0 && text < sequences().count(), "a text of the batch");
  const std::span<const Attended> all = attended(site, layer, place);
  return all.size() == 1 ? all.front() : all[static_cast<std::size_t>(text)];
}

void RecordedPass::attention_tile(const Point& point, const kernels::AttentionTile& tile,
                                  View<float> out) const {
  check(is_plane(point.kind), "a point of queries by keys");
  const Place place = out.device().is_cpu() ? Place::processor : Place::of_pass;
  const Attended& attention =
      attended(site_of_pattern(pattern_of(point)), point.layer, tile.batch, place);
  kernels::AttentionTile own = tile;
  if (sequences().is_ragged()) own.batch = 0;
  if (is_scores_point(point.kind)) {
    kernels::attention_scores_tile(attention.input, own, out);
  } else {
    kernels::attention_pattern_tile(attention.input, attention.log_sum_exp, own, out);
  }
}

Tensor<float> RecordedPass::plane(const Point& point, std::int64_t head, std::int64_t text) const {
  const AttentionSite site = site_of_pattern(pattern_of(point));
  const Attended& attention = attended(site, point.layer, text);
  const AttentionPoints& points =
      site.kind == AttentionKind::cross ? cross_attention_points : self_attention_points;
  Pass used = pass(nullptr, site.stack);
  // Texts of one length are sequences of one input, others the first of their own.
  const bool is_apart = sequences().is_ragged();
  const std::int64_t sequence = is_apart ? 0 : text;
  if (is_apart) used.first_sequence = text;
  Tensor<float> plane(Shape{attention.input.query.extent(1), attention.input.key.extent(1)});
  if (is_scores_point(point.kind)) {
    scores_plane(used, point.layer, points, attention.input, sequence, head, plane);
  } else {
    pattern_plane(used, point.layer, points, attention.input, attention.log_sum_exp, sequence, head,
                  plane);
  }
  return plane;
}

bool RecordedPass::edits_pattern(AttentionSite site, std::int64_t layer, std::int64_t head) const {
  const Point pattern = pattern_point(site, layer);
  return edits_head(pattern, head) || edits_head(scores_of(pattern), head);
}

namespace {

// The blocks up to the last one of which a probe wants anything; all where it wants what follows
// them, and of a model of two stacks.
LayerRange wanted_layers(const Architecture& architecture, const Probe& probe) {
  if (architecture.is_encoder_decoder()) return {};
  const std::vector<Point> points = all_points(architecture);
  const auto last = std::find_if(points.rbegin(), points.rend(), [&](const Point& point) {
    return probe.wants(point) ||
           (point.kind == PointKind::pattern && probe.wants_attention_at(point));
  });
  const bool follows_blocks =
      std::none_of(points.rbegin(), last, [](const Point& point) { return point.layer >= 0; });
  if (last == points.rend() || (last->layer < 0 && follows_blocks)) return {};
  return {.end = last->layer + 1};
}

}  // namespace

void observe_pass(const Transformer& model, const Texts& texts, Probe& probe) {
  RecordedPass(model, texts, {},
               {.keep = Keep::one_block,
                .observer = &probe,
                .layers = wanted_layers(model.architecture(), probe)});
}

void observe_pass(const Transformer& model, std::span<const std::int32_t> tokens, Probe& probe) {
  observe_pass(model, Texts{.source = {}, .target = {tokens.begin(), tokens.end()}}, probe);
}

void observe_passes(const Transformer& model, std::span<const Texts> texts, Probe& probe) {
  while (!texts.empty()) {
    std::size_t count = 0;
    for (std::int64_t rows = 0; count < texts.size(); ++count) {
      rows += std::ssize(texts[count].source) + std::ssize(texts[count].target);
      if (count > 0 && rows > rows_of_a_pass) break;
    }
    RecordedPass(model, texts.first(count), {},
                 {.keep = Keep::one_block,
                  .observer = &probe,
                  .layers = wanted_layers(model.architecture(), probe)});
    texts = texts.subspan(count);
  }
}

Tensor<float> padded(const Sequences& sequences, View<const float> rows) {
  std::vector<std::int64_t> extents(rows.shape().begin(), rows.shape().end());
  extents[0] = sequences.count();
  extents[1] = sequences.positions_end();
  Tensor<float> all(Shape(extents.data(), rows.rank()), rows.device());
  std::int64_t text = 0;
  for (const Sequence each : sequences) {
    kernels::copy(rows[0].slice(0, each.row_begin, each.row_end),
                  all.view()[text++].slice(0, 0, each.length()));
  }
  return all;
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
