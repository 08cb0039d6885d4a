// Derivations of the branches of a block: of attention (queries, keys, scores, patterns, and what
// heads add) and of feed-forward.
#include "engine/views/deriver.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "microscope/traces/point_names.h"
#include "model/rotary.h"

namespace heed {

// `first` is the first row of the projection among those of query, key and value.
void Deriver::projection(std::int64_t first, std::int64_t head, const char* letter,
                         const char* matrix) {
  require_index(config_.head_size(), "number");
  const std::int64_t row = first + head * config_.head_size() + element_.index;
  derivation_.formula = fmt::format("{}_j = Σ_c x_c W_{}[c,j] + b_j", letter, matrix);
  derivation_.latex = fmt::format(R"({}_j = \sum_c x_c\, W_{}[c,j] + b_j)", letter, matrix);
  linear(block().norm_1[element_.position], weights().query_key_value, row);
  number(block().attention.query_key_value(element_.position, row),
         {element_.position, element_.head, element_.index});
}

// A query or key as attention reads it: normalised, then rotated with its partner j' by the angle
// of its position: q_j cos − q_j' sin, or q_j cos + q_j' sin.
void Deriver::positioned(const Point& point, std::int64_t first, std::int64_t head,
                         const char* letter) {
  require_index(config_.head_size(), "number");
  require(has_point(config_, point.kind), ErrorCode::invalid_argument,
          "{} does not exist in this model", point_name(point));
  const std::int64_t size = config_.head_size(), j = element_.index, t = element_.position;
  const std::int64_t begin = first + head * size;
  const View<const float> projected = block().attention.query_key_value;
  const auto value = [&](std::int64_t index) {
    double number = projected(t, begin + index);
    if (!attention().query_key_norm) return number;
    const bool is_query = point.kind == PointKind::rotated_query;
    const NormWeights& norm = is_query ? weights().query_norm : weights().key_norm;
    const View<const float> deviation =
        is_query ? block().attention.query_deviation : block().attention.key_deviation;
    return number * deviation(t, head) * norm.gain(index);
  };
  describe("r_j = x_j cos(m θ) ± x_j' sin(m θ)",
           R"(r_j = x_j \cos m\theta \pm x_{j'} \sin m\theta)", "rotation");
  const Rotation rotation = rotation_of(attention(), t, j, pass_.positions());
  add(fmt::format("{} number {}", letter, j), value(j), rotation.cosine);
  if (rotation.partner >= 0) {
    add(fmt::format("{} number {}", letter, rotation.partner), value(rotation.partner),
        rotation.sine);
  }
  number(block().attention.positioned(t, begin + j), {t, element_.head, j});
}

std::vector<float> Deriver::row(AttentionValues values) const {
  const Tensor<float> weights =
      from_.attention.region(only_site, {.layer = layer_,
                                         .head = element_.head,
                                         .query_begin = element_.position,
                                         .query_end = element_.position + 1,
                                         .key_end = pass_.positions(),
                                         .values = values});
  return {weights.span().begin(), weights.span().end()};
}

void Deriver::scores() {
  describe("s = Σ_j q_j k_j / √D", R"(s = \frac{1}{\sqrt D} \sum_j q_j k_j)", "sum");
  const double scale = attention().scale > 0
                           ? static_cast<double>(attention().scale)
                           : 1 / std::sqrt(static_cast<double>(config_.head_size()));
  if (is_visible()) {
    const Heads<const float> read = heads();
    for (std::int64_t j = 0; j < config_.head_size(); ++j) {
      add(fmt::format("number {}", j), read.query(0, element_.position, element_.head, j),
          read.key(0, element_.key, group(), j));
      derivation_.terms.back().value *= scale;
    }
  }
  number(row(AttentionValues::scores)[static_cast<std::size_t>(element_.key)],
         {element_.head, element_.position, element_.key});
}

void Deriver::pattern() {
  describe("p = e^s / Σ_k e^{s_k}, over the unmasked keys", R"(p = \frac{e^{s}}{\sum_k e^{s_k}})",
           "softmax");
  const std::vector<float> scores = row(AttentionValues::scores);
  double largest = -std::numeric_limits<double>::infinity();
  for (const float score : scores) largest = std::max<double>(largest, score);
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - largest);
  if (is_visible()) {
    add(token_label(element_.key),
        std::exp(scores[static_cast<std::size_t>(element_.key)] - largest), 1.0 / sum);
  }
  number(row(AttentionValues::pattern)[static_cast<std::size_t>(element_.key)],
         {element_.head, element_.position, element_.key});
}

// Whether the chosen query attends to the chosen key.
bool Deriver::is_visible() const {
  const std::int64_t window = attention().window(layer_);
  return element_.key <= element_.position &&
         (window == 0 || element_.key > element_.position - window);
}

void Deriver::mixed_values() {
  require_index(config_.head_size(), "number");
  describe("z_j = Σ_s p_s v_{s,j}", R"(z_j = \sum_s p_s\, v_{s,j})", "sum");
  const std::vector<float> shares = row(AttentionValues::pattern);
  const View<const float> value = heads().value;
  for (std::int64_t s = 0; s <= element_.position; ++s) {
    add(token_label(s), shares[static_cast<std::size_t>(s)], value(0, s, group(), element_.index));
  }
  number(block().attention.mixed_values(element_.position,
                                        element_.head * config_.head_size() + element_.index),
         {element_.position, element_.head, element_.index});
}

// Σ_j z_j W_O[j,c] of one head; its terms are added.
double Deriver::add_head_result(std::int64_t head, std::int64_t c) {
  double sum = 0;
  const std::vector<float> row = kernels::multiplied_row(weights().projection, c);
  for (std::int64_t j = 0; j < config_.head_size(); ++j) {
    const std::int64_t column = head * config_.head_size() + j;
    add(fmt::format("number {}", j), block().attention.mixed_values(element_.position, column),
        row[static_cast<std::size_t>(column)]);
    sum += derivation_.terms.back().value;
  }
  return sum;
}

// What one head adds to the stream.
void Deriver::head_result() {
  const std::int64_t c = channel();
  describe("r_c = Σ_j z_j W_O[j,c]", R"(r_c = \sum_j z_j\, W_O[j,c])", "sum");
  add_head_result(element_.head, c);
  number(observed({PointKind::head_results, layer_}).view()(0, element_.position, element_.head, c),
         {element_.position, element_.head, c});
}

void Deriver::attention_out() {
  const std::int64_t c = channel();
  describe("a_c = Σ_h r_{h,c} + b_c, and r_{h,c} = Σ_j z_{h,j} W_O[h,j,c]",
           R"(a_c = \sum_h r_{h,c} + b_c,\quad r_{h,c} = \sum_j z_{h,j}\, W_O[h,j,c])", "sum");
  for (std::int64_t head = 0; head < config_.heads(); ++head) {
    const double result = add_head_result(head, c);
    derivation_.terms.resize(static_cast<std::size_t>(head));
    add(fmt::format("head {}", head), result, 1);
  }
  const LinearWeights& projection = weights().projection;
  if (projection.bias.present()) derivation_.bias = projection.bias(c);
  number(pass_.rows({PointKind::attention_out, layer_})(element_.position, c),
         {element_.position, c});
}

// Derivations of a feed-forward layer.

void Deriver::neuron(const LinearWeights& matrix, View<const float> values, const char* letter,
                     const char* name) {
  require_index(config_.feed_forward(), "neuron");
  require(values.present(), ErrorCode::invalid_argument, "this model's neurons have no gate");
  derivation_.formula = fmt::format("{}_i = Σ_c x_c {}[c,i] + b_i", letter, name);
  derivation_.latex = fmt::format(R"({}_i = \sum_c x_c\, W_{{{}}}[c,i] + b_i)", letter, name + 2);
  derivation_.operation = "sum";
  linear(block().norm_2[element_.position], matrix, element_.index);
  number(values(element_.position, element_.index), {element_.position, element_.index});
}

void Deriver::neurons_post() {
  require_index(config_.feed_forward(), "neuron");
  const bool gated = config_.block.feed_forward.gated;
  const kernels::ActivationDescription& activation =
      kernels::description_of(config_.block.feed_forward.activation);
  derivation_.formula = fmt::format("m_i = {}{}", activation.formula, gated ? " · u_i" : "");
  derivation_.latex = fmt::format(R"(m_i = {}{})", activation.latex, gated ? R"(\,u_i)" : "");
  derivation_.operation = "activation";
  const double pre = block().feed_forward.pre(element_.position, element_.index);
  const double post = block().feed_forward.post(element_.position, element_.index);
  const bool edited = pass_.edits({PointKind::neurons_post, layer_});
  if (gated) {
    add("n · σ(n) · u", pre * gate(pre),
        block().feed_forward.linear(element_.position, element_.index));
  } else {
    add("pre · gate", pre, pre != 0 && !edited ? post / pre : gate(pre));
  }
  number(post, {element_.position, element_.index});
}

// The factor activation(x) / x of a neuron; at 0 the limit of it, which is the derivative.
double Deriver::gate(double x) const {
  const Activation activation = config_.block.feed_forward.activation;
  const float pre = static_cast<float>(x), one = 1;
  float result = 0;
  const View<const float> given(&pre, {1});
  const View<float> out(&result, {1});
  if (pre == 0) {
    kernels::activation_backward(given, activation, {&one, {1}}, out);
    return result;
  }
  kernels::activation_forward(given, activation, out);
  return static_cast<double>(result) / static_cast<double>(pre);
}

void Deriver::feed_forward_out() {
  const std::int64_t c = channel();
  describe("f_c = Σ_i m_i W_out[i,c] + b_c", R"(f_c = \sum_i m_i\, W_{out}[i,c] + b_c)", "sum");
  linear(block().feed_forward.post[element_.position], weights().down, c, "neuron");
  number(pass_.rows({PointKind::feed_forward_out, layer_})(element_.position, c),
         {element_.position, c});
}

}  // namespace heed
