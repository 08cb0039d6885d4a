// Attention of a pass to its own keys and values, or to those in caches.
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/attention_sequences.h"
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

using kernels::SequenceAttention;

// Sequences [begin, end) of a pass that one call of the kernel takes: of one length, and of one
// memory.
struct SequenceGroup {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t count() const { return end - begin; }
};

// The rows of sequences in views of all rows of a pass: (B, T, …), or (1, N, …) where lengths
// differ.
template <class T>
View<T> rows_of(const Sequences& sequences, const SequenceGroup& group, View<T> rows) {
  if (!sequences.is_ragged()) return rows.slice(0, group.begin, group.end);
  return rows.slice(1, sequences[group.begin].row_begin, sequences[group.end - 1].row_end);
}

// The same of log-sum-exps, (B, H, T), or N·H numbers, sequence by sequence.
template <class T>
View<T> log_sums_of(const Sequences& sequences, const SequenceGroup& group, View<T> log_sum_exp) {
  if (!sequences.is_ragged()) return log_sum_exp.slice(0, group.begin, group.end);
  const Sequence one = sequences[group.begin];
  const std::int64_t heads = log_sum_exp.size() / sequences.rows();
  return log_sum_exp.reshape({log_sum_exp.size()})
      .slice(0, one.row_begin * heads, one.row_end * heads)
      .reshape({1, heads, one.length()});
}

// A list that takes no memory while it has one element: training attends so in every layer.
template <class T>
class ShortList {
 public:
  void reserve(std::size_t count) {
    if (count > 1) more_.reserve(count);
  }
  void push_back(T element) {
    if (!first_ && more_.empty()) {
      first_ = std::move(element);
      return;
    }
    if (first_) more_.push_back(std::move(*first_));
    first_.reset();
    more_.push_back(std::move(element));
  }
  std::span<const T> all() const {
    return first_ ? std::span<const T>(&*first_, 1) : std::span<const T>(more_);
  }

 private:
  std::optional<T> first_;
  std::vector<T> more_;
};

// What the sequences of a pass attend to, and which of them attend together.
class AttendedMemory {
 public:
  AttendedMemory(const LayerPass& at, AttentionKind kind)
      : pass_(at.pass), layer_(at.layer), is_self_(kind == AttentionKind::self) {
    const Sequences& sequences = pass_.sequences;
    if (!sequences.attend_together()) {
      groups_.reserve(static_cast<std::size_t>(sequences.count()));
    }
    for (std::int64_t begin = 0, end = 0; begin < sequences.count(); begin = end) {
      end = is_self_ && sequences.attend_together() ? sequences.count() : begin + 1;
      while (end < sequences.count() && shares_source_with_previous(end)) ++end;
      groups_.push_back({begin, end});
    }
  }

  std::span<const SequenceGroup> groups() const { return groups_.all(); }

  // Keys or values of what a group attends to, in a view of those of all rows.
  template <class T>
  View<T> own_rows(const SequenceGroup& group, View<T> all) const {
    return is_self_ ? rows_of(pass_.sequences, group, all)
                    : all.slice(1, source(group).row_begin, source(group).row_end);
  }

  // `input` for a group.
  SequenceAttention attention(const SequenceGroup& group,
                              const kernels::AttentionInput<float>& input) const {
    SequenceAttention own{.input = input};
    own.input.query = rows_of(pass_.sequences, group, input.query);
    if (pass_.sequences.is_ragged()) {
      own.input.positions = own.input.query.extent(1);
      own.input.dropout = of_sequence(input.dropout, pass_.dropout.first_sequence + group.begin);
    }
    const Sequence memory = is_self_ ? pass_.sequences[group.begin] : source(group);
    if (memory.cache == nullptr) {
      own.input.key = own_rows(group, input.key);
      own.input.value = own_rows(group, input.value);
    } else {
      read(*memory.cache, memory.first_position + memory.length(), own);
    }
    if (!is_self_ && group.count() > 1) broadcast(group.count(), own);
    return own;
  }

 private:
  Sequence source(const SequenceGroup& group) const {
    return pass_.memory->texts[pass_.memory->source(group.begin)];
  }

  bool shares_source_with_previous(std::int64_t b) const {
    return !is_self_ && !pass_.sequences.is_ragged() &&
           pass_.memory->source(b) == pass_.memory->source(b - 1);
  }

  // The first `positions` of a cache.
  void read(const KeyValueCache& cache, std::int64_t positions, SequenceAttention& own) const {
    if (cache.type() == CacheType::f32) {
      own.input.key = cache.keys(layer_, positions);
      own.input.value = cache.values(layer_, positions);
    } else {
      own.quantised_key = cache.quantised_keys(layer_, positions);
      own.quantised_value = cache.quantised_values(layer_, positions);
    }
  }

  // One source for `batch` sequences: a dimension of stride 0.
  static void broadcast(std::int64_t batch, SequenceAttention& own) {
    const auto repeat = [batch](auto& view) { view = repeated(view, batch); };
    if (!own.is_quantised()) {
      repeat(own.input.key);
      return repeat(own.input.value);
    }
    for (kernels::ConstQuantisedRows* rows : {&own.quantised_key, &own.quantised_value}) {
      repeat(rows->rows);
      if (rows->scales.present()) repeat(rows->scales);
    }
  }

  const Pass& pass_;
  std::int64_t layer_;
  bool is_self_;
  ShortList<SequenceGroup> groups_;
};

// The parts of a pass, as one call of the kernel takes them.
ShortList<SequenceAttention> attention_of(const LayerPass& at, const AttendedMemory& memory,
                                          const kernels::AttentionInput<float>& input,
                                          View<float> mixed, View<float> log_sum_exp) {
  ShortList<SequenceAttention> sequences;
  sequences.reserve(memory.groups().size());
  for (const SequenceGroup& group : memory.groups()) {
    SequenceAttention own = memory.attention(group, input);
    own.out = rows_of(at.pass.sequences, group, mixed);
    own.log_sum_exp = log_sums_of(at.pass.sequences, group, log_sum_exp);
    sequences.push_back(std::move(own));
  }
  return sequences;
}

// The input of a group with the dequantised rows of its cache, as attention read them.
struct Restored {
  Tensor<float> keys;
  Tensor<float> values;
  kernels::AttentionInput<float> input;

  explicit Restored(const SequenceAttention& sequence) : input(sequence.input) {
    const Shape& rows = sequence.quantised_key.rows.shape();
    const Shape shape{rows[0], rows[1], rows[2], input.query.extent(3)};
    const Device device = sequence.quantised_key.rows.device();
    keys = Tensor<float>(shape, device);
    values = Tensor<float>(shape, device);
    kernels::dequantise_rows(sequence.quantised_key, keys);
    kernels::dequantise_rows(sequence.quantised_value, values);
    input.key = keys;
    input.value = values;
    input.precision = kernels::Precision::f32;
  }
};

const AttentionPoints& points_of(AttentionKind kind) {
  return kind == AttentionKind::self ? self_attention_points : cross_attention_points;
}

// Edits what the groups attended to and, where they are the whole pass or texts of their own, shows
// it: others have no common shape.
void visit_attention(const LayerPass& at, AttentionKind kind, const AttendedMemory& memory,
                     std::span<const SequenceAttention> sequences) {
  const AttentionPoints& points = points_of(kind);
  const bool is_shown = sequences.size() == 1 || at.pass.sequences.is_ragged();
  std::vector<Restored> restored;
  std::vector<Attended> attended;
  restored.reserve(sequences.size());
  attended.reserve(sequences.size());
  for (std::size_t group = 0; group < sequences.size(); ++group) {
    const SequenceAttention& sequence = sequences[group];
    if (sequence.is_quantised()) restored.emplace_back(sequence);
    attended.push_back(
        {sequence.is_quantised() ? restored.back().input : sequence.input, sequence.log_sum_exp});
    Pass pass = at.pass;
    pass.first_sequence += memory.groups()[group].begin;
    edit_attention(pass, at.layer, points, attended.back().input, sequence.log_sum_exp,
                   sequence.out);
    if (is_shown) continue;
    attended.clear();
    restored.clear();
  }
  if (is_shown) observe_attention(at.pass, at.layer, points, attended);
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
          .precision = attention_precision(query, at.pass.arithmetic_length()),
          .window = attention.window(at.layer),
          .soft_cap = attention.soft_cap,
          .positions = at.pass.sequence_positions(),
          .position_bias = is_self ? at.position_bias : kernels::PositionBias<float>{}};
}

void store(const LayerPass& at, const Heads<const float>& heads) {
  const Sequences& sequences = at.pass.sequences;
  if (!sequences.have_caches()) return;
  if (sequences.attend_together()) {
    return sequences[0].cache->store(at.layer, heads.key, heads.value);
  }
  const auto store_one = [&](std::int64_t b) {
    sequences[b].cache->store(at.layer, rows_of(sequences, {b, b + 1}, heads.key),
                              rows_of(sequences, {b, b + 1}, heads.value));
  };
  // An accelerator does what one thread launches in its order, and may record it.
  if (is_on_accelerator(heads.key.data())) {
    for (std::int64_t b = 0; b < sequences.count(); ++b) store_one(b);
  } else {
    parallel_items(sequences.count(), store_one);
  }
}

void attend(const LayerPass& at, AttentionKind kind, const kernels::AttentionInput<float>& input,
            View<float> mixed, View<float> log_sum_exp) {
  if (at.pass.ring != nullptr) return attend_around_ring(at, input, mixed, log_sum_exp);
  const AttendedMemory memory(at, kind);
  const auto list = attention_of(at, memory, input, mixed, log_sum_exp);
  const std::span<const SequenceAttention> sequences = list.all();
  kernels::attention_forward(sequences);
  if (at.pass.probe == nullptr && at.pass.editor == nullptr) return;
  visit_attention(at, kind, memory, sequences);
}

void attend_backward(const LayerPass& at, AttentionKind kind,
                     const kernels::AttentionInput<float>& input, View<const float> mixed,
                     View<const float> log_sum_exp, View<const float> d_mixed,
                     const kernels::AttentionGradients<float>& gradients) {
  const Pass& pass = at.pass;
  if (pass.ring != nullptr) {
    return attend_around_ring_backward(at, input, mixed, log_sum_exp, d_mixed, gradients);
  }
  require(kind == AttentionKind::self || pass.memory->sources.empty(), ErrorCode::unsupported,
          "backward of cross-attention in which sequences share a source: expected one each");
  const AttendedMemory memory(at, kind);
  ShortList<kernels::SequenceAttentionBackward> list;
  list.reserve(memory.groups().size());
  for (const SequenceGroup& group : memory.groups()) {
    list.push_back({.input = memory.attention(group, input).input,
                    .out = rows_of(pass.sequences, group, mixed),
                    .log_sum_exp = log_sums_of(pass.sequences, group, log_sum_exp),
                    .d_out = rows_of(pass.sequences, group, d_mixed),
                    .gradients = {.query = rows_of(pass.sequences, group, gradients.query),
                                  .key = memory.own_rows(group, gradients.key),
                                  .value = memory.own_rows(group, gradients.value),
                                  .position_bias = gradients.position_bias}});
  }
  const std::span<const kernels::SequenceAttentionBackward> sequences = list.all();
  if (sequences.size() == 1 || pass.sequences.is_ragged()) {
    observe_attention_gradients(pass, at.layer, points_of(kind), sequences);
  }
  kernels::attention_backward(sequences);
  if (!pass.frozen.pattern) return;
  // The gradient of values does not depend on those of the scores.
  kernels::fill(gradients.query, 0.0F);
  kernels::fill(gradients.key, 0.0F);
}

View<const float> unedited_mixed_values(const LayerPass& at, AttentionKind kind,
                                        const kernels::AttentionInput<float>& input,
                                        View<const float> mixed_values, Tensor<float>& again) {
  if (!at.pass.edits(at.pass.point(points_of(kind).mixed_values, at.layer))) return mixed_values;
  again = Tensor<float>(mixed_values.shape(), mixed_values.device());
  const Shape& heads = input.query.shape();  // (B, T, H, D)
  Tensor<float> log_sum_exp(Shape{heads[0], heads[2], heads[1]}, again.device());
  const AttendedMemory memory(at, kind);
  kernels::attention_forward(
      attention_of(at, memory, input, again.view().reshape(heads), log_sum_exp).all());
  return again;
}

}  // namespace heed
