// Stacks of parts of the residual stream, of the public facade.
#include "heed/stacks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/facade.h"
#include "microscope/explain/logit_direction.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Which positions of each sequence, (B, P): from its own end where they are negative.
std::vector<std::vector<std::int64_t>> chosen_positions(const Activations& found,
                                                        std::vector<std::int64_t> positions) {
  const std::int64_t count = found.positions();
  if (positions.empty()) {
    positions.resize(static_cast<std::size_t>(count));
    std::iota(positions.begin(), positions.end(), 0);
  }
  std::vector<std::vector<std::int64_t>> all;
  for (const std::int64_t length : found.lengths()) {
    std::vector<std::int64_t>& own = all.emplace_back(positions);
    for (std::int64_t& position : own) {
      require(position >= -length && position < count, ErrorCode::invalid_argument,
              "position {} does not exist: there are positions 0 to {}, or from the end from -1 on",
              position, (position < 0 ? length : count) - 1);
      if (position < 0) position += length;
    }
  }
  return all;
}

// By a norm's scale, which is 0 after the end of a text.
double scaled(double value, double scale) { return scale == 0 ? 0 : value / scale; }

std::string block_point(std::int64_t layer, std::string_view name) {
  return fmt::format("blocks.{}.{}", layer, name);
}

// Collects rows of points as the parts of a stack.
class StackBuilder {
 public:
  StackBuilder(const Activations& found, const StackRequest& request)
      : found_(found),
        config_(activations_model(found).specification()),
        positions_(chosen_positions(found, request.positions)) {
    layer_ = request.layer == -1 ? config_.layers : request.layer;
    require(layer_ >= 0 && layer_ <= config_.layers, ErrorCode::invalid_argument,
            "layer {} does not exist: the stream is that before layers 0 to {}, or after the last",
            request.layer, config_.layers - 1);
  }

  std::int64_t layer() const { return layer_; }
  std::int64_t layers() const { return config_.layers; }
  // Whether the stream before feed-forward is another one than before attention.
  bool has_middles() const { return has_point(config_, PointKind::residual_mid); }

  // A point (B, T, C) as one part.
  void add(std::string label, const std::string& name) {
    const SharedView view = found_.at(name);
    labels_.push_back(std::move(label));
    append(view, 0, view.strides[1]);
  }
  // A point (B, T, H, C) as a part for each head.
  void add_heads(std::int64_t layer) {
    const SharedView view = found_.at(block_point(layer, "attn.hook_result"));
    for (std::int64_t head = 0; head < view.shape[2]; ++head) {
      labels_.push_back(fmt::format("L{}H{}", layer, head));
      append(view, head * view.strides[2], view.strides[1]);
    }
  }
  // The point less all parts.
  void add_remainder(const std::string& name) {
    const std::int64_t parts = std::ssize(labels_), size = part_size();
    add("remainder", name);
    float* const rest = values_.data() + parts * size;
    for (std::int64_t i = 0; i < size; ++i) {
      double sum = rest[i];
      for (std::int64_t part = 0; part < parts; ++part) {
        sum -= values_[static_cast<std::size_t>(part * size + i)];
      }
      rest[i] = static_cast<float>(sum);
    }
  }

  ResidualStack take() {
    Tensor<float> values(Shape{std::ssize(labels_), found_.sequences(), count(), config_.channels});
    std::ranges::copy(values_, values.data());
    return {.labels = std::move(labels_), .values = make_array(std::move(values))};
  }

 private:
  std::int64_t part_size() const { return found_.sequences() * count() * config_.channels; }
  std::int64_t count() const { return std::ssize(positions_.front()); }  // P
  void append(const SharedView& view, std::int64_t first, std::int64_t row) {
    for (std::int64_t b = 0; b < found_.sequences(); ++b) {
      for (const std::int64_t t : positions_[static_cast<std::size_t>(b)]) {
        const float* const from = view.data + b * view.strides[0] + t * row + first;
        values_.insert(values_.end(), from, from + config_.channels);
      }
    }
  }

  const Activations& found_;
  const StackSpecification& config_;
  std::vector<std::vector<std::int64_t>> positions_;
  std::int64_t layer_ = 0;
  std::vector<std::string> labels_;
  std::vector<float> values_;
};

// Parts and rows of a stack (parts, B, P, C).
struct StackShape {
  std::int64_t parts;
  std::int64_t sequences;
  std::int64_t positions;
  std::int64_t channels;
};

StackShape checked_stack(const Activations& found, const Array& stack, std::int64_t positions) {
  const std::vector<std::int64_t>& shape = stack.shape();
  const std::int64_t channels = activations_model(found).specification().channels;
  require(shape.size() == 4 && shape[1] == found.sequences() && shape[2] == positions &&
              shape[3] == channels,
          ErrorCode::invalid_argument, "a stack has the shape ({}), expected (parts, {}, {}, {})",
          fmt::join(shape, ", "), found.sequences(), positions, channels);
  return {shape[0], shape[1], shape[2], shape[3]};
}

}  // namespace

ResidualStack accumulated_residual(const Activations& found, const StackRequest& request,
                                   StreamPoints points) {
  StackBuilder stack(found, request);
  const bool middles = points == StreamPoints::middles;
  for (std::int64_t layer = 0; layer <= stack.layer(); ++layer) {
    if (layer == stack.layers()) {
      stack.add("final_post", block_point(layer - 1, "hook_resid_post"));
      break;
    }
    stack.add(fmt::format("{}_pre", layer), block_point(layer, "hook_resid_pre"));
    const bool is_last = layer == stack.layer();
    if (!stack.has_middles()) continue;
    if ((middles && !is_last) || (is_last && request.before_feed_forward)) {
      stack.add(fmt::format("{}_mid", layer), block_point(layer, "hook_resid_mid"));
    }
  }
  return stack.take();
}

ResidualStack decomposed_residual(const Activations& found, const StackRequest& request,
                                  StackParts parts) {
  StackBuilder stack(found, request);
  stack.add("embed", "hook_embed");
  if (has_point(activations_model(found).specification(), PointKind::position)) {
    stack.add("pos_embed", "hook_pos_embed");
  }
  const auto add_attention = [&](std::int64_t layer) {
    if (parts == StackParts::feed_forward) return;
    stack.add(fmt::format("{}_attn_out", layer), block_point(layer, "hook_attn_out"));
  };
  for (std::int64_t layer = 0; layer < stack.layer(); ++layer) {
    add_attention(layer);
    if (parts == StackParts::attention) continue;
    stack.add(fmt::format("{}_mlp_out", layer), block_point(layer, "hook_mlp_out"));
  }
  if (request.before_feed_forward && stack.has_middles() && stack.layer() < stack.layers()) {
    add_attention(stack.layer());
  }
  return stack.take();
}

ResidualStack head_results(const Activations& found, const StackRequest& request,
                           StackRemainder remainder) {
  StackBuilder stack(found, request);
  require(stack.layer() > 0, ErrorCode::invalid_argument,
          "no head writes to the stream before layer 0");
  for (std::int64_t layer = 0; layer < stack.layer(); ++layer) stack.add_heads(layer);
  if (remainder == StackRemainder::included) {
    stack.add_remainder(block_point(stack.layer() - 1, "hook_resid_post"));
  }
  return stack.take();
}

Array normalised_stack(const Activations& found, const Array& stack, const StackRequest& request,
                       NormScale scale) {
  const StackSpecification& config = activations_model(found).specification();
  const auto positions = chosen_positions(found, request.positions);
  const StackShape shape = checked_stack(found, stack, std::ssize(positions.front()));
  const bool is_final = request.layer == -1 || request.layer == config.layers;
  if (!is_final) checked_layer(request.layer, config);
  const bool of_pass = scale == NormScale::of_pass;
  require(is_final || of_pass, ErrorCode::invalid_argument,
          "the norm before layer {} scales by the pass: only the final norm scales each part by "
          "its own statistics",
          request.layer);
  const SharedView held = found.at(is_final ? "ln_final.hook_scale"
                                            : block_point(request.layer, request.before_feed_forward
                                                                             ? "ln2.hook_scale"
                                                                             : "ln1.hook_scale"));
  const NormSpecification& norm = config.block.norm;
  const bool centres = norm.kind == NormKind::layer;
  const auto channels = static_cast<double>(shape.channels);
  Tensor<float> out(Shape{shape.parts, shape.sequences, shape.positions, shape.channels});
  const float* from = stack.data();
  float* to = out.data();
  for (std::int64_t part = 0; part < shape.parts; ++part) {
    for (std::int64_t b = 0; b < shape.sequences; ++b) {
      for (const std::int64_t t : positions[static_cast<std::size_t>(b)]) {
        const std::span row(from, static_cast<std::size_t>(shape.channels));
        const double mean = centres ? std::accumulate(row.begin(), row.end(), 0.0) / channels : 0.0;
        double divisor = held.data[b * held.strides[0] + t * held.strides[1]];
        if (!of_pass) {
          double squares = 0;
          for (const float value : row) squares += (value - mean) * (value - mean);
          divisor = std::sqrt(squares / channels + norm.epsilon);
        }
        for (const float value : row) *to++ = static_cast<float>(scaled(value - mean, divisor));
        from += shape.channels;
      }
    }
  }
  return make_array(std::move(out));
}

Array logit_contributions(const Activations& found, const Array& stack,
                          const ContributionsTo& logits) {
  const Transformer& transformer = activations_model(found);
  require_sums_to_logits(transformer.specification(), "a contribution to a logit");
  const auto positions = chosen_positions(found, logits.positions);
  const StackShape shape = checked_stack(found, stack, std::ssize(positions.front()));
  const auto fits = [&](const std::vector<std::int32_t>& tokens) {
    return tokens.size() == 1 || std::ssize(tokens) == shape.sequences;
  };
  require(fits(logits.tokens) && (logits.against.empty() || fits(logits.against)),
          ErrorCode::invalid_argument, "{} tokens and {} to compare with, expected 1 or {}",
          logits.tokens.size(), logits.against.size(), shape.sequences);
  const auto token_of = [](const std::vector<std::int32_t>& tokens, std::int64_t b) {
    return tokens[tokens.size() == 1 ? 0 : static_cast<std::size_t>(b)];
  };
  std::vector<LogitDirection> directions;
  for (std::int64_t b = 0; b < shape.sequences; ++b) {
    LogitQuestion question{.token = token_of(logits.tokens, b)};
    if (!logits.against.empty()) question.against = token_of(logits.against, b);
    question.validate(transformer.specification());
    directions.push_back(logit_direction(transformer, question));
  }
  const SharedView scale = found.at("ln_final.hook_scale");
  Tensor<float> out(Shape{shape.parts, shape.sequences, shape.positions});
  const float* row = stack.data();
  float* to = out.data();
  for (std::int64_t part = 0; part < shape.parts; ++part) {
    for (std::int64_t b = 0; b < shape.sequences; ++b) {
      for (const std::int64_t t : positions[static_cast<std::size_t>(b)]) {
        const double projected = directions[static_cast<std::size_t>(b)].project(
            std::span(row, static_cast<std::size_t>(shape.channels)));
        *to++ = static_cast<float>(
            scaled(projected, scale.data[b * scale.strides[0] + t * scale.strides[1]]));
        row += shape.channels;
      }
    }
  }
  return make_array(std::move(out));
}

}  // namespace heed
