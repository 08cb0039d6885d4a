#include "model/block.h"

#include <algorithm>

#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/attention.h"
#include "model/cross_attention.h"
#include "model/head_points.h"
#include "model/stages.h"

namespace heed {
namespace {

// One of the two or three branches of a block: sum = added_to + branch(branch_input), with a norm
// of what it reads or of the sum.
struct Branch {
  View<float> stream;    // (N, C), before the branch
  View<float> added_to;  // (N, C): the stream, but for the second of two parallel branches
  View<float> sum;       // (N, C)
  const NormWeights& norm_weights;
  const NormSaved& norm_saved;
  View<float> norm;  // (N, C): of the stream, or of the sum
  const NormPoints& norm_points;
  PointKind out_point;
  PointKind sum_point;
  DropoutPoint dropout;
  // Where what the branch gives is normalised:
  View<float> result;  // (N, C): what it gives
  const NormWeights& out_norm_weights;
  const NormSaved& out_norm_saved;
  const NormPoints& out_norm_points;
  // Whether another branch has normalised the stream.
  bool reads_shared_norm = false;
};

Branch attention_branch(const LayerPass& at, const BlockActivations& saved) {
  return {.stream = saved.residual_pre,
          .added_to = saved.residual_pre,
          .sum = saved.residual_mid,
          .norm_weights = at.parameters.norm_1,
          .norm_saved = saved.norm_1_saved,
          .norm = saved.norm_1,
          .norm_points = norm_1_points,
          .out_point = PointKind::attention_out,
          .sum_point = PointKind::residual_mid,
          .dropout = DropoutPoint::attention_out,
          .result = saved.attention_result,
          .out_norm_weights = at.parameters.attention_out_norm,
          .out_norm_saved = saved.attention_out_saved,
          .out_norm_points = attention_out_norm_points};
}

Branch cross_branch(const LayerPass& at, const BlockActivations& saved) {
  const View<float> stream = at.stack.is_post_norm() ? saved.norm_1 : saved.residual_mid;
  return {.stream = stream,
          .added_to = stream,
          .sum = saved.residual_cross,
          .norm_weights = at.parameters.cross_norm,
          .norm_saved = saved.cross_norm_saved,
          .norm = saved.cross_norm,
          .norm_points = cross_norm_points,
          .out_point = PointKind::cross_attention_out,
          .sum_point = PointKind::residual_cross,
          .dropout = DropoutPoint::cross_attention_out,
          .result = saved.branch_out,  // no stack with cross-attention has norms of it
          .out_norm_weights = at.parameters.attention_out_norm,
          .out_norm_saved = saved.attention_out_saved,
          .out_norm_points = attention_out_norm_points};
}

Branch feed_forward_branch(const LayerPass& at, const BlockActivations& saved) {
  const View<float> stream = feed_forward_stream(at.stack, saved);
  return {.stream = stream,
          .added_to = at.stack.is_parallel() ? saved.residual_mid : stream,
          .sum = saved.residual_post,
          .norm_weights = at.parameters.norm_2,
          .norm_saved = saved.norm_2_saved,
          .norm = saved.norm_2,
          .norm_points = at.stack.is_post_norm() ? norm_of_sum_points : norm_2_points,
          .out_point = PointKind::feed_forward_out,
          .sum_point = PointKind::residual_post,
          .dropout = DropoutPoint::feed_forward_out,
          .result = saved.feed_forward_result,
          .out_norm_weights = at.parameters.feed_forward_out_norm,
          .out_norm_saved = saved.feed_forward_out_saved,
          .out_norm_points = feed_forward_out_norm_points,
          .reads_shared_norm = at.stack.shares_norm()};
}

// What the branch reads: the norm of the stream, or the stream.
View<float> branch_input(const LayerPass& at, const Branch& branch) {
  return at.stack.has_input_norms() ? branch.norm : branch.stream;
}

void normalise_branch(const LayerPass& at, const Branch& branch, View<const float> x) {
  norm_forward(at.stack, at.pass, at.layer, branch.norm_points, x,
               {branch.norm_weights, branch.norm_saved, branch.norm});
}

void norm_before(const LayerPass& at, const Branch& branch) {
  at.pass.tick();
  if (!at.stack.has_input_norms() || branch.reads_shared_norm) return;
  normalise_branch(at, branch, branch.stream);
}

// Adds what the branch gave, or its norm, to the stream: `out` (N, C).
void add_and_norm(const LayerPass& at, const Branch& branch, View<float> out) {
  at.pass.tick();
  if (at.stack.has_output_norms()) {
    norm_forward(at.stack, at.pass, at.layer, branch.out_norm_points, branch.result,
                 {branch.out_norm_weights, branch.out_norm_saved, out});
  }
  drop(at, branch.dropout, out);
  at.pass.visit_rows(branch.out_point, at.layer, out);
  kernels::add(branch.added_to, out, branch.sum);
  if (has_point(at.stack, branch.sum_point)) {
    at.pass.visit_rows(branch.sum_point, at.layer, branch.sum);
  }
  if (at.stack.is_post_norm()) normalise_branch(at, branch, branch.sum);
}

void normalise_branch_backward(const LayerPass& at, const Branch& branch, View<const float> x,
                               View<const float> d_out, View<float> d_x,
                               const NormWeightGradients& gradients) {
  norm_backward(at.stack, at.pass, at.layer, branch.norm_points,
                {x, branch.norm_saved, branch.norm_weights, d_out}, {d_x, gradients});
}

// From the gradient of what add_and_norm() left, in buffers.residual, to that of the sum, in its
// place.
void add_and_norm_backward(const LayerPass& at, const Branch& branch,
                           const NormWeightGradients& gradients,
                           const ActivationGradients& buffers) {
  at.pass.tick();
  if (!at.stack.is_post_norm()) return;
  kernels::copy(buffers.residual, buffers.norm);
  kernels::fill(buffers.residual, 0.0F);
  normalise_branch_backward(at, branch, branch.sum, buffers.norm, buffers.residual, gradients);
}

// The gradient of what the branch adds: that of the sum, times the dropout factor. An editor
// changes a copy: the stream's own gradient stays.
View<const float> added_gradient(const LayerPass& at, const Branch& branch,
                                 const ActivationGradients& buffers, View<const float> d_sum) {
  View<const float> d_out = d_sum;
  if (at.pass.edits_gradient(branch.out_point, at.layer)) {
    kernels::copy(d_sum, buffers.branch);
    at.pass.visit_gradient_rows(branch.out_point, at.layer, buffers.branch);
    d_out = buffers.branch;
  } else {
    at.pass.observe_gradient_rows(branch.out_point, at.layer, d_sum);
  }
  const bool drops =
      at.pass.drop(branch.dropout, at.layer, at.stack.residual_dropout, d_out, buffers.branch);
  return drops ? buffers.branch : d_out;
}

// The gradient of what the branch gave, before its norm, if it has one. It is then in buffers.norm,
// where the branch's backward leaves the gradient of what it read once it needs this one no more.
View<const float> out_gradient(const LayerPass& at, const Branch& branch,
                               const NormWeightGradients& gradients,
                               const ActivationGradients& buffers, View<const float> d_sum) {
  const View<const float> d_added = added_gradient(at, branch, buffers, d_sum);
  if (!at.stack.has_output_norms()) return d_added;
  kernels::fill(buffers.norm, 0.0F);
  norm_backward(at.stack, at.pass, at.layer, branch.out_norm_points,
                {branch.result, branch.out_norm_saved, branch.out_norm_weights, d_added},
                {buffers.norm, gradients});
  return buffers.norm;
}

// Adds to buffers.residual the gradient of the stream through the branch, whose gradient of what it
// read is in buffers.norm.
void norm_before_backward(const LayerPass& at, const Branch& branch,
                          const NormWeightGradients& gradients,
                          const ActivationGradients& buffers) {
  at.pass.tick();
  if (!at.stack.has_input_norms())
    return kernels::add(buffers.residual, buffers.norm, buffers.residual);
  if (branch.reads_shared_norm) return kernels::copy(buffers.norm, buffers.shared_norm);
  if (at.stack.shares_norm()) kernels::add(buffers.norm, buffers.shared_norm, buffers.norm);
  normalise_branch_backward(at, branch, branch.stream, buffers.norm, buffers.residual, gradients);
}

void visit_sum_gradient(const LayerPass& at, const Branch& branch, View<float> d_sum) {
  if (!has_point(at.stack, branch.sum_point)) return;
  at.pass.visit_gradient_rows(branch.sum_point, at.layer, d_sum);
}

}  // namespace

void block_forward(const LayerPass& at, const BlockActivations& saved) {
  // 1. residual_mid = residual_pre + attention(residual_pre), with a norm before or after
  const Branch attention = attention_branch(at, saved);
  at.pass.visit_rows(PointKind::residual_pre, at.layer, saved.residual_pre);
  observe_head_inputs(at, saved.residual_pre);
  norm_before(at, attention);
  self_attention_forward(at, saved);
  add_and_norm(at, attention, saved.branch_out);

  // 2. residual_cross = the stream + attention to an encoder's result
  if (at.stack.block.cross_attention) {
    const Branch cross = cross_branch(at, saved);
    norm_before(at, cross);
    cross_attention_forward(at, saved);
    add_and_norm(at, cross, saved.branch_out);
  }

  // 3. residual_post = the stream + feed_forward(the stream); of residual_pre where the residual is
  //    parallel
  const Branch last = feed_forward_branch(at, saved);
  norm_before(at, last);
  feed_forward(at, branch_input(at, last), saved.feed_forward, saved.feed_forward_result);
  add_and_norm(at, last, saved.branch_out);
  if (at.stack.is_post_norm()) {
    at.pass.visit_rows(PointKind::normalized_residual_post, at.layer, saved.output);
  }
}

void block_backward(const LayerPass& at, const BlockGradients& gradients,
                    const BlockActivations& saved, const ActivationGradients& buffers,
                    View<float> d_memory) {
  // 3. residual_post
  const Branch last = feed_forward_branch(at, saved);
  if (at.stack.is_post_norm()) {
    at.pass.visit_gradient_rows(PointKind::normalized_residual_post, at.layer, buffers.residual);
  }
  add_and_norm_backward(at, last, gradients.norm_2, buffers);
  visit_sum_gradient(at, last, buffers.residual);
  View<float> d_mid = buffers.residual;
  if (at.stack.is_parallel()) {  // where feed-forward does not read residual_mid
    kernels::copy(buffers.residual, buffers.residual_mid);
    d_mid = buffers.residual_mid;
  }
  feed_forward_backward(
      at, saved.feed_forward, gradients,
      {.x = branch_input(at, last),
       .d_out = out_gradient(at, last, gradients.feed_forward_out_norm, buffers, buffers.residual),
       .d_neurons = buffers.neurons,
       .d_linear = buffers.linear,
       .d_x = buffers.norm});
  norm_before_backward(at, last, gradients.norm_2, buffers);

  // 2. residual_cross
  if (at.stack.block.cross_attention) {
    const Branch cross = cross_branch(at, saved);
    add_and_norm_backward(at, cross, gradients.cross_norm, buffers);
    visit_sum_gradient(at, cross, buffers.residual);
    cross_attention_backward(at, gradients, saved.cross, buffers,
                             {.x = branch_input(at, cross),
                              .d_out = out_gradient(at, cross, {}, buffers, buffers.residual),
                              .d_x = buffers.norm,
                              .d_memory = d_memory});
    norm_before_backward(at, cross, gradients.cross_norm, buffers);
  }

  // 1. residual_mid
  const Branch attention = attention_branch(at, saved);
  add_and_norm_backward(at, attention, gradients.norm_1, buffers);
  visit_sum_gradient(at, attention, d_mid);
  self_attention_backward(
      at, gradients, saved.attention, buffers,
      {.x = branch_input(at, attention),
       .d_out = out_gradient(at, attention, gradients.attention_out_norm, buffers, d_mid),
       .d_x = buffers.norm});
  if (backward_is_by_head(at)) {
    head_inputs_backward(at, gradients, saved, buffers);
  } else {
    observe_head_input_gradients(at, saved, buffers.query_key_value);
    norm_before_backward(at, attention, gradients.norm_1, buffers);
  }
  at.pass.visit_gradient_rows(PointKind::residual_pre, at.layer, buffers.residual);
}

}  // namespace heed
