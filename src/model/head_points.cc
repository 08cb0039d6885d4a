#include "model/head_points.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "model/block.h"
#include "model/stages.h"
#include "model/view_shapes.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

constexpr std::array input_points = {PointKind::attention_in, PointKind::query_input,
                                     PointKind::key_input, PointKind::value_input};

// The heads that read the stream at a point, and the rows of query_key_value that theirs begin at.
struct ReadingHeads {
  PointKind kind;
  std::int64_t count;
  std::int64_t first_row;
};

std::array<ReadingHeads, 3> projected_inputs(const AttentionSpecification& attention) {
  const std::int64_t a = attention.query_width(), k = attention.key_value_width();
  return {{{PointKind::query_input, attention.query_heads, 0},
           {PointKind::key_input, attention.key_value_heads, a},
           {PointKind::value_input, attention.key_value_heads, a + k}}};
}

// rows (N, C) of every head alike, (B, T, heads, C), without a copy.
View<const float> for_each_head(const Pass& pass, std::int64_t heads, View<const float> rows) {
  const std::int64_t c = rows.extent(1);
  return {rows.data(),
          {pass.view_batch(), pass.view_positions(), heads, c},
          {pass.view_positions() * c, c, 0, 1}};
}

// The gradients of `count` outputs of a projection, from `begin` on.
LinearWeightGradients gradients_of_outputs(const LinearWeightGradients& all, std::int64_t begin,
                                           std::int64_t count) {
  LinearWeightGradients rows;
  if (all.weight.present()) rows.weight = all.weight.slice(0, begin, begin + count);
  if (all.bias.present()) rows.bias = all.bias.slice(0, begin, begin + count);
  return rows;
}

// (N, C) of one head of (B, T, H, C).
View<float> rows_of_head(Tensor<float>& heads, std::int64_t head) {
  const Shape& shape = heads.shape();
  return heads.view()
      .reshape({shape[0] * shape[1], shape[2] * shape[3]})
      .slice(1, head * shape[3], (head + 1) * shape[3]);
}

// The stream (N, C) as the heads of a layer read it at a point.
class HeadInput {
 public:
  HeadInput(const LayerPass& at, const ReadingHeads& heads, View<const float> stream)
      : at_(at), kind_(heads.kind), stream_(stream) {
    if (!edits(PointKind::attention_in) && !edits(kind_)) return;
    edited_ = Tensor<float>(
        Shape{at.pass.view_batch(), at.pass.view_positions(), heads.count, stream.extent(1)});
    for (std::int64_t head = 0; head < heads.count; ++head) {
      kernels::copy(stream, rows_of_head(edited_, head));
    }
    at.pass.edit(at.pass.point(PointKind::attention_in, at.layer), edited_);
    if (kind_ != PointKind::attention_in) at.pass.edit(at.pass.point(kind_, at.layer), edited_);
  }

  bool is_edited(std::int64_t head) const {
    return at_.pass.edits_head(at_.pass.point(PointKind::attention_in, at_.layer), head) ||
           at_.pass.edits_head(at_.pass.point(kind_, at_.layer), head);
  }
  bool is_edited() const { return edited_.present(); }
  const Tensor<float>& edited() const { return edited_; }
  // Whether the head reads another stream than the others.
  bool differs(std::int64_t head) {
    return is_edited(head) && !kernels::equal_bits(rows_of_head(edited_, head), stream_);
  }

  // (N, C), dense
  Tensor<float> rows(std::int64_t head) {
    Tensor<float> rows(stream_.shape());
    kernels::copy(is_edited() ? View<const float>(rows_of_head(edited_, head)) : stream_, rows);
    return rows;
  }

 private:
  bool edits(PointKind kind) const { return at_.pass.edits(at_.pass.point(kind, at_.layer)); }

  const LayerPass& at_;
  PointKind kind_;
  View<const float> stream_;
  Tensor<float> edited_;  // (B, T, heads, C); absent: every head reads the stream
};

// The first norm of a block on one head's own input.
struct HeadNorm {
  Tensor<float> x;    // (N, C)
  Tensor<float> out;  // (N, C)
  Tensor<float> mean;
  Tensor<float> reciprocal_deviation;

  HeadNorm(const LayerPass& at, Tensor<float> head_input)
      : x(std::move(head_input)),
        out(x.shape()),
        mean(Shape{x.shape()[0]}),
        reciprocal_deviation(Shape{x.shape()[0]}),
        is_layer_norm_(at.stack.block.norm.kind == NormKind::layer) {
    if (!at.stack.has_input_norms()) {  // heads read the stream
      kernels::copy(x.view(), out);
      return;
    }
    Pass unobserved = at.pass;
    unobserved.probe = nullptr;
    norm_forward(at.stack, unobserved, at.layer, norm_1_points, x,
                 {at.parameters.norm_1, saved(), out});
  }
  NormSaved saved() {
    NormSaved views{.reciprocal_deviation = reciprocal_deviation};
    if (is_layer_norm_) views.mean = mean;
    return views;
  }

 private:
  bool is_layer_norm_;
};

// Backward of one of the three projections, head by head, each with the norm of its own input.
// Gradients of parameters accumulate, and so does `d_shared` (N, C), the gradient of the norm that
// heads share whose input is not edited; absent: it is not wanted.
struct HeadBackward {
  View<const float> d_query_key_value;  // (N, A + 2K)
  NormWeightGradients d_norm_weights{};
  LinearWeightGradients d_projection{};
  View<float> d_shared{};
};

// The gradient (B, T, heads, C) of the input.
Tensor<float> input_gradient(const LayerPass& at, const ReadingHeads& heads,
                             const BlockActivations& saved, const HeadBackward& backward) {
  const std::int64_t size = at.stack.head_size();
  const LinearWeights& linear = at.parameters.query_key_value;
  const kernels::MultipliedWeight weight(linear);
  HeadInput input(at, heads, saved.residual_pre);
  Tensor<float> gradient(
      Shape{at.pass.view_batch(), at.pass.view_positions(), heads.count, at.stack.channels});
  Tensor<float> d_head(Shape{at.pass.rows(), size}), d_norm(saved.residual_pre.shape());
  Tensor<float> d_x(saved.residual_pre.shape());
  for (std::int64_t head = 0; head < heads.count; ++head) {
    const std::int64_t begin = heads.first_row + head * size;
    kernels::copy(backward.d_query_key_value.slice(1, begin, begin + size), d_head);
    kernels::linear_backward_input(weight.view().slice(0, begin, begin + size), d_head, d_norm,
                                   linear.precision);
    std::optional<HeadNorm> own;
    if (input.differs(head)) own.emplace(at, input.rows(head));
    const LinearWeightGradients d_projection =
        gradients_of_outputs(backward.d_projection, begin, size);
    if (d_projection.weight.present()) {
      kernels::linear_backward_parameters(own ? own->out.view() : attention_stream(at.stack, saved),
                                          d_head, d_projection, linear.precision);
    }
    if (!own && backward.d_shared.present()) kernels::accumulate(d_norm, backward.d_shared);
    if (!at.stack.has_input_norms()) {
      kernels::copy(d_norm.view(), rows_of_head(gradient, head));
      continue;
    }
    kernels::fill(d_x, 0.0F);  // a norm's backward accumulates
    normalise_backward(at.stack, at.pass.frozen, at.parameters.norm_1,
                       own ? own->saved() : saved.norm_1_saved,
                       {.x = own ? own->x.view() : saved.residual_pre, .d_out = d_norm, .d_x = d_x},
                       backward.d_norm_weights);
    kernels::copy(d_x, rows_of_head(gradient, head));
  }
  return gradient;
}

// Adds the gradient of an input of keys or values to that of attention_in, (B, T, H, C): such a
// head reads the copy of the first query head of its group.
void add_to_group(Tensor<float>& gradient, Tensor<float>& sum) {
  const std::int64_t heads = gradient.shape()[2], group = sum.shape()[2] / heads;
  for (std::int64_t head = 0; head < heads; ++head) {
    kernels::accumulate(rows_of_head(gradient, head), rows_of_head(sum, head * group));
  }
}

// (B, T, H, C), before edits.
Tensor<float> head_results(const LayerPass& at, View<const float> mixed) {
  return results_of_heads(at.stack, at.parameters.projection, mixed, at.pass.view_positions(),
                          at.pass.arithmetic_length());
}

}  // namespace

Tensor<float> results_of_heads(const StackSpecification& stack, const LinearWeights& projection,
                               View<const float> mixed, std::int64_t positions,
                               std::int64_t arithmetic_length) {
  const std::int64_t rows = mixed.extent(0), size = stack.head_size();
  const kernels::MultipliedWeight weight(projection);
  Tensor<float> results(Shape{rows / positions, positions, stack.heads(), stack.channels});
  Tensor<float> own(Shape{rows, size}), part(Shape{stack.channels, size});
  Tensor<float> added(Shape{rows, stack.channels});
  for (std::int64_t head = 0; head < stack.heads(); ++head) {
    kernels::copy(mixed.slice(1, head * size, (head + 1) * size), own);
    kernels::copy(weight.view().slice(1, head * size, (head + 1) * size), part);
    kernels::linear_forward(own, {.weight = part, .precision = projection.precision}, added,
                            arithmetic_length);
    kernels::copy(added, rows_of_head(results, head));
  }
  return results;
}

void observe_head_inputs(const LayerPass& at, View<const float> stream) {
  const auto observe = [&](const ReadingHeads& heads) {
    if (!at.pass.wants(heads.kind, at.layer)) return;
    const HeadInput input(at, heads, stream);
    at.pass.observe(
        heads.kind, at.layer,
        input.is_edited() ? input.edited().view() : for_each_head(at.pass, heads.count, stream));
  };
  observe({PointKind::attention_in, at.stack.heads(), 0});
  for (const ReadingHeads& heads : projected_inputs(at.attention())) observe(heads);
}

void edit_head_inputs(const LayerPass& at, View<const float> stream, View<float> query_key_value) {
  if (at.pass.editor == nullptr) return;
  const std::int64_t size = at.stack.head_size();
  for (const ReadingHeads& heads : projected_inputs(at.attention())) {
    HeadInput input(at, heads, stream);
    if (!input.is_edited()) continue;
    Tensor<float> projected(Shape{at.pass.rows(), size});
    for (std::int64_t head = 0; head < heads.count; ++head) {
      if (!input.differs(head)) continue;
      const std::int64_t begin = heads.first_row + head * size;
      const HeadNorm norm(at, input.rows(head));
      project_outputs(at.pass, norm.out, at.parameters.query_key_value, begin, projected);
      kernels::copy(projected, query_key_value.slice(1, begin, begin + size));
    }
  }
}

void observe_head_input_gradients(const LayerPass& at, const BlockActivations& saved,
                                  View<const float> d_query_key_value) {
  const Pass& pass = at.pass;
  const bool wants_sum = pass.wants_gradient(PointKind::attention_in, at.layer);
  Tensor<float> sum;  // (B, T, H, C)
  for (const ReadingHeads& heads : projected_inputs(at.attention())) {
    if (!wants_sum && !pass.wants_gradient(heads.kind, at.layer)) continue;
    Tensor<float> gradient =
        input_gradient(at, heads, saved, {.d_query_key_value = d_query_key_value});
    pass.observe_gradient(heads.kind, at.layer, gradient);
    if (!wants_sum) continue;
    if (!sum.present()) {
      sum = std::move(gradient);
      continue;
    }
    add_to_group(gradient, sum);
  }
  if (wants_sum) pass.observe_gradient(PointKind::attention_in, at.layer, sum);
}

bool backward_is_by_head(const LayerPass& at) {
  const Pass& pass = at.pass;
  if (pass.editor == nullptr) return false;
  return std::ranges::any_of(input_points, [&](PointKind kind) {
    return pass.edits(pass.point(kind, at.layer)) || pass.edits_gradient(kind, at.layer);
  });
}

void head_inputs_backward(const LayerPass& at, const BlockGradients& gradients,
                          const BlockActivations& saved, const ActivationGradients& buffers) {
  const Pass& pass = at.pass;
  pass.tick();
  const bool has_norm = at.stack.has_input_norms();
  kernels::fill(buffers.norm, 0.0F);
  HeadBackward backward{.d_query_key_value = buffers.query_key_value,
                        .d_norm_weights = gradients.norm_1,
                        .d_projection = gradients.query_key_value};
  if (has_norm) backward.d_shared = buffers.norm;
  Tensor<float> sum;  // (B, T, H, C)
  for (const ReadingHeads& heads : projected_inputs(at.attention())) {
    Tensor<float> gradient = input_gradient(at, heads, saved, backward);
    pass.visit_gradient(heads.kind, at.layer, gradient);
    if (sum.present()) {
      add_to_group(gradient, sum);
    } else {
      sum = std::move(gradient);
    }
  }
  pass.visit_gradient(PointKind::attention_in, at.layer, sum);
  for (std::int64_t head = 0; head < at.stack.heads(); ++head) {
    kernels::accumulate(rows_of_head(sum, head), buffers.residual);
  }
  if (!has_norm) return;
  if (at.stack.shares_norm()) {
    normalise_backward(
        at.stack, pass.frozen, at.parameters.norm_1, saved.norm_1_saved,
        {.x = saved.residual_pre, .d_out = buffers.shared_norm, .d_x = buffers.residual},
        gradients.norm_1);
    kernels::add(buffers.norm, buffers.shared_norm, buffers.norm);
  }
  observe_norm_gradients(
      at.stack, pass, at.layer, norm_1_points,
      {saved.residual_pre, saved.norm_1_saved, at.parameters.norm_1, buffers.norm});
}

void visit_positioned(const LayerPass& at, const AttentionActivations& saved) {
  if (!at.attention().changes_query_and_key()) return;
  const Pass& pass = at.pass;
  const auto heads = [&](std::int64_t first, std::int64_t count) {
    return heads_of_sequences(saved.positioned, first, count, at.stack.head_size(),
                              pass.view_batch());
  };
  pass.visit(PointKind::rotated_query, at.layer, heads(0, at.stack.heads()));
  pass.visit(PointKind::rotated_key, at.layer,
             heads(at.stack.attention_width(), at.stack.key_value_heads()));
}

void observe_head_results(const LayerPass& at, View<const float> mixed) {
  if (!at.pass.wants(PointKind::head_results, at.layer)) return;
  Tensor<float> results = head_results(at, mixed);
  at.pass.edit(at.pass.point(PointKind::head_results, at.layer), results);
  at.pass.observe(PointKind::head_results, at.layer, results);
}

void edit_head_results(const LayerPass& at, View<const float> mixed, View<float> out) {
  if (!at.pass.edits(at.pass.point(PointKind::head_results, at.layer))) return;
  Tensor<float> before = head_results(at, mixed);
  Tensor<float> after(before.shape());
  kernels::copy(before, after);
  at.pass.edit(at.pass.point(PointKind::head_results, at.layer), after);
  for (std::int64_t head = 0; head < at.stack.heads(); ++head) {
    const View<float> was = rows_of_head(before, head), is = rows_of_head(after, head);
    if (kernels::equal_bits(was, is)) continue;
    kernels::subtract(is, was, is);
    kernels::accumulate(is, out);
  }
}

void observe_head_result_gradients(const LayerPass& at, View<const float> d_out) {
  at.pass.observe_gradient(PointKind::head_results, at.layer,
                           for_each_head(at.pass, at.stack.heads(), d_out));
}

}  // namespace heed
