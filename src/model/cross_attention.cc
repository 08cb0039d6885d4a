#include "model/cross_attention.h"

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/block.h"
#include "model/cache.h"
#include "model/view_shapes.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

// Queries (B, T, H, D) of the pass; keys and values (1, M, G, D) of the memory, absent where caches
// hold them.
template <class T>
Heads<T> cross_heads(const LayerPass& at, View<T> query, View<T> key_value) {
  const AttentionSpecification& cross = at.cross_attention();
  const std::int64_t size = cross.head_size, groups = cross.key_value_heads;
  Heads<T> heads{.query =
                     heads_of_sequences(query, 0, cross.query_heads, size, at.pass.view_batch())};
  if (!key_value.present()) return heads;
  heads.key = heads_of_sequences(key_value, 0, groups, size, 1);
  heads.value = heads_of_sequences(key_value, cross.key_value_width(), groups, size, 1);
  return heads;
}

// Of the rows of the sources: which arithmetic they get, and the positions at which they are
// edited, do not depend on this pass.
Pass memory_pass(const Pass& pass, const CrossMemory& memory) {
  Pass of_memory = pass;
  of_memory.sequences = memory.texts;
  of_memory.length = ragged_positions;
  return of_memory;
}

void project_memory(const LayerPass& at, const CrossMemory& memory, View<float> key_value) {
  project(memory_pass(at.pass, memory), memory.rows, at.parameters.cross_key_value, key_value);
}

template <class T>
View<T> mixed_heads(const LayerPass& at, View<T> mixed) {
  const AttentionSpecification& cross = at.cross_attention();
  return heads_of_sequences(mixed, 0, cross.query_heads, cross.head_size, at.pass.view_batch());
}

}  // namespace

void cross_attention_forward(const LayerPass& at, const BlockActivations& block) {
  const CrossActivations& saved = block.cross;
  const Pass& pass = at.pass;
  check(pass.memory != nullptr, "cross-attention has something to attend to");

  // 1. queries of this sequence: (N, C) -> (N, A); keys and values of the other: (M, C) -> (M, 2K)
  project(pass, cross_stream(at.stack, block), at.parameters.cross_query, saved.query);
  const bool is_cached = pass.memory->texts.have_caches();
  const View<float> key_value = is_cached ? View<float>{} : saved.key_value;
  if (!is_cached) project_memory(at, *pass.memory, key_value);
  const Heads<float> heads = cross_heads(at, saved.query, key_value);
  pass.visit(PointKind::cross_query, at.layer, heads.query);
  if (!is_cached) {
    const Pass of_memory = memory_pass(pass, *pass.memory);
    of_memory.visit(PointKind::cross_key, at.layer, heads.key);
    of_memory.visit(PointKind::cross_value, at.layer, heads.value);
  }

  // 2. softmax(query·keyᵀ·scale)·value, head by head: (B, T, H, D)
  const View<float> mixed = mixed_heads(at, saved.mixed_values);
  attend(at, AttentionKind::cross, attention_input(at, AttentionKind::cross, heads), mixed,
         saved.log_sum_exp);
  pass.visit(PointKind::cross_mixed_values, at.layer, mixed);

  // 3. heads concatenated and projected back to the stream: (N, A) -> (N, C)
  project(pass, saved.mixed_values, at.parameters.cross_output, block.branch_out);
}

void store_memory(const LayerPass& at, const CrossMemory& memory) {
  const AttentionSpecification& cross = at.cross_attention();
  Tensor<float> key_value(Shape{memory.rows.extent(0), 2 * cross.key_value_width()},
                          memory.rows.device());
  project_memory(at, memory, key_value);
  const View<const float> rows = key_value;
  for (const Sequence source : memory.texts) {
    const auto own = rows.slice(0, source.row_begin, source.row_end);
    const auto part = [&](std::int64_t first) {
      return heads_of_sequences(own, first, cross.key_value_heads, cross.head_size, 1);
    };
    source.cache->store(at.layer, part(0), part(cross.key_value_width()));
  }
}

void cross_attention_backward(const LayerPass& at, const BlockGradients& gradients,
                              const CrossActivations& saved, const ActivationGradients& buffers,
                              const CrossAttentionBackward& operands) {
  const Pass& pass = at.pass;
  // 3. out = mixed_values · outputᵀ + bias
  project_backward(at.parameters.cross_output, gradients.cross_output,
                   {.x = saved.mixed_values, .d_out = operands.d_out, .d_x = buffers.mixed_values});

  // 2. mixed_values = softmax(query·keyᵀ·scale)·value
  const Heads<const float> heads = cross_heads(at, saved.query, saved.key_value);
  const auto input = attention_input(at, AttentionKind::cross, heads);
  const Heads<float> d_heads = cross_heads(at, buffers.cross_query, buffers.cross_key_value);
  Tensor<float> unedited;
  const View<const float> mixed = mixed_heads(
      at, unedited_mixed_values(at, AttentionKind::cross, input, saved.mixed_values, unedited));
  const View<float> d_mixed = mixed_heads(at, buffers.mixed_values);
  pass.visit_gradient(PointKind::cross_mixed_values, at.layer, d_mixed);
  const kernels::AttentionGradients<float> d_attended{
      .query = d_heads.query, .key = d_heads.key, .value = d_heads.value};
  attend_backward(at, AttentionKind::cross, input, mixed, saved.log_sum_exp, d_mixed, d_attended);
  pass.visit_gradient(PointKind::cross_query, at.layer, d_heads.query);
  pass.visit_gradient(PointKind::cross_key, at.layer, d_heads.key);
  pass.visit_gradient(PointKind::cross_value, at.layer, d_heads.value);

  // 1. query = x · queryᵀ + bias; key and value = memory · key_valueᵀ + bias
  project_backward(at.parameters.cross_query, gradients.cross_query,
                   {.x = operands.x, .d_out = buffers.cross_query, .d_x = operands.d_x});
  project_backward(
      at.parameters.cross_key_value, gradients.cross_key_value,
      {.x = pass.memory->rows, .d_out = buffers.cross_key_value, .d_x = buffers.memory});
  kernels::add(operands.d_memory, buffers.memory, operands.d_memory);
}

}  // namespace heed
