#include "microscope/explain/head_weights.h"

namespace heed {

LayerHeads::LayerHeads(const Transformer& gpt, std::int64_t layer)
    : attention_(gpt.specification().block.attention),
      query_key_value_(gpt.parameters().block(layer).query_key_value.weight),
      outputs_(Shape{gpt.specification().attention_width(), gpt.specification().channels}) {
  const View<const float> projection = gpt.parameters().block(layer).projection.weight;  // (C, A)
  const View<float> outputs = outputs_.view();
  for (std::int64_t a = 0; a < outputs.extent(0); ++a) {
    for (std::int64_t c = 0; c < outputs.extent(1); ++c) outputs(a, c) = projection(c, a);
  }
  if (!attention_.query_key_norm) return;
  const BlockParameters& block = gpt.parameters().block(layer);
  const std::int64_t keys_end = attention_.query_width() + attention_.key_value_width();
  with_gains_ = Tensor<float>(query_key_value_.shape());
  for (std::int64_t row = 0; row < query_key_value_.extent(0); ++row) {
    const std::int64_t d = row % attention_.head_size;
    const float gain = row < attention_.query_width() ? block.query_norm.gain(d)
                       : row < keys_end               ? block.key_norm.gain(d)
                                                      : 1.0F;
    for (std::int64_t c = 0; c < query_key_value_.extent(1); ++c) {
      with_gains_.view()(row, c) = gain * query_key_value_(row, c);
    }
  }
  query_key_value_ = with_gains_;
}

View<const float> LayerHeads::all_queries() const {
  return query_key_value_.slice(0, 0, attention_.query_width());
}

View<const float> LayerHeads::all_keys() const {
  const std::int64_t begin = attention_.query_width();
  return query_key_value_.slice(0, begin, begin + attention_.key_value_width());
}

View<const float> LayerHeads::all_values() const {
  const std::int64_t end = attention_.projected_width();
  return query_key_value_.slice(0, end - attention_.key_value_width(), end);
}

View<const float> LayerHeads::head_rows(View<const float> rows, std::int64_t head) const {
  const std::int64_t size = attention_.head_size;
  return rows.slice(0, head * size, (head + 1) * size);
}

View<const float> LayerHeads::query(std::int64_t head) const {
  return head_rows(all_queries(), head);
}

View<const float> LayerHeads::key(std::int64_t head) const {
  return head_rows(all_keys(), head / attention_.group_size());
}

View<const float> LayerHeads::value(std::int64_t head) const {
  return head_rows(all_values(), head / attention_.group_size());
}

View<const float> LayerHeads::output(std::int64_t head) const { return head_rows(outputs_, head); }

}  // namespace heed
