// What all derivations use: the chosen element, its name, and sums of terms.
#include "engine/deriver.h"

#include <algorithm>

#include "base/error.h"
#include "engine/token_json.h"
#include "kernels/prepared_weight.h"
#include "microscope/traces/capture.h"
#include "model/block.h"

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

}  // namespace heed
