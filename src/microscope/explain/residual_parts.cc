#include "microscope/explain/residual_parts.h"

#include <cmath>
#include <numeric>

#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

namespace heed {
namespace {

using Vector = std::vector<float>;

Vector difference(std::span<const float> a, std::span<const float> b) {
  Vector result(a.begin(), a.end());
  for (std::size_t c = 0; c < result.size(); ++c) result[c] -= b[c];
  return result;
}

void add_to(Vector& sum, std::span<const float> vector) {
  sum.resize(vector.size());
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += vector[c];
}

class PartsProbe final : public Probe {
 public:
  // `kept` (null for an unedited pass) records what was edited.
  PartsProbe(const Transformer& model, ResidualUnit unit, std::int64_t position,
             const RecordedPass* kept = nullptr)
      : model_(model), unit_(unit), position_(position), kept_(kept) {}

  bool wants(const Point& point) const override {
    switch (point.kind) {
      case PointKind::embedding:
      case PointKind::position:
      case PointKind::residual_pre:
      case PointKind::attention_out:
      case PointKind::residual_mid:
      case PointKind::feed_forward_out: return true;
      case PointKind::mixed_values: return unit_ == ResidualUnit::head;
      case PointKind::residual_post: return point.layer + 1 == model_.specification().layers;
      default: return false;
    }
  }

  void observe(const Point& point, View<const float> values) override {
    switch (point.kind) {
      case PointKind::embedding: return write("embed", row(values));
      case PointKind::position: return write("pos_embed", row(values));
      case PointKind::residual_pre:
        // resid_pre of a block is resid_post of the previous block, in the same memory.
        return reach(point.layer > 0 && edits({PointKind::residual_post, point.layer - 1})
                         ? Point{PointKind::residual_post, point.layer - 1}
                         : point,
                     row(values));
      case PointKind::mixed_values: return add_heads(point.layer, values[0][position_]);
      case PointKind::attention_out:
        if (unit_ == ResidualUnit::head) return complete(point, row(values));
        return write(fmt::format("{}_attn_out", point.layer), row(values));
      case PointKind::residual_mid: return reach(point, row(values));
      case PointKind::feed_forward_out:
        return write(fmt::format("{}_mlp_out", point.layer), row(values));
      case PointKind::residual_post: return finish(point, row(values));
      default: return;
    }
  }

  ResidualParts result() {
    ResidualParts result{.position = position_};
    const auto dot = [](std::span<const float> a, std::span<const float> b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    const double stream_square = dot(stream_, stream_);
    result.vectors = Tensor<float>(Shape{std::ssize(names_), std::ssize(stream_)});
    std::copy(vectors_.begin(), vectors_.end(), result.vectors.data());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::span<const float> part =
          std::span(vectors_).subspan(i * stream_.size(), stream_.size());
      const double along = dot(part, stream_);
      const double length = std::sqrt(dot(part, part));
      const double lengths = length * std::sqrt(stream_square);
      result.parts.push_back({.name = names_[i],
                              .length = length,
                              .cosine = lengths > 0 ? along / lengths : 0,
                              .share = stream_square > 0 ? along / stream_square : 0});
    }
    result.stream = std::move(stream_);
    return result;
  }

 private:
  std::span<const float> row(View<const float> values) const { return values[0][position_].span(); }

  bool edits(const Point& point) const { return kept_ != nullptr && kept_->edits(point); }

  void add(std::string name, std::span<const float> vector) {
    names_.push_back(std::move(name));
    vectors_.insert(vectors_.end(), vector.begin(), vector.end());
  }

  void write(std::string name, std::span<const float> vector) {
    add_to(written_, vector);
    add(std::move(name), vector);
  }

  // What the heads write, as a whole: `point` is attention_out.
  void complete(const Point& point, std::span<const float> whole) {
    const Vector rest = difference(whole, heads_);
    const Point results{PointKind::head_results, point.layer};
    if (edits(point) || edits(results)) {
      add(edit_label(edits(point) ? point : results), rest);
    } else {
      add_to(rounding_, rest);
    }
    add_to(written_, whole);
    heads_.clear();
  }

  void add_head_part(std::string name, std::span<const float> vector) {
    add_to(heads_, vector);
    add(std::move(name), vector);
  }

  // The stream after all preceding writes.
  void reach(const Point& point, std::span<const float> stream) {
    if (!edits(point)) return;
    add(edit_label(point), difference(stream, written_));
    written_.assign(stream.begin(), stream.end());
  }

  void finish(const Point& point, std::span<const float> stream) {
    reach(point, stream);
    stream_.assign(stream.begin(), stream.end());
    if (model_.parameters().prepared_format() == kernels::WeightFormat::f32) return;
    add_to(rounding_, difference(stream, written_));
    add("rounding", rounding_);
  }

  // mixed (H, D)
  void add_heads(std::int64_t layer, View<const float> mixed) {
    const LinearWeights& projection = model_.parameters().block(layer).projection;
    const kernels::MultipliedWeight multiplied(projection);
    const View<const float> weight = multiplied.view();  // (C, A)
    const std::int64_t head_size = mixed.extent(1);
    Vector result(static_cast<std::size_t>(weight.extent(0)));
    for (std::int64_t head = 0; head < mixed.extent(0); ++head) {
      for (std::int64_t c = 0; c < std::ssize(result); ++c) {
        double sum = 0;
        for (std::int64_t d = 0; d < head_size; ++d) {
          sum += static_cast<double>(weight(c, head * head_size + d)) * mixed(head, d);
        }
        result[c] = static_cast<float>(sum);
      }
      add_head_part(fmt::format("L{}H{}", layer, head), result);
    }
    if (projection.bias.present()) {
      add_head_part(fmt::format("{}_attn_bias", layer), projection.bias.span());
    }
  }

  const Transformer& model_;
  ResidualUnit unit_;
  std::int64_t position_;
  const RecordedPass* kept_;
  std::vector<std::string> names_;
  Vector vectors_;   // (parts, C)
  Vector stream_;    // (C), the last
  Vector written_;   // (C), all writes to the stream so far
  Vector heads_;     // (C), the parts of the current write
  Vector rounding_;  // (C), unedited values less the sum of their parts
};

}  // namespace

ResidualParts decompose_residual(const Transformer& model, std::span<const std::int32_t> tokens,
                                 ResidualUnit unit, std::int64_t position) {
  require_predicts_next(model.specification(), "a sum of residual parts");
  require_sums_to_logits(model.specification(), "a sum of residual parts");
  position = position_in_text(position, std::ssize(tokens));
  PartsProbe probe(model, unit, position);
  observe_pass(model, tokens.first(static_cast<std::size_t>(position) + 1), probe);
  return probe.result();
}

ResidualParts decompose_residual(const RecordedPass& pass, ResidualUnit unit,
                                 std::int64_t position) {
  require_sums_to_logits(pass.model().specification(), "a sum of residual parts");
  PartsProbe probe(pass.model(), unit, position_in_text(position, pass.positions()), &pass);
  pass.replay(probe);
  return probe.result();
}

}  // namespace heed
