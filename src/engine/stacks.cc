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
#include "microscope/traces/point_names.h"
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
        transformer_(activations_model(found)),
        config_(transformer_.specification()),
        positions_(chosen_positions(found, request.positions)) {
    layer_ = request.layer == -1 ? config_.layers : request.layer;
    require(layer_ >= 0 && layer_ <= config_.layers, ErrorCode::invalid_argument,
            "layer {} does not exist: the stream is that before layers 0 to {}, or after the last",
            request.layer, config_.layers - 1);
    ends_in_middle_ = request.before_feed_forward && has_middles() && layer_ < config_.layers;
  }

  std::int64_t layer() const { return layer_; }
  std::int64_t layers() const { return config_.layers; }
  // Whether the stream before feed-forward is another one than before attention.
  bool has_middles() const { return has_point(config_, PointKind::residual_mid); }
  // Whether the stream is that before the feed-forward of its layer.
  bool ends_in_middle() const { return ends_in_middle_; }

  // A point (B, T, C) as one part.
  void add(std::string label, const std::string& name) {
    const SharedView view = checked_point(found_, name);
    labels_.push_back(std::move(label));
    append(view, 0);
  }
  void add_embeddings() {
    const bool needs_all = ActivationsAccess::parts(found_).given != GivenActivations::Kind::others;
    const auto add_embedding = [&](std::string label, PointKind kind) {
      const std::string name = point_name({kind, -1});
      if (has_point(config_, kind) && (needs_all || found_.has(name))) add(std::move(label), name);
    };
    add_embedding("embed", PointKind::embedding);
    add_embedding("pos_embed", PointKind::position);
  }
  // A point (B, T, H, C) as a part for each head.
  void add_heads(std::int64_t layer) {
    const SharedView view = checked_point(found_, block_point(layer, "attn.hook_result"));
    for (std::int64_t head = 0; head < view.shape[2]; ++head) {
      labels_.push_back(fmt::format("L{}H{}", layer, head));
      append(view, head * view.strides[2]);
    }
  }
  // Neurons (B, T, F) times what each writes, all of them where none are named.
  void add_neurons(std::int64_t layer, std::vector<std::int64_t> neurons) {
    const SharedView view = checked_point(found_, block_point(layer, "mlp.hook_post"));
    const View<const float> down = transformer_.parameters().restored(
        transformer_.parameters().block(layer).down.weight);  // (C, F)
    if (neurons.empty()) {
      neurons.resize(static_cast<std::size_t>(down.extent(1)));
      std::iota(neurons.begin(), neurons.end(), 0);
    }
    for (const std::int64_t neuron : neurons) {
      require(neuron >= 0 && neuron < down.extent(1), ErrorCode::invalid_argument,
              "neuron {} does not exist: a layer has neurons 0 to {}", neuron, down.extent(1) - 1);
      labels_.push_back(fmt::format("L{}N{}", layer, neuron));
      std::vector<float> written(static_cast<std::size_t>(config_.channels));
      for (std::int64_t c = 0; c < config_.channels; ++c) {
        written[static_cast<std::size_t>(c)] = down(c, neuron);
      }
      for_each_row([&](std::int64_t b, std::int64_t t) {
        const float value = view.data[b * view.strides[0] + t * view.strides[1] + neuron];
        for (const float each : written) values_.push_back(value * each);
      });
    }
  }
  // What the biases of the layers before add; of feed-forward, where its neurons stand apart.
  void add_biases(FeedForwardUnit unit) {
    std::vector<double> sum(static_cast<std::size_t>(config_.channels));
    const auto add_bias = [&](View<const float> bias) {
      if (!bias.present()) return;
      for (std::int64_t c = 0; c < config_.channels; ++c) {
        sum[static_cast<std::size_t>(c)] += bias(c);
      }
    };
    for (std::int64_t layer = 0; layer < layer_ + (ends_in_middle_ ? 1 : 0); ++layer) {
      const BlockParameters& block = transformer_.parameters().block(layer);
      add_bias(block.projection.bias);
      if (unit == FeedForwardUnit::neuron && layer < layer_) add_bias(block.down.bias);
    }
    labels_.emplace_back("bias");
    const std::vector<std::int64_t> lengths = found_.lengths();
    for_each_row([&](std::int64_t b, std::int64_t t) {
      const bool is_of_text = t < lengths[static_cast<std::size_t>(b)];
      for (const double value : sum) {
        values_.push_back(is_of_text ? static_cast<float>(value) : 0.0F);
      }
    });
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
    Array values({std::ssize(labels_), found_.sequences(), count(), config_.channels},
                 std::move(values_));
    return {.labels = std::move(labels_), .values = std::move(values)};
  }

 private:
  std::int64_t part_size() const { return found_.sequences() * count() * config_.channels; }
  std::int64_t count() const { return std::ssize(positions_.front()); }  // P
  template <class Visit>
  void for_each_row(const Visit& visit) const {
    for (std::int64_t b = 0; b < found_.sequences(); ++b) {
      for (const std::int64_t t : positions_[static_cast<std::size_t>(b)]) visit(b, t);
    }
  }
  void append(const SharedView& view, std::int64_t first) {
    for_each_row([&](std::int64_t b, std::int64_t t) {
      const float* const from = view.data + b * view.strides[0] + t * view.strides[1] + first;
      values_.insert(values_.end(), from, from + config_.channels);
    });
  }

  const Activations& found_;
  const Transformer& transformer_;
  const StackSpecification& config_;
  std::vector<std::vector<std::int64_t>> positions_;
  std::int64_t layer_ = 0;
  bool ends_in_middle_ = false;
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
  stack.add_embeddings();
  const auto add_attention = [&](std::int64_t layer) {
    if (parts == StackParts::feed_forward) return;
    stack.add(fmt::format("{}_attn_out", layer), block_point(layer, "hook_attn_out"));
  };
  for (std::int64_t layer = 0; layer < stack.layer(); ++layer) {
    add_attention(layer);
    if (parts == StackParts::attention) continue;
    stack.add(fmt::format("{}_mlp_out", layer), block_point(layer, "hook_mlp_out"));
  }
  if (stack.ends_in_middle()) add_attention(stack.layer());
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

ResidualStack neuron_results(const Activations& found, const StackRequest& request,
                             const NeuronsOf& chosen, StackRemainder remainder) {
  StackBuilder stack(found, request);
  for (std::int64_t layer = chosen.first_layer; layer < stack.layer(); ++layer) {
    stack.add_neurons(layer, chosen.neurons);
  }
  if (remainder == StackRemainder::included) {
    stack.add_remainder(stack.layer() == 0 ? block_point(0, "hook_resid_pre")
                                           : block_point(stack.layer() - 1, "hook_resid_post"));
  }
  return stack.take();
}

ResidualStack full_decomposition(const Activations& found, const StackRequest& request,
                                 FeedForwardUnit unit) {
  StackBuilder stack(found, request);
  for (std::int64_t layer = 0; layer < stack.layer(); ++layer) stack.add_heads(layer);
  if (stack.ends_in_middle()) stack.add_heads(stack.layer());
  for (std::int64_t layer = 0; layer < stack.layer(); ++layer) {
    if (unit == FeedForwardUnit::neuron) {
      stack.add_neurons(layer, {});
    } else {
      stack.add(fmt::format("{}_mlp_out", layer), block_point(layer, "hook_mlp_out"));
    }
  }
  stack.add_embeddings();
  stack.add_biases(unit);
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
  SharedView held;
  if (of_pass) {
    const std::string_view own = request.before_feed_forward ? "ln2.hook_scale" : "ln1.hook_scale";
    held = checked_point(found, is_final ? "ln_final.hook_scale" : block_point(request.layer, own));
  }
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
        double divisor = 0;
        if (of_pass) {
          divisor = held.data[b * held.strides[0] + t * held.strides[1]];
        } else {
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
  const SharedView scale = checked_point(found, "ln_final.hook_scale");
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
