#include "engine/views/derivation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "engine/views/deriver.h"
#include "microscope/traces/point_names.h"
#include "model/block.h"
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

Point chosen_point(const PointElement& element, const StackSpecification& config) {
  if (const auto exact = point_from_name(element.point)) {
    if (exact->layer >= 0) checked_layer(exact->layer, config);
    return *exact;
  }
  std::vector<Point> points = points_named(element.point, config);
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

Derivation Deriver::at(const Point& point) {
  derivation_.name = point_name(point);
  layer_ = point.layer;
  switch (point.kind) {
    case PointKind::embedding: embedding(); break;
    case PointKind::position: position_embedding(); break;
    case PointKind::residual_pre: residual_pre(); break;
    case PointKind::residual_mid:
      stream_sum("resid_mid", "resid_pre", block().residual_pre, "attn_out",
                 pass_.rows({PointKind::attention_out, layer_}), block().residual_mid);
      break;
    case PointKind::residual_post: residual_post(layer_, "resid_post"); break;
    case PointKind::norm_1_scale: scale(block().residual_pre, block().norm_1_saved); break;
    case PointKind::norm_2_scale: scale(feed_forward_in(), block().norm_2_saved); break;
    case PointKind::final_scale: scale(last_residual(), final_saved()); break;
    case PointKind::norm_1_normalized:
      normalized(block().residual_pre, block().norm_1_saved);
      break;
    case PointKind::attention_out_scale:
      scale(block().attention_result, block().attention_out_saved);
      break;
    case PointKind::attention_out_normalized:
      normalized(block().attention_result, block().attention_out_saved);
      break;
    case PointKind::feed_forward_out_scale:
      scale(block().feed_forward_result, block().feed_forward_out_saved);
      break;
    case PointKind::feed_forward_out_normalized:
      normalized(block().feed_forward_result, block().feed_forward_out_saved);
      break;
    case PointKind::norm_2_normalized: normalized(feed_forward_in(), block().norm_2_saved); break;
    case PointKind::final_normalized: normalized(last_residual(), final_saved()); break;
    case PointKind::attention_in:
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::value_input: copied(point, "resid_pre", block().residual_pre); break;
    case PointKind::feed_forward_in:
      copied(point, config_.is_parallel() ? "resid_pre" : "resid_mid",
             feed_forward_stream(config_, block()));
      break;
    case PointKind::query: projection(0, element_.head, "q", "Q"); break;
    case PointKind::key: projection(attention().query_width(), key_head(), "k", "K"); break;
    case PointKind::value:
      projection(attention().query_width() + attention().key_value_width(), key_head(), "v", "V");
      break;
    case PointKind::rotated_query: positioned(point, 0, element_.head, "q"); break;
    case PointKind::rotated_key:
      positioned(point, attention().query_width(), key_head(), "k");
      break;
    case PointKind::scores: scores(); break;
    case PointKind::pattern: pattern(); break;
    case PointKind::mixed_values: mixed_values(); break;
    case PointKind::head_results: head_result(); break;
    case PointKind::attention_out: attention_out(); break;
    case PointKind::neurons_pre:
      neuron(config_.block.feed_forward.gated ? weights().gate : weights().up,
             block().feed_forward.pre, "n", "W_in");
      break;
    case PointKind::neurons_linear:
      neuron(weights().up, block().feed_forward.linear, "u", "W_up");
      break;
    case PointKind::neurons_post: neurons_post(); break;
    case PointKind::feed_forward_out: feed_forward_out(); break;
    case PointKind::unembedding_in: unembedding_in(); break;
    case PointKind::logits: logits(); break;
    default:
      fail(ErrorCode::unsupported, "{} has no derivation: only decoders of one stack have",
           derivation_.name);
  }
  if (is_edited(point)) {
    add("intervention", derivation_.value - derivation_.sum(), 1);
  }
  return std::move(derivation_);
}

Derivation derive(const DerivedPass& from, const PointElement& element) {
  const StackSpecification& config = from.model.transformer.specification();
  const std::int64_t positions = from.pass.positions();
  for (const std::int64_t position : {element.position, element.key}) {
    require(position >= 0 && position < positions, ErrorCode::invalid_argument,
            "position {} does not exist: the text has positions 0 to {}", position, positions - 1);
  }
  checked_head(element.head, config);
  Deriver deriver(from, element);
  return deriver.at(chosen_point(element, config));
}

double Derivation::sum() const {
  double total = bias;
  for (const DerivationTerm& term : terms) total += term.value;
  return total;
}

OrderedJson derivation_json(Derivation derivation, std::size_t max_terms) {
  std::vector<DerivationTerm>& terms = derivation.terms;
  const std::size_t count = terms.size();
  std::ranges::stable_sort(terms, [](const DerivationTerm& a, const DerivationTerm& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  double rest = 0;
  for (std::size_t i = std::min(max_terms, count); i < count; ++i) rest += terms[i].value;
  terms.resize(std::min(max_terms, count));
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
