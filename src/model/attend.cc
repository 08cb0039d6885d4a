// Attention of a pass to its own keys and values, or to those in caches.
#include "base/threads.h"
#include "kernels/kernels.h"
#include "model/cache.h"
#include "model/edited_points.h"
#include "model/ring_attention.h"
#include "model/stages.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// From this many positions on, rounding the operands of attention to bf16 costs less than it saves.
constexpr std::int64_t long_prompt = 64;

// The precision of attention's products: that of the projection of its queries, or bf16 for long
// prompts where the weights are prepared in bf16.
kernels::Precision attention_precision(const LinearWeights& query, std::int64_t positions) {
  const kernels::PreparedWeight* const prepared = query.prepared;
  const bool has_bf16_weights =
      prepared != nullptr && prepared->format() == kernels::WeightFormat::bf16;
  return has_bf16_weights && positions >= long_prompt ? kernels::Precision::bf16 : query.precision;
}

// What one call of the kernel reads: keys and values in f32, or the rows of a quantised cache.
struct Operands {
  kernels::AttentionInput<float> input;
  kernels::ConstQuantisedRows keys{};
  kernels::ConstQuantisedRows values{};
  bool is_quantised = false;

  // The first `positions` of a layer of a cache.
  void read(const KeyValueCache& cache, std::int64_t layer, std::int64_t positions) {
    if (cache.type() == CacheType::f32) {
      input.key = cache.keys(layer, positions);
      input.value = cache.values(layer, positions);
    } else {
      is_quantised = true;
      keys = cache.quantised_keys(layer, positions);
      values = cache.quantised_values(layer, positions);
    }
  }

  // One source for `batch` sequences: a dimension of stride 0.
  void broadcast(std::int64_t batch) {
    const auto repeat = [batch](auto& view) { view = repeated(view, batch); };
    if (!is_quantised) {
      repeat(input.key);
      return repeat(input.value);
    }
    for (kernels::ConstQuantisedRows* rows : {&keys, &values}) {
      repeat(rows->rows);
      if (rows->scales.present()) repeat(rows->scales);
    }
  }
};

// The only call of attention's kernels, for both kinds of memory.
void run_kernel(const Operands& operands, View<float> mixed, View<float> log_sum_exp) {
  const kernels::AttentionInput<float>& input = operands.input;
  if (!operands.is_quantised) return kernels::attention_forward(input, mixed, log_sum_exp);
  kernels::attention_forward(kernels::QuantisedCacheAttention{.query = input.query,
                                                              .key = operands.keys,
                                                              .value = operands.values,
                                                              .mask = input.mask,
                                                              .scale = input.scale,
                                                              .window = input.window,
                                                              .soft_cap = input.soft_cap,
                                                              .positions = input.positions,
                                                              .position_bias = input.position_bias},
                             mixed, log_sum_exp);
}

// `input` with the dequantised rows of a cache, as attention read them.
struct Restored {
  Tensor<float> keys;
  Tensor<float> values;
  kernels::AttentionInput<float> input;

  explicit Restored(const Operands& operands) : input(operands.input) {
    const Shape& rows = operands.keys.rows.shape();
    const Shape shape{rows[0], rows[1], rows[2], input.query.extent(3)};
    keys = Tensor<float>(shape);
    values = Tensor<float>(shape);
    kernels::dequantise_rows(operands.keys, keys);
    kernels::dequantise_rows(operands.values, values);
    input.key = keys;
    input.value = values;
    input.precision = kernels::Precision::f32;
  }
};

void attend_to(const LayerPass& at, const Pass& pass, const AttentionPoints& points,
               const Operands& operands, View<float> mixed, View<float> log_sum_exp) {
  run_kernel(operands, mixed, log_sum_exp);
  if (pass.probe == nullptr && pass.editor == nullptr) return;
  const auto show = [&](const kernels::AttentionInput<float>& input) {
    edit_attention(pass, at.layer, points, input, log_sum_exp, mixed);
    observe_attention(pass, at.layer, points, input, log_sum_exp);
  };
  if (operands.is_quantised) return show(Restored(operands).input);
  show(operands.input);
}

void attend_once(const LayerPass& at, const Pass& pass, const kernels::AttentionInput<float>& input,
                 View<float> mixed, View<float> log_sum_exp) {
  Operands operands{.input = input};
  if (pass.cache != nullptr) {
    operands.read(*pass.cache, at.layer, pass.first_position + pass.positions);
  }
  attend_to(at, pass, self_attention_points, operands, mixed, log_sum_exp);
}

// The part of a ragged pass that is sequence b.
Pass pass_of_sequence(const Pass& pass, std::int64_t b) {
  return {.batch = 1,
          .positions = pass.positions,
          .first_position = pass.first_positions[static_cast<std::size_t>(b)],
          .cache = pass.caches[static_cast<std::size_t>(b)],
          .site = pass.site,
          .editor = pass.editor,
          .first_sequence = b};
}

// Rows [starts[b], starts[b + 1]) of (1, N, H, D), or of the numbers (N·H) of log_sum_exp as
// (1, H, T).
template <class T>
View<T> rows_of(View<T> heads, std::span<const std::int64_t> starts, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  return heads.slice(1, starts[at], starts[at + 1]);
}
template <class T>
View<T> log_sums_of(View<T> log_sum_exp, std::int64_t heads, std::span<const std::int64_t> starts,
                    std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  return log_sum_exp.reshape({log_sum_exp.size()})
      .slice(0, starts[at] * heads, starts[at + 1] * heads)
      .reshape({1, heads, starts[at + 1] - starts[at]});
}

// Attention of sequence b of a ragged pass, which has a number in the whole batch, to itself, or to
// its source.
kernels::AttentionInput<float> input_of_sequence(const kernels::AttentionInput<float>& input,
                                                 std::span<const std::int64_t> query_starts,
                                                 std::span<const std::int64_t> key_starts,
                                                 std::int64_t b, std::int64_t number) {
  kernels::AttentionInput<float> own = input;
  own.query = rows_of(input.query, query_starts, b);
  own.key = rows_of(input.key, key_starts, b);
  own.value = rows_of(input.value, key_starts, b);
  own.positions = own.query.extent(1);
  own.dropout = of_sequence(input.dropout, number);
  return own;
}

std::span<const std::int64_t> key_starts(const Pass& pass, AttentionKind kind) {
  return kind == AttentionKind::self ? pass.row_starts : pass.memory->row_starts;
}

}  // namespace

kernels::AttentionInput<float> attention_input(const LayerPass& at, AttentionKind kind,
                                               const Heads<const float>& heads) {
  const bool is_self = kind == AttentionKind::self;
  const AttentionSpecification& attention = is_self ? at.attention() : at.cross_attention();
  const LinearWeights& query = is_self ? at.parameters.query_key_value : at.parameters.cross_query;
  return {.query = heads.query,
          .key = heads.key,
          .value = heads.value,
          .mask = attention.mask_kind(),
          .scale = attention.score_scale(),
          .dropout = at.pass.dropout.at(
              is_self ? DropoutPoint::pattern : DropoutPoint::cross_pattern, at.layer,
              at.stack.attention_dropout, at.stack.heads() * at.pass.sequence_positions()),
          .precision = attention_precision(query, at.pass.sequence_positions()),
          .window = attention.window(at.layer),
          .soft_cap = attention.soft_cap,
          .positions = at.pass.sequence_positions(),
          .position_bias = is_self ? at.position_bias : kernels::PositionBias<float>{}};
}

void store(const LayerPass& at, const Heads<const float>& heads) {
  const Pass& pass = at.pass;
  if (pass.cache != nullptr) pass.cache->store(at.layer, heads.key, heads.value);
  // One thread per sequence.
  parallel_items(std::ssize(pass.caches), [&](std::int64_t b) {
    pass.caches[static_cast<std::size_t>(b)]->store(at.layer, heads.key.slice(0, b, b + 1),
                                                    heads.value.slice(0, b, b + 1));
  });
}

void attend(const LayerPass& at, const kernels::AttentionInput<float>& input, View<float> mixed,
            View<float> log_sum_exp) {
  if (at.pass.ring != nullptr) return attend_around_ring(at, input, mixed, log_sum_exp);
  if (at.pass.is_ragged()) {
    return attend_rows(at, AttentionKind::self, input, mixed, log_sum_exp);
  }
  if (at.pass.caches.empty()) return attend_once(at, at.pass, input, mixed, log_sum_exp);
  // Sequences of different lengths, each with its own cache; one thread per sequence.
  parallel_items(at.pass.batch, [&](std::int64_t b) {
    const auto of_one = [b](const auto& view) { return view.slice(0, b, b + 1); };
    kernels::AttentionInput<float> own = input;
    own.query = of_one(input.query);
    own.key = of_one(input.key);
    own.value = of_one(input.value);
    attend_once(at, pass_of_sequence(at.pass, b), own, of_one(mixed), of_one(log_sum_exp));
  });
}

void attend_across(const LayerPass& at, const kernels::AttentionInput<float>& input,
                   View<float> mixed, View<float> log_sum_exp) {
  const Pass& pass = at.pass;
  if (pass.is_ragged()) return attend_rows(at, AttentionKind::cross, input, mixed, log_sum_exp);
  const CrossMemory& memory = *pass.memory;
  // Sequences of one source stand side by side: [begins[run], begins[run + 1]).
  std::vector<std::int64_t> begins;
  for (std::int64_t b = 0; b < pass.batch; ++b) {
    if (b == 0 || memory.source(b) != memory.source(b - 1)) begins.push_back(b);
  }
  begins.push_back(pass.batch);
  parallel_items(std::ssize(begins) - 1, [&](std::int64_t run) {
    const std::int64_t first = begins[static_cast<std::size_t>(run)];
    const std::int64_t last = begins[static_cast<std::size_t>(run) + 1];
    const std::size_t source = memory.source(first);
    Operands operands{.input = input};
    operands.input.query = input.query.slice(0, first, last);
    if (memory.caches.empty()) {
      const auto index = static_cast<std::int64_t>(source);
      operands.input.key = rows_of(input.key, memory.row_starts, index);
      operands.input.value = rows_of(input.value, memory.row_starts, index);
    } else {
      operands.read(*memory.caches[source], at.layer, memory.caches[source]->length());
    }
    if (last - first > 1) operands.broadcast(last - first);
    Pass own = pass;
    own.first_sequence = pass.first_sequence + first;
    attend_to(at, own, cross_attention_points, operands, mixed.slice(0, first, last),
              log_sum_exp.slice(0, first, last));
  });
}

void attend_rows(const LayerPass& at, AttentionKind kind,
                 const kernels::AttentionInput<float>& input, View<float> mixed,
                 View<float> log_sum_exp) {
  const Pass& pass = at.pass;
  const auto queries = pass.row_starts, keys = key_starts(pass, kind);
  const std::int64_t first = pass.dropout.first_sequence;
  parallel_items(pass.batch, [&](std::int64_t b) {
    kernels::attention_forward(input_of_sequence(input, queries, keys, b, first + b),
                               rows_of(mixed, queries, b),
                               log_sums_of(log_sum_exp, input.query.extent(2), queries, b));
  });
}

void attend_rows_backward(const LayerPass& at, AttentionKind kind,
                          const kernels::AttentionInput<float>& input, View<const float> mixed,
                          View<const float> log_sum_exp, View<const float> d_mixed,
                          const kernels::AttentionGradients<float>& gradients) {
  const Pass& pass = at.pass;
  const auto queries = pass.row_starts, keys = key_starts(pass, kind);
  const std::int64_t first = pass.dropout.first_sequence;
  const auto backward = [&](std::int64_t b) {
    kernels::attention_backward(
        input_of_sequence(input, queries, keys, b, first + b), rows_of(mixed, queries, b),
        log_sums_of(log_sum_exp, input.query.extent(2), queries, b), rows_of(d_mixed, queries, b),
        {.query = rows_of(gradients.query, queries, b),
         .key = rows_of(gradients.key, keys, b),
         .value = rows_of(gradients.value, keys, b),
         .position_bias = gradients.position_bias});
  };
  if (!gradients.position_bias.present()) return parallel_items(pass.batch, backward);
  for (std::int64_t b = 0; b < pass.batch; ++b) backward(b);  // all add to one table
}

View<const float> unedited_mixed_values(const LayerPass& at, AttentionKind kind,
                                        const kernels::AttentionInput<float>& input,
                                        View<const float> mixed_values, Tensor<float>& again) {
  const PointKind point =
      kind == AttentionKind::self ? PointKind::mixed_values : PointKind::cross_mixed_values;
  if (!at.pass.edits(at.pass.point(point, at.layer))) return mixed_values;
  again = Tensor<float>(mixed_values.shape());
  const Shape& heads = input.query.shape();  // (B, T, H, D)
  Tensor<float> log_sum_exp(Shape{heads[0], heads[2], heads[1]});
  const View<float> mixed = again.view().reshape(heads);
  if (at.pass.is_ragged()) {
    attend_rows(at, kind, input, mixed, log_sum_exp);
  } else {
    kernels::attention_forward(input, mixed, log_sum_exp);
  }
  return again;
}

}  // namespace heed
