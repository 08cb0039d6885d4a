#include "microscope/residual_parts.h"

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "microscope/reading.h"

namespace heed {
namespace {

class PartsProbe final : public Probe {
 public:
  PartsProbe(const Gpt& gpt, ResidualUnit unit, std::int64_t position)
      : gpt_(gpt), unit_(unit), position_(position) {}

  bool wants(const Site& site) const override {
    return site.point == Point::embedding || site.point == Point::position;
  }

  void observe(const Site& site, View<const float> values) override {
    switch (site.point) {
      case Point::embedding: return add("embed", row(values));
      case Point::position: return add("pos_embed", row(values));
      case Point::mixed_values:
        if (unit_ == ResidualUnit::head) add_heads(site.layer, values[0][position_]);
        return;
      case Point::attention_out:
        if (unit_ == ResidualUnit::component) {
          add(fmt::format("{}_attn_out", site.layer), row(values));
        }
        return;
      case Point::feed_forward_out: return add(fmt::format("{}_mlp_out", site.layer), row(values));
      case Point::residual_post: {
        const std::span<const float> stream = row(values);
        stream_.assign(stream.begin(), stream.end());
        return;
      }
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

  void add(std::string name, std::span<const float> vector) {
    names_.push_back(std::move(name));
    vectors_.insert(vectors_.end(), vector.begin(), vector.end());
  }

  // mixed (H, D)
  void add_heads(std::int64_t layer, View<const float> mixed) {
    const LinearWeights& projection = gpt_.parameters().block(layer).projection;  // (C, A)
    const std::int64_t head_size = mixed.extent(1);
    std::vector<float> result(projection.weight.extent(0));
    for (std::int64_t head = 0; head < mixed.extent(0); ++head) {
      for (std::int64_t c = 0; c < std::ssize(result); ++c) {
        double sum = 0;
        for (std::int64_t d = 0; d < head_size; ++d) {
          sum += static_cast<double>(projection.weight(c, head * head_size + d)) * mixed(head, d);
        }
        result[c] = static_cast<float>(sum);
      }
      add(fmt::format("L{}H{}", layer, head), result);
    }
    if (projection.bias.present()) {
      add(fmt::format("{}_attn_bias", layer), projection.bias.span());
    }
  }

  const Gpt& gpt_;
  ResidualUnit unit_;
  std::int64_t position_;
  std::vector<std::string> names_;
  std::vector<float> vectors_;  // (parts, C)
  std::vector<float> stream_;   // (C)
};

}  // namespace

ResidualParts take_residual_apart(const Gpt& gpt, std::span<const std::int32_t> tokens,
                                  ResidualUnit unit, std::int64_t position) {
  const auto positions = std::ssize(tokens);
  if (position == -1) position = positions - 1;
  require(position >= 0 && position < positions, ErrorCode::invalid_argument,
          "position {} is not in a text of {} tokens", position, positions);
  PartsProbe probe(gpt, unit, position);
  read_text(gpt, tokens.first(static_cast<std::size_t>(position) + 1), probe);
  return probe.result();
}

}  // namespace heed
