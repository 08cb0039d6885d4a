// What all derivations use (the chosen element, its name, and sums of terms), and derivations of
// the stream.
#include "engine/views/deriver.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/views/token_json.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/block.h"
#include "model/derived_points.h"
#include "model/rotary.h"

namespace heed {

// The key/value head that the chosen head reads; points of keys and values name one themselves.
std::int64_t Deriver::key_head() const {
  require(element_.head < attention().key_value_heads, ErrorCode::invalid_argument,
          "key/value head {} does not exist: a layer has heads 0 to {}", element_.head,
          attention().key_value_heads - 1);
  return element_.head;
}

void Deriver::require_index(std::int64_t count, const char* what) const {
  require(element_.index >= 0 && element_.index < count, ErrorCode::invalid_argument,
          "{} {} does not exist: there are 0 to {}", what, element_.index, count - 1);
}

std::int64_t Deriver::channel() const {
  require_index(config_.channels, "channel");
  return element_.index;
}

void Deriver::describe(const char* formula, const char* latex, const char* operation) {
  derivation_.formula = formula;
  derivation_.latex = latex;
  derivation_.operation = operation;
}

void Deriver::add(std::string label, double left, double right) {
  derivation_.terms.push_back({std::move(label), left, right, left * right});
}

void Deriver::number(double value, std::initializer_list<std::int64_t> indices) {
  derivation_.value = value;
  std::string text;
  for (const std::int64_t index : indices) {
    text += (text.empty() ? "" : ", ") + std::to_string(index);
  }
  derivation_.name += "[" + text + "]";
}

std::string Deriver::token_label(std::int64_t position) const {
  const auto index = static_cast<std::size_t>(position);
  return fmt::format("{}: {}", position, token_text(from_.model, pass_.tokens()[index]));
}

// y_o = Σ_i x_i W[o,i] + b_o, terms named by their input.
void Deriver::linear(View<const float> x, const LinearWeights& matrix, std::int64_t output,
                     const char* input) {
  const std::vector<float> weights = kernels::multiplied_row(matrix, output);
  for (std::int64_t i = 0; i < x.extent(0); ++i) {
    add(fmt::format("{} {}", input, i), x(i), weights[i]);
  }
  if (matrix.bias.present()) derivation_.bias = matrix.bias(output);
}

// A point that the pass does not keep, (B, T, …), as the pass used it.
Tensor<float> Deriver::observed(const Point& point) const { return pass_.computed(point); }

double Deriver::observed_embedding(PointKind kind) const {
  return observed({kind, -1}).view()(0, element_.position, element_.index);
}

// What an intervention changes that the terms do not show: the point itself, or copies of the
// stream that it is computed from.
bool Deriver::is_edited(const Point& point) const {
  const auto any = [&](std::initializer_list<PointKind> kinds) {
    return std::ranges::any_of(kinds, [&](PointKind kind) {
      return pass_.edits_head({kind, layer_}, element_.head);
    });
  };
  switch (point.kind) {
    case PointKind::query:
      return any({point.kind, PointKind::attention_in, PointKind::query_input});
    case PointKind::key: return any({point.kind, PointKind::attention_in, PointKind::key_input});
    case PointKind::value:
      return any({point.kind, PointKind::attention_in, PointKind::value_input});
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::value_input: return any({point.kind, PointKind::attention_in});
    case PointKind::attention_out:
      return pass_.edits(point) || pass_.edits({PointKind::head_results, layer_});
    default: return pass_.edits(point);
  }
}

// The stream (T, C) as the second norm reads it.
View<const float> Deriver::feed_forward_in() {
  const Point point{PointKind::feed_forward_in, layer_};
  if (!pass_.edits(point)) return feed_forward_stream(config_, block());
  edited_ = observed(point);
  return View<const float>(edited_)[0];
}

void Deriver::copied(const Point& point, const char* stream_name, View<const float> stream) {
  const std::int64_t c = channel();
  derivation_.formula = fmt::format("x_c = {}_c", stream_name);
  derivation_.latex = "x_c = x_c";
  add(stream_name, stream(element_.position, c), 1);
  const Tensor<float> values = observed(point);
  if (values.shape().rank() == 3) {
    number(values.view()(0, element_.position, c), {element_.position, c});
  } else {
    number(values.view()(0, element_.position, element_.head, c),
           {element_.position, element_.head, c});
  }
}

// Derivations of the stream: embeddings, sums, norms and logits.

namespace {

// What a norm subtracts from a row: 0 for RMS norms.
double subtracted_mean(const NormSaved& saved, std::int64_t row) {
  return saved.mean.present() ? saved.mean(row) : 0.0F;
}

}  // namespace

void Deriver::embedding() {
  const std::int64_t c = channel();
  const std::int32_t token = pass_.tokens()[static_cast<std::size_t>(element_.position)];
  describe("e_c = W_E[token, c]", R"(e_c = W_E[\mathrm{token}, c])", "sum");
  add(token_label(element_.position), parameters().token_embedding()(token, c), 1);
  number(observed_embedding(PointKind::embedding), {element_.position, c});
}

void Deriver::position_embedding() {
  const std::int64_t c = channel();
  describe("p_c = W_P[position, c]", R"(p_c = W_P[\mathrm{position}, c])", "sum");
  add(fmt::format("position {}", element_.position),
      parameters().position_embedding()(element_.position, c), 1);
  number(observed_embedding(PointKind::position), {element_.position, c});
}

void Deriver::residual_pre() {
  if (layer_ > 0) return residual_post(layer_ - 1, "resid_pre");
  const std::int64_t c = channel();
  if (!config_.has_position_table()) {
    describe("x_c = e_c", R"(x_c = e_c)", "sum");
    add("hook_embed", observed_embedding(PointKind::embedding), 1);
    return number(block().residual_pre(element_.position, c), {element_.position, c});
  }
  describe("x_c = e_c + p_c", R"(x_c = e_c + p_c)", "sum");
  add("hook_embed", observed_embedding(PointKind::embedding), 1);
  add("hook_pos_embed", observed_embedding(PointKind::position), 1);
  number(block().residual_pre(element_.position, c), {element_.position, c});
}

void Deriver::residual_post(std::int64_t layer, const char* name) {
  const BlockActivations& of = pass_.activations().block(layer);
  // An edit of the next block's input is not one of this block's output.
  const View<const float> sum =
      pass_.rows(layer == layer_ ? Point{PointKind::residual_post, layer}
                                 : Point{PointKind::residual_pre, layer_});
  if (config_.is_parallel()) return parallel_sum(name, layer, sum);
  stream_sum(name, "resid_mid", of.residual_mid, "mlp_out",
             pass_.rows({PointKind::feed_forward_out, layer}), sum);
}

// Of a block whose halves read the same stream.
void Deriver::parallel_sum(const char* name, std::int64_t layer, View<const float> sum) {
  const std::int64_t c = channel(), t = element_.position;
  const BlockActivations& of = pass_.activations().block(layer);
  derivation_.formula = fmt::format("{}_c = resid_pre_c + attn_out_c + mlp_out_c", name);
  derivation_.latex = R"(x'_c = x_c + a_c + f_c)";
  add("resid_pre", of.residual_pre(t, c), 1);
  add("attn_out", pass_.rows({PointKind::attention_out, layer})(t, c), 1);
  add("mlp_out", pass_.rows({PointKind::feed_forward_out, layer})(t, c), 1);
  number(sum(t, c), {t, c});
}

void Deriver::stream_sum(const char* name, const char* before, View<const float> stream,
                         const char* what, View<const float> added, View<const float> sum) {
  const std::int64_t c = channel();
  derivation_.formula = fmt::format("{}_c = {}_c + {}_c", name, before, what);
  derivation_.latex = R"(x'_c = x_c + \Delta_c)";
  add(before, stream(element_.position, c), 1);
  add(what, added(element_.position, c), 1);
  number(sum(element_.position, c), {element_.position, c});
}

// σ = √(mean (x − μ)² + ε) as a sum: each (x_c − μ)² / (C·σ), and ε / σ.
void Deriver::scale(View<const float> x, const NormSaved& saved) {
  if (is_rms()) {
    describe("σ = √( mean_c x_c² + ε ) = Σ_c x_c² / (C σ) + ε / σ",
             R"(\sigma = \sqrt{\tfrac1C \sum_c x_c^2 + \varepsilon})", "norm");
  } else {
    describe("σ = √( mean_c (x_c − μ)² + ε ) = Σ_c (x_c − μ)² / (C σ) + ε / σ",
             R"(\sigma = \sqrt{\tfrac1C \sum_c (x_c-\mu)^2 + \varepsilon})", "norm");
  }
  const double sigma = 1.0 / saved.reciprocal_deviation(element_.position);
  const double mean = subtracted_mean(saved, element_.position);
  const auto channels = static_cast<double>(config_.channels);
  for (std::int64_t c = 0; c < config_.channels; ++c) {
    const double centred = x(element_.position, c) - mean;
    add(fmt::format("channel {}", c), centred, centred / (channels * sigma));
  }
  derivation_.bias = static_cast<double>(config_.block.norm.epsilon) / sigma;
  number(static_cast<float>(sigma), {element_.position, 0});
}

void Deriver::normalized(View<const float> x, const NormSaved& saved) {
  const std::int64_t c = channel();
  const double reciprocal = saved.reciprocal_deviation(element_.position);
  const double mean = subtracted_mean(saved, element_.position);
  add("x / σ", x(element_.position, c), reciprocal);
  if (is_rms()) {
    describe("x̂_c = x_c / σ", R"(\hat x_c = \frac{x_c}{\sigma})", "norm");
  } else {
    describe("x̂_c = (x_c − μ) / σ", R"(\hat x_c = \frac{x_c - \mu}{\sigma})", "norm");
    add("−μ / σ", -mean, reciprocal);
  }
  number((x(element_.position, c) - mean) * reciprocal, {element_.position, c});
}

// y_c = x̂_c γ_c + β_c
void Deriver::unembedding_in() {
  const std::int64_t c = channel();
  describe("y_c = x̂_c γ_c + β_c", R"(y_c = \hat x_c\, \gamma_c + \beta_c)", "norm");
  const NormWeights& norm = parameters().final_norm();
  add("x̂ · γ", observed({PointKind::final_normalized}).view()(0, element_.position, c),
      norm.gain(c));
  if (norm.bias.present()) derivation_.bias = norm.bias(c);
  number(pass_.final_rows()(element_.position, c), {element_.position, c});
}

void Deriver::logits() {
  require_index(config_.vocabulary_size, "token");
  const LinearWeights& unembedding = parameters().unembedding();
  derivation_.name = "logits";
  describe("logit_w = Σ_c x_c W_U[c,w] + b_w", R"(\mathrm{logit}_w = \sum_c x_c\, W_U[c,w] + b_w)",
           "sum");
  linear(pass_.final_rows()[element_.position], unembedding, element_.index);
  if (config_.logit_cap > 0) {
    const double u = derivation_.sum();
    describe("logit_w = cap · tanh(u / cap), and u = Σ_c x_c W_U[c,w] + b_w",
             R"(\mathrm{logit}_w = c \tanh\frac{u}{c},\quad u = \sum_c x_c\, W_U[c,w] + b_w)",
             "activation");
    derivation_.terms.clear();
    derivation_.bias = 0;
    add_capped(u, config_.logit_cap);
  }
  const Tensor<float> logits = pass_.logits(element_.position, element_.position + 1);
  number(logits[element_.index], {element_.position, element_.index});
}

// `first` is the first row of the projection among those of query, key and value.
void Deriver::projection(std::int64_t first, std::int64_t head, const char* letter,
                         const char* matrix) {
  require_index(config_.head_size(), "number");
  const std::int64_t row = first + head * config_.head_size() + element_.index;
  derivation_.formula = fmt::format("{}_j = Σ_c x_c W_{}[c,j] + b_j", letter, matrix);
  derivation_.latex = fmt::format(R"({}_j = \sum_c x_c\, W_{}[c,j] + b_j)", letter, matrix);
  linear(attention_stream(config_, block())[element_.position], weights().query_key_value, row);
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
    if (attention().head_norms == HeadNormExtent::all_heads) {
      return number * deviation(t, 0) * norm.gain(head * size + index);
    }
    return number * deviation(t, head) * norm.gain(index);
  };
  describe("r_j = x_j cos(m θ) ± x_j' sin(m θ)",
           R"(r_j = x_j \cos m\theta \pm x_{j'} \sin m\theta)", "rotation");
  const Rotation rotation =
      rotation_of(attention(), {.layer = layer_, .position = t, .j = j}, pass_.positions());
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
  if (attention().soft_cap > 0) return capped_score();
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

void Deriver::capped_score() {
  const double cap = attention().soft_cap;
  describe("s = cap · tanh(u / cap), and u = Σ_j q_j k_j · scale",
           R"(s = c \tanh\frac{u}{c},\quad u = \mathrm{scale} \sum_j q_j k_j)", "activation");
  if (is_visible()) {
    const Heads<const float> read = heads();
    double product = 0;
    for (std::int64_t j = 0; j < config_.head_size(); ++j) {
      product += static_cast<double>(read.query(0, element_.position, element_.head, j)) *
                 read.key(0, element_.key, group(), j);
    }
    add_capped(product * attention().score_scale(), cap);
  }
  number(row(AttentionValues::scores)[static_cast<std::size_t>(element_.key)],
         {element_.head, element_.position, element_.key});
}

// cap · tanh(u / cap), as u times how much of it is left.
void Deriver::add_capped(double u, double cap) {
  add("u · (cap / u) tanh(u / cap)", u, u == 0 ? 1 : cap / u * std::tanh(u / cap));
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

// What a branch adds where that is the norm of what it gives.
void Deriver::normalised_out(PointKind out, PointKind normalized, const NormWeights& norm,
                             const char* letter) {
  const std::int64_t c = channel();
  derivation_.formula = fmt::format("{}_c = x̂_c γ_c", letter);
  derivation_.latex = fmt::format(R"({}_c = \hat x_c\, \gamma_c)", letter);
  derivation_.operation = "norm";
  add("x̂ · γ", observed({normalized, layer_}).view()(0, element_.position, c), norm.gain(c));
  if (norm.bias.present()) derivation_.bias = norm.bias(c);
  number(pass_.rows({out, layer_})(element_.position, c), {element_.position, c});
}

void Deriver::attention_out() {
  if (config_.has_output_norms()) {
    return normalised_out(PointKind::attention_out, PointKind::attention_out_normalized,
                          weights().attention_out_norm, "a");
  }
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
  const View<float> read =
      config_.has_input_norms() ? block().norm_2 : feed_forward_stream(config_, block());
  linear(read[element_.position], matrix, element_.index);
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
  if (config_.has_output_norms()) {
    return normalised_out(PointKind::feed_forward_out, PointKind::feed_forward_out_normalized,
                          weights().feed_forward_out_norm, "f");
  }
  const std::int64_t c = channel();
  describe("f_c = Σ_i m_i W_out[i,c] + b_c", R"(f_c = \sum_i m_i\, W_{out}[i,c] + b_c)", "sum");
  linear(block().feed_forward.post[element_.position], weights().down, c, "neuron");
  number(pass_.rows({PointKind::feed_forward_out, layer_})(element_.position, c),
         {element_.position, c});
}

}  // namespace heed
