#include "model/derived_points.h"

#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

bool wanted(const Pass& pass, Point point, std::int64_t layer) {
  return pass.probe != nullptr && pass.probe->wants({point, layer});
}

// Calls compute(tile, out (T, S)) for every head of every sequence, then shows (B, H, T, S).
template <class Compute>
void observe_head_planes(const Pass& pass, const Site& site,
                         const kernels::AttentionInput<float>& input, Compute&& compute) {
  const std::int64_t heads = input.query.extent(2);
  const std::int64_t queries = input.query.extent(1);
  const std::int64_t keys = input.key.extent(1);
  Tensor<float> planes(Shape{pass.batch, heads, queries, keys});
  for (std::int64_t b = 0; b < pass.batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const kernels::AttentionTile tile{.batch = b,
                                        .head = h,
                                        .query_begin = 0,
                                        .query_end = queries,
                                        .key_begin = 0,
                                        .key_end = keys};
      compute(tile, planes.view()[b][h]);
    }
  }
  pass.probe->observe(site, planes);
}

}  // namespace

void observe_attention(const Pass& pass, std::int64_t layer,
                       const kernels::AttentionInput<float>& input, View<const float> log_sum_exp) {
  if (wanted(pass, Point::scores, layer)) {
    observe_head_planes(pass, {Point::scores, layer}, input, [&](const auto& tile, auto out) {
      kernels::attention_scores_tile(input, tile, out);
    });
  }
  if (wanted(pass, Point::pattern, layer)) {
    observe_head_planes(pass, {Point::pattern, layer}, input, [&](const auto& tile, auto out) {
      kernels::attention_pattern_tile(input, log_sum_exp, tile, out);
    });
  }
}

void observe_norm(const Pass& pass, std::int64_t layer, const NormSites& sites, View<const float> x,
                  const NormSaved& saved) {
  const std::int64_t channels = x.extent(1);
  if (wanted(pass, sites.scale, layer)) {
    Tensor<float> scale(Shape{pass.batch, pass.positions, 1});
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      scale[row] = 1.0F / saved.reciprocal_deviation(row);
    }
    pass.probe->observe({sites.scale, layer}, scale);
  }
  if (wanted(pass, sites.normalized, layer)) {
    Tensor<float> normalized(Shape{pass.batch, pass.positions, channels});
    for (std::int64_t row = 0; row < pass.rows(); ++row) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        normalized[row * channels + channel] =
            (x(row, channel) - saved.mean(row)) * saved.reciprocal_deviation(row);
      }
    }
    pass.probe->observe({sites.normalized, layer}, normalized);
  }
}

void observe_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input) {
  const std::int64_t channels = input.token_table.extent(1);
  Tensor<float> values;
  const auto room = [&] { values = Tensor<float>(Shape{pass.batch, pass.positions, channels}); };
  if (wanted(pass, Point::embedding, -1)) {
    room();
    kernels::embedding_forward({.tokens = input.tokens, .token_table = input.token_table}, values);
    pass.probe->observe({Point::embedding, -1}, values);
  }
  if (wanted(pass, Point::position, -1)) {
    room();
    for (std::int64_t b = 0; b < pass.batch; ++b) {
      for (std::int64_t t = 0; t < pass.positions; ++t) {
        std::copy_n(&input.position_table(input.position(b, t), 0), channels,
                    &values.view()(b, t, 0));
      }
    }
    pass.probe->observe({Point::position, -1}, values);
  }
}

}  // namespace heed
