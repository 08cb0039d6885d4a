#include "engine/derivation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "engine/token_json.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr const char* known_points =
    "hook_embed, hook_pos_embed, hook_resid_pre, hook_resid_mid, hook_resid_post, hook_attn_in, "
    "hook_q_input, hook_k_input, hook_v_input, hook_mlp_in, ln1.hook_scale, ln1.hook_normalized, "
    "ln2.hook_scale, ln2.hook_normalized, "
    "ln_final.hook_scale, ln_final.hook_normalized, attn.hook_q, attn.hook_k, attn.hook_v, "
    "attn.hook_attn_scores, attn.hook_pattern, attn.hook_z, attn.hook_result, hook_attn_out, "
    "mlp.hook_pre, mlp.hook_post, hook_mlp_out, unembed.hook_in and logits";

class Deriver {
 public:
  Deriver(const DerivedPass& from, const PointElement& element)
      : from_(from), pass_(from.pass), config_(from.model.gpt.config()), element_(element) {}

  Derivation at(const Point& point) {
    derivation_.name = point_name(point);
    layer_ = point.layer;
    switch (point.kind) {
      case PointKind::embedding: embedding(); break;
      case PointKind::position: position_embedding(); break;
      case PointKind::residual_pre: residual_pre(); break;
      case PointKind::residual_mid:
        stream_sum("resid_mid", "resid_pre", block().residual_pre, "attn_out",
                   pass_.attention_out(layer_), block().residual_mid);
        break;
      case PointKind::residual_post: residual_post(layer_, "resid_post"); break;
      case PointKind::norm_1_scale: scale(block().residual_pre, block().norm_1_saved); break;
      case PointKind::norm_2_scale: scale(feed_forward_in(), block().norm_2_saved); break;
      case PointKind::final_scale: scale(last_residual(), final_saved()); break;
      case PointKind::norm_1_normalized:
        normalized(block().residual_pre, block().norm_1_saved);
        break;
      case PointKind::norm_2_normalized: normalized(feed_forward_in(), block().norm_2_saved); break;
      case PointKind::final_normalized: normalized(last_residual(), final_saved()); break;
      case PointKind::attention_in:
      case PointKind::query_input:
      case PointKind::key_input:
      case PointKind::value_input: copied(point, "resid_pre", block().residual_pre); break;
      case PointKind::feed_forward_in: copied(point, "resid_mid", block().residual_mid); break;
      case PointKind::query: projection(0, "q", "Q"); break;
      case PointKind::key: projection(1, "k", "K"); break;
      case PointKind::value: projection(2, "v", "V"); break;
      case PointKind::scores: scores(); break;
      case PointKind::pattern: pattern(); break;
      case PointKind::mixed_values: mixed_values(); break;
      case PointKind::head_results: head_result(); break;
      case PointKind::attention_out: attention_out(); break;
      case PointKind::neurons_pre: neurons_pre(); break;
      case PointKind::neurons_post: neurons_post(); break;
      case PointKind::feed_forward_out: feed_forward_out(); break;
      case PointKind::unembedding_in: unembedding_in(); break;
      case PointKind::logits: logits(); break;
    }
    if (is_edited(point)) {
      add("intervention", derivation_.value - derivation_.sum(), 1);
    }
    return std::move(derivation_);
  }

 private:
  const GptParameters& parameters() const { return from_.model.gpt.parameters(); }
  const BlockParameters& weights() const { return parameters().block(layer_); }
  const BlockActivations& block() const { return pass_.activations().block(layer_); }
  View<const float> last_residual() const { return pass_.activations().last_residual(); }
  const NormSaved& final_saved() const { return pass_.activations().final_norm_saved(); }

  void require_index(std::int64_t count, const char* what) const {
    require(element_.index >= 0 && element_.index < count, ErrorCode::invalid_argument,
            "{} {} does not exist: there are 0 to {}", what, element_.index, count - 1);
  }
  std::int64_t channel() const {
    require_index(config_.channels, "channel");
    return element_.index;
  }

  void describe(const char* formula, const char* latex, const char* operation) {
    derivation_.formula = formula;
    derivation_.latex = latex;
    derivation_.operation = operation;
  }
  void add(std::string label, double left, double right) {
    derivation_.terms.push_back({std::move(label), left, right, left * right});
  }
  void number(double value, std::initializer_list<std::int64_t> indices) {
    derivation_.value = value;
    std::string text;
    for (const std::int64_t index : indices) {
      text += (text.empty() ? "" : ", ") + std::to_string(index);
    }
    derivation_.name += "[" + text + "]";
  }
  std::string token_label(std::int64_t position) const {
    const auto index = static_cast<std::size_t>(position);
    return fmt::format("{}: {}", position, token_text(from_.model, pass_.tokens()[index]));
  }

  // y_o = Σ_i x_i W[o,i] + b_o, terms named by their input.
  void linear(View<const float> x, const LinearWeights& matrix, std::int64_t output,
              const char* input = "channel") {
    const std::vector<float> weights = kernels::multiplied_row(matrix, output);
    for (std::int64_t i = 0; i < x.extent(0); ++i) {
      add(fmt::format("{} {}", input, i), x(i), weights[i]);
    }
    if (matrix.bias.present()) derivation_.bias = matrix.bias(output);
  }

  // A point that the pass does not keep, (B, T, …), as the pass used it.
  Tensor<float> observed(const Point& point) const {
    Capture capture({point});
    pass_.replay(capture);
    return capture.take(point);
  }
  double observed_embedding(PointKind kind) const {
    return observed({kind, -1}).view()(0, element_.position, element_.index);
  }

  // What an intervention changes that the terms do not show: the point itself, or copies of the
  // stream that it is computed from.
  bool is_edited(const Point& point) const {
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
  View<const float> feed_forward_in() {
    const Point point{PointKind::feed_forward_in, layer_};
    if (!pass_.edits(point)) return block().residual_mid;
    edited_ = observed(point);
    return View<const float>(edited_)[0];
  }

  void copied(const Point& point, const char* stream_name, View<const float> stream) {
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

  void embedding() {
    const std::int64_t c = channel();
    const std::int32_t token = pass_.tokens()[static_cast<std::size_t>(element_.position)];
    describe("e_c = W_E[token, c]", R"(e_c = W_E[\mathrm{token}, c])", "sum");
    add(token_label(element_.position), parameters().token_embedding()(token, c), 1);
    number(observed_embedding(PointKind::embedding), {element_.position, c});
  }

  void position_embedding() {
    const std::int64_t c = channel();
    describe("p_c = W_P[position, c]", R"(p_c = W_P[\mathrm{position}, c])", "sum");
    add(fmt::format("position {}", element_.position),
        parameters().position_embedding()(element_.position, c), 1);
    number(observed_embedding(PointKind::position), {element_.position, c});
  }

  void residual_pre() {
    if (layer_ > 0) return residual_post(layer_ - 1, "resid_pre");
    const std::int64_t c = channel();
    describe("x_c = e_c + p_c", R"(x_c = e_c + p_c)", "sum");
    add("hook_embed", observed_embedding(PointKind::embedding), 1);
    add("hook_pos_embed", observed_embedding(PointKind::position), 1);
    number(block().residual_pre(element_.position, c), {element_.position, c});
  }

  void residual_post(std::int64_t layer, const char* name) {
    const BlockActivations& of = pass_.activations().block(layer);
    stream_sum(name, "resid_mid", of.residual_mid, "mlp_out", pass_.feed_forward_out(layer),
               of.residual_post);
  }

  void stream_sum(const char* name, const char* before, View<const float> stream, const char* what,
                  View<const float> added, View<const float> sum) {
    const std::int64_t c = channel();
    derivation_.formula = fmt::format("{}_c = {}_c + {}_c", name, before, what);
    derivation_.latex = R"(x'_c = x_c + \Delta_c)";
    add(before, stream(element_.position, c), 1);
    add(what, added(element_.position, c), 1);
    number(sum(element_.position, c), {element_.position, c});
  }

  // σ = √(mean (x − μ)² + ε) as a sum: each (x_c − μ)² / (C·σ), and ε / σ.
  void scale(View<const float> x, const NormSaved& saved) {
    describe("σ = √( mean_c (x_c − μ)² + ε ) = Σ_c (x_c − μ)² / (C σ) + ε / σ",
             R"(\sigma = \sqrt{\tfrac1C \sum_c (x_c-\mu)^2 + \varepsilon})", "norm");
    const double sigma = 1.0 / saved.reciprocal_deviation(element_.position);
    const double mean = saved.mean(element_.position);
    const auto channels = static_cast<double>(config_.channels);
    for (std::int64_t c = 0; c < config_.channels; ++c) {
      const double centred = x(element_.position, c) - mean;
      add(fmt::format("channel {}", c), centred, centred / (channels * sigma));
    }
    derivation_.bias = static_cast<double>(config_.norm_epsilon) / sigma;
    number(static_cast<float>(sigma), {element_.position, 0});
  }

  void normalized(View<const float> x, const NormSaved& saved) {
    const std::int64_t c = channel();
    describe("x̂_c = (x_c − μ) / σ", R"(\hat x_c = \frac{x_c - \mu}{\sigma})", "norm");
    const double reciprocal = saved.reciprocal_deviation(element_.position);
    const double mean = saved.mean(element_.position);
    add("x / σ", x(element_.position, c), reciprocal);
    add("−μ / σ", -mean, reciprocal);
    number((x(element_.position, c) - mean) * reciprocal, {element_.position, c});
  }

  void projection(std::int64_t third, const char* letter, const char* matrix) {
    require_index(config_.head_size, "number");
    const std::int64_t row =
        third * config_.attention_width() + element_.head * config_.head_size + element_.index;
    derivation_.formula = fmt::format("{}_j = Σ_c x_c W_{}[c,j] + b_j", letter, matrix);
    derivation_.latex = fmt::format(R"({}_j = \sum_c x_c\, W_{}[c,j] + b_j)", letter, matrix);
    linear(block().norm_1[element_.position], weights().query_key_value, row);
    number(block().attention.query_key_value(element_.position, row),
           {element_.position, element_.head, element_.index});
  }

  float projected(std::int64_t third, std::int64_t position, std::int64_t j) const {
    return block().attention.query_key_value(
        position, third * config_.attention_width() + element_.head * config_.head_size + j);
  }

  std::vector<float> row(AttentionValues values) const {
    const Tensor<float> weights = from_.attention.region({.layer = layer_,
                                                          .head = element_.head,
                                                          .query_begin = element_.position,
                                                          .query_end = element_.position + 1,
                                                          .key_end = pass_.positions(),
                                                          .values = values});
    return {weights.span().begin(), weights.span().end()};
  }

  void scores() {
    describe("s = Σ_j q_j k_j / √D", R"(s = \frac{1}{\sqrt D} \sum_j q_j k_j)", "sum");
    const double root = std::sqrt(static_cast<double>(config_.head_size));
    if (element_.key <= element_.position) {
      for (std::int64_t j = 0; j < config_.head_size; ++j) {
        add(fmt::format("number {}", j), projected(0, element_.position, j),
            projected(1, element_.key, j));
        derivation_.terms.back().value /= root;
      }
    }
    number(row(AttentionValues::scores)[static_cast<std::size_t>(element_.key)],
           {element_.head, element_.position, element_.key});
  }

  void pattern() {
    describe("p = e^s / Σ_k e^{s_k}, over the unmasked keys", R"(p = \frac{e^{s}}{\sum_k e^{s_k}})",
             "softmax");
    const std::vector<float> scores = row(AttentionValues::scores);
    double largest = -std::numeric_limits<double>::infinity();
    for (const float score : scores) largest = std::max<double>(largest, score);
    double sum = 0;
    for (const float score : scores) sum += std::exp(score - largest);
    if (element_.key <= element_.position) {
      add(token_label(element_.key),
          std::exp(scores[static_cast<std::size_t>(element_.key)] - largest), 1.0 / sum);
    }
    number(row(AttentionValues::pattern)[static_cast<std::size_t>(element_.key)],
           {element_.head, element_.position, element_.key});
  }

  void mixed_values() {
    require_index(config_.head_size, "number");
    describe("z_j = Σ_s p_s v_{s,j}", R"(z_j = \sum_s p_s\, v_{s,j})", "sum");
    const std::vector<float> shares = row(AttentionValues::pattern);
    for (std::int64_t s = 0; s <= element_.position; ++s) {
      add(token_label(s), shares[static_cast<std::size_t>(s)], projected(2, s, element_.index));
    }
    number(block().attention.mixed_values(element_.position,
                                          element_.head * config_.head_size + element_.index),
           {element_.position, element_.head, element_.index});
  }

  // Σ_j z_j W_O[j,c] of one head; its terms are added.
  double add_head_result(std::int64_t head, std::int64_t c) {
    double sum = 0;
    const std::vector<float> row = kernels::multiplied_row(weights().projection, c);
    for (std::int64_t j = 0; j < config_.head_size; ++j) {
      const std::int64_t column = head * config_.head_size + j;
      add(fmt::format("number {}", j), block().attention.mixed_values(element_.position, column),
          row[static_cast<std::size_t>(column)]);
      sum += derivation_.terms.back().value;
    }
    return sum;
  }

  // What one head adds to the stream.
  void head_result() {
    const std::int64_t c = channel();
    describe("r_c = Σ_j z_j W_O[j,c]", R"(r_c = \sum_j z_j\, W_O[j,c])", "sum");
    add_head_result(element_.head, c);
    number(
        observed({PointKind::head_results, layer_}).view()(0, element_.position, element_.head, c),
        {element_.position, element_.head, c});
  }

  void attention_out() {
    const std::int64_t c = channel();
    describe("a_c = Σ_h r_{h,c} + b_c, and r_{h,c} = Σ_j z_{h,j} W_O[h,j,c]",
             R"(a_c = \sum_h r_{h,c} + b_c,\quad r_{h,c} = \sum_j z_{h,j}\, W_O[h,j,c])", "sum");
    for (std::int64_t head = 0; head < config_.heads; ++head) {
      const double result = add_head_result(head, c);
      derivation_.terms.resize(static_cast<std::size_t>(head));
      add(fmt::format("head {}", head), result, 1);
    }
    const LinearWeights& projection = weights().projection;
    if (projection.bias.present()) derivation_.bias = projection.bias(c);
    number(pass_.attention_out(layer_)(element_.position, c), {element_.position, c});
  }

  void neurons_pre() {
    require_index(config_.feed_forward, "neuron");
    describe("n_i = Σ_c x_c W_in[c,i] + b_i", R"(n_i = \sum_c x_c\, W_{in}[c,i] + b_i)", "sum");
    linear(block().norm_2[element_.position], weights().up, element_.index);
    number(block().feed_forward.pre(element_.position, element_.index),
           {element_.position, element_.index});
  }

  void neurons_post() {
    require_index(config_.feed_forward, "neuron");
    if (config_.activation == Activation::relu) {
      describe("m_i = max(n_i, 0)", R"(m_i = \max(n_i, 0))", "relu");
    } else {
      describe("m_i = n_i · Φ(n_i)", R"(m_i = n_i\,\Phi(n_i))", "gelu");
    }
    const double pre = block().feed_forward.pre(element_.position, element_.index);
    const double post = block().feed_forward.post(element_.position, element_.index);
    const bool edited = pass_.edits({PointKind::neurons_post, layer_});
    add("pre · gate", pre, pre != 0 && !edited ? post / pre : gate(pre));
    number(post, {element_.position, element_.index});
  }

  // The factor activation(x) / x of a neuron.
  double gate(double x) const {
    switch (config_.activation) {
      case Activation::relu: return x > 0 ? 1 : 0;
      case Activation::gelu_erf: return 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
      case Activation::gelu_tanh: break;
    }
    constexpr double root_two_over_pi = 0.7978845608028654;
    return 0.5 * (1 + std::tanh(root_two_over_pi * (x + 0.044715 * x * x * x)));
  }

  void feed_forward_out() {
    const std::int64_t c = channel();
    describe("f_c = Σ_i m_i W_out[i,c] + b_c", R"(f_c = \sum_i m_i\, W_{out}[i,c] + b_c)", "sum");
    linear(block().feed_forward.post[element_.position], weights().down, c, "neuron");
    number(pass_.feed_forward_out(layer_)(element_.position, c), {element_.position, c});
  }

  // y_c = x̂_c γ_c + β_c
  void unembedding_in() {
    const std::int64_t c = channel();
    describe("y_c = x̂_c γ_c + β_c", R"(y_c = \hat x_c\, \gamma_c + \beta_c)", "norm");
    const NormWeights& norm = parameters().final_norm();
    add("x̂ · γ", observed({PointKind::final_normalized}).view()(0, element_.position, c),
        norm.gain(c));
    if (norm.bias.present()) derivation_.bias = norm.bias(c);
    number(pass_.final_norm()(element_.position, c), {element_.position, c});
  }

  void logits() {
    require_index(config_.vocabulary_size, "token");
    const LinearWeights& unembedding = parameters().unembedding();
    derivation_.name = "logits";
    describe("logit_w = Σ_c x_c W_U[c,w] + b_w",
             R"(\mathrm{logit}_w = \sum_c x_c\, W_U[c,w] + b_w)", "sum");
    linear(pass_.final_norm()[element_.position], unembedding, element_.index);
    const Tensor<float> logits = pass_.logits(element_.position, element_.position + 1);
    number(logits[element_.index], {element_.position, element_.index});
  }

  const DerivedPass& from_;
  const KeptPass& pass_;
  const GptConfig& config_;
  const PointElement& element_;
  std::int64_t layer_ = -1;
  Tensor<float> edited_;
  Derivation derivation_;
};

Point chosen_point(const PointElement& element, const GptConfig& config) {
  if (const auto exact = point_from_name(element.point)) {
    if (exact->layer >= 0) checked_layer(exact->layer, config);
    return *exact;
  }
  std::vector<Point> points = points_named(element.point, config.layers);
  if (points.size() > 1) {
    const std::int64_t layer = checked_layer(element.layer, config);
    std::erase_if(points, [&](const Point& point) { return point.layer != layer; });
  }
  require(points.size() == 1, ErrorCode::invalid_argument,
          "'{}' is not a single point; expected one of {}", element.point.substr(0, 80),
          known_points);
  return points.front();
}

}  // namespace

double Derivation::sum() const {
  double total = bias;
  for (const DerivationTerm& term : terms) total += term.value;
  return total;
}

Derivation derive(const DerivedPass& from, const PointElement& element) {
  const GptConfig& config = from.model.gpt.config();
  const std::int64_t positions = from.pass.positions();
  for (const std::int64_t position : {element.position, element.key}) {
    require(position >= 0 && position < positions, ErrorCode::invalid_argument,
            "position {} does not exist: the text has positions 0 to {}", position, positions - 1);
  }
  checked_head(element.head, config);
  Deriver deriver(from, element);
  return deriver.at(chosen_point(element, config));
}

OrderedJson derivation_json(Derivation derivation, std::size_t most) {
  std::vector<DerivationTerm>& terms = derivation.terms;
  const std::size_t count = terms.size();
  std::ranges::stable_sort(terms, [](const DerivationTerm& a, const DerivationTerm& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  double rest = 0;
  for (std::size_t i = std::min(most, count); i < count; ++i) rest += terms[i].value;
  terms.resize(std::min(most, count));
  OrderedJson rows = OrderedJson::array();
  for (const DerivationTerm& term : terms) {
    rows.push_back({{"label", term.label},
                    {"left", json_number(term.left)},
                    {"right", json_number(term.right)},
                    {"value", json_number(term.value)}});
  }
  return {{"name", derivation.name},
          {"value", json_number(static_cast<float>(derivation.value))},
          {"formula", derivation.formula},
          {"latex", derivation.latex},
          {"operation", derivation.operation},
          {"terms", std::move(rows)},
          {"count", count},
          {"rest", json_number(rest)},
          {"bias", json_number(derivation.bias)}};
}

}  // namespace heed
