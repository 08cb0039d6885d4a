#include "model/stack.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/block.h"
#include "model/cache.h"
#include "model/edited_points.h"
#include "model/input_checks.h"
#include "model/prediction_head.h"
#include "model/stages.h"
#include "model/view_shapes.h"

namespace heed {
namespace {

void require_editable(const StackSpecification& stack, const Pass& pass) {
  const Point logits = pass.point(PointKind::logits, -1);
  require(!pass.edits(logits), ErrorCode::unsupported,
          "{} cannot be edited: edit unembed.hook_in, which the logits are computed from",
          point_name(logits));
  if (stack.key_value_heads() == stack.heads()) return;
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    const Point point = pass.point(PointKind::attention_in, layer);
    require(!pass.edits(point), ErrorCode::unsupported,
            "{} cannot be edited where {} query heads share {} key/value heads: edit hook_q_input, "
            "hook_k_input or hook_v_input",
            point_name(point), stack.heads(), stack.key_value_heads());
  }
}

Shape shape_of_tokens(const Pass& pass) {
  if (pass.sequences.is_ragged()) return {pass.rows()};
  return {pass.sequences.count(), pass.sequences.length()};
}

// Of the text that each row is of: it ends with the pass, unless the pass reads a part of it.
std::vector<std::int64_t> row_text_lengths(const Pass& pass) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(static_cast<std::size_t>(pass.rows()));
  for (const Sequence sequence : pass.sequences) {
    const std::int64_t end = pass.ring != nullptr ? pass.sequence_positions()
                                                  : sequence.first_position + sequence.length();
    lengths.insert(lengths.end(), static_cast<std::size_t>(sequence.length()),
                   std::max(end, pass.text_length));
  }
  return lengths;
}

// What the embedding reads: (B, T), or rows as sequences of one token where lengths differ.
struct EmbeddingRows {
  std::vector<std::int64_t> positions;  // of the first token of each
  TokenRowsRead read_rows;              // of a table that comes in pieces, or is in blocks
  kernels::EmbeddingInput<float> input;

  EmbeddingRows(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass) {
    input = {.tokens = tokens,
             .token_table = stack.parameters.token_embedding,
             .position_table =
                 stack.sinusoids.present() ? stack.sinusoids : stack.parameters.position_embedding,
             .token_scale = stack.specification.embedding_scale};
    const Sequences& sequences = pass.sequences;
    if (sequences.is_ragged()) input.tokens = tokens.reshape({pass.rows(), 1});
    input.first_position = sequences[0].first_position;
    if (sequences.is_ragged()) {
      positions = sequences.row_positions();
    } else if (!sequences.attend_together()) {
      for (const Sequence sequence : sequences) positions.push_back(sequence.first_position);
    }
    input.first_positions = positions;
    if (stack.parameters.schedule.is_divided()) gather(stack);
  }
  EmbeddingRows(const EmbeddingRows&) = delete;
  EmbeddingRows& operator=(const EmbeddingRows&) = delete;

  // Before a forward pass. Backward, which adds to the table by the tokens, does not read it.
  void read(const Stack& stack) {
    if (stack.parameters.token_blocks != nullptr) {
      read_rows.read(*stack.parameters.token_blocks, input);
    }
  }

  View<float> shaped(View<float> rows) const {
    return rows.reshape({input.tokens.extent(0), input.tokens.extent(1), rows.extent(1)});
  }

 private:
  void gather(const Stack& stack) {
    const StackSchedule& schedule = stack.parameters.schedule;
    const View<const float> table = stack.parameters.token_embedding;
    read_rows.read(input, [&](std::span<const std::int32_t> tokens, View<float> rows) {
      for (std::int64_t piece = 0; piece < schedule.pieces(); ++piece) {
        const Reading reading(schedule, schedule.token_embedding(piece));
        const RowRange range = schedule.rows(piece);
        for (std::int64_t row = 0; row < rows.extent(0); ++row) {
          const std::int32_t token = tokens[static_cast<std::size_t>(row)];
          if (token < range.begin || token >= range.end) continue;
          kernels::copy(table[token], rows[row]);
        }
      }
    });
  }
};

// Adds the gradients (N, C) of rows to those of their tokens in a piece of the table.
void add_token_gradients(View<const std::int32_t> tokens, const RowRange& piece, float scale,
                         View<const float> d_rows, View<float> d_table) {
  const std::span<const std::int32_t> words = tokens.span();
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const std::int32_t token = words[static_cast<std::size_t>(row)];
    if (token < piece.begin || token >= piece.end) continue;
    kernels::accumulate(d_rows[row], d_table[token], scale);
  }
}

// Of the text that a row is of.
std::int64_t token_type(const Pass& pass, std::int64_t row) {
  return pass.token_types.empty() ? 0 : pass.token_types[static_cast<std::size_t>(row)];
}

void require_token_types(const StackSpecification& stack, const Pass& pass) {
  if (pass.token_types.empty()) return;
  require(std::ssize(pass.token_types) == pass.rows(), ErrorCode::invalid_argument,
          "{} token types for {} tokens: expected one each", pass.token_types.size(), pass.rows());
  for (const std::int32_t type : pass.token_types) {
    require(type >= 0 && type < stack.token_types, ErrorCode::invalid_argument,
            "token type {} is outside the model's {}", type, stack.token_types);
  }
}

void add_token_types(const Stack& stack, const Pass& pass, View<float> rows) {
  const View<const float> table = stack.parameters.token_type_embedding;
  if (!table.present()) return;
  for (std::int64_t row = 0; row < rows.extent(0); ++row) {
    kernels::accumulate(table[token_type(pass, row)], rows[row]);
  }
}

void add_token_type_gradients(const Pass& pass, View<float> table, View<const float> d_rows) {
  if (!table.present()) return;
  for (std::int64_t row = 0; row < d_rows.extent(0); ++row) {
    kernels::accumulate(d_rows[row], table[token_type(pass, row)]);
  }
}

void scale_rows(View<float> rows, float scale) {
  if (scale != 1.0F) kernels::scale(rows, scale);
}

void drop_embedding(const Stack& stack, const Pass& pass, View<float> rows) {
  pass.drop(DropoutPoint::embedding, -1, stack.specification.embedding_dropout, rows, rows);
}

void embed(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass,
           const StackActivations& activations) {
  const StackSchedule& schedule = stack.parameters.schedule;
  const Reading before(schedule, schedule.before());
  const Reading table(schedule,
                      schedule.is_divided() ? schedule.before() : schedule.token_embedding());
  EmbeddingRows embedding(stack, tokens, pass);
  embedding.read(stack);
  const View<float> sum = activations.embedding_sum();
  kernels::embedding_forward(embedding.input, embedding.shaped(sum));
  edit_embedding(pass, embedding.input, embedding.shaped(sum));
  add_token_types(stack, pass, sum);
  observe_embedding(pass, embedding.input);
  if (stack.specification.embedding_norm) {
    normalise(stack.specification, sum, stack.parameters.embedding_norm,
              activations.embedding_norm_saved(), activations.embedding());
  }
  drop_embedding(stack, pass, activations.embedding());
}

void embed_backward(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass,
                    const StackActivations& activations, const ActivationGradients& buffers,
                    const StackGradients* gradients) {
  View<float> d_rows = buffers.residual;
  drop_embedding(stack, pass, d_rows);
  if (gradients != nullptr) {
    const StackSchedule& schedule = gradients->schedule;
    schedule.will_add(schedule.before());
    if (!schedule.is_divided()) schedule.will_add(schedule.token_embedding());
  }
  if (stack.specification.embedding_norm) {
    const Reading norm(stack.parameters.schedule, stack.parameters.schedule.before());
    kernels::fill(buffers.norm, 0.0F);
    normalise_backward(stack.specification, pass.frozen, stack.parameters.embedding_norm,
                       activations.embedding_norm_saved(),
                       {.x = activations.embedding_sum(), .d_out = d_rows, .d_x = buffers.norm},
                       gradients != nullptr ? gradients->embedding_norm : NormWeightGradients{});
    d_rows = buffers.norm;
  }
  pass.observe_gradient_rows(PointKind::embedding, -1, d_rows);
  if (stack.specification.has_position_vectors()) {
    pass.observe_gradient_rows(PointKind::position, -1, d_rows);
  }
  if (gradients == nullptr) return;
  const EmbeddingRows embedding(stack, tokens, pass);
  kernels::EmbeddingInput<float> input = embedding.input;
  if (stack.sinusoids.present()) input.position_table = {};
  const StackSchedule& schedule = gradients->schedule;
  kernels::embedding_backward(
      input, embedding.shaped(d_rows),
      {.token_table = schedule.is_divided() ? View<float>() : gradients->token_embedding,
       .position_table = gradients->position_embedding});
  add_token_type_gradients(pass, gradients->token_type_embedding, d_rows);
  // The encoder's table, where two stacks share one, is complete later.
  const GradientState state =
      schedule.embedding_site == schedule.site ? GradientState::complete : GradientState::partial;
  if (!schedule.is_divided() && state == GradientState::partial) {
    schedule.has_added(schedule.token_embedding(), state);
  }
  schedule.has_added(schedule.before(), GradientState::complete);
  for (std::int64_t piece = 0; piece < schedule.pieces(); ++piece) {
    schedule.will_add(schedule.token_embedding(piece));
    add_token_gradients(tokens, schedule.rows(piece), stack.specification.embedding_scale, d_rows,
                        gradients->token_embedding);
    schedule.has_added(schedule.token_embedding(piece), state);
  }
}

// The learned bias of each bucket, as attention reads it: of each distance in a pass.
class DistanceBias {
 public:
  DistanceBias(const Stack& stack, std::int64_t positions) : first_(1 - positions) {
    const RelativePositions& relative = stack.specification.block.attention.relative;
    const View<const float> buckets = stack.parameters.position_bias;  // (buckets, H)
    if (!buckets.present()) return;
    const Reading table(stack.parameters.schedule, stack.parameters.schedule.before());
    const std::int64_t distances = 2 * positions - 1;
    for (std::int64_t i = 0; i < distances; ++i) {
      buckets_.push_back(static_cast<std::int32_t>(relative.bucket(first_ + i)));
    }
    values_ = Tensor<float>(Shape{buckets.extent(1), distances}, buckets.device());
    kernels::gather_rows(buckets, buckets_, transposed(values_.view()));
  }

  kernels::PositionBias<float> view() const {
    if (!values_.present()) return {};
    return {.values = values_, .first = first_};
  }

  // Adds the gradients (H, 2P − 1) of distances to those of their buckets.
  void add_gradient(View<const float> d_values, View<float> d_buckets) const {
    kernels::scatter_add_rows(transposed(d_values), buckets_, d_buckets);
  }

 private:
  std::int64_t first_;                 // distance
  std::vector<std::int32_t> buckets_;  // (2P − 1)
  Tensor<float> values_;               // (H, 2P − 1)
};

// The end of the stack: the final norm, its scale, the prediction head.
void end_forward(const Stack& stack, const Pass& pass, const StackActivations& activations) {
  const StackSpecification& specification = stack.specification;
  const Reading after_blocks(stack.parameters.schedule, stack.parameters.schedule.after());
  if (specification.final_norm) {
    norm_forward(
        specification, pass, -1, final_norm_points, activations.last_residual(),
        {stack.parameters.final_norm, activations.final_norm_saved(), activations.final_norm()});
    scale_rows(activations.final_norm(), specification.logit_scale);
  }
  if (specification.prediction_head) prediction_forward(stack, pass, activations);
  if (!specification.has_unembedding) return;
  pass.visit_rows(PointKind::unembedding_in, -1, activations.unembedding_in());
  if (!pass.wants(PointKind::logits, -1)) return;
  const UnembeddingReading unembedding(stack.parameters.schedule);
  observe_logits(pass, stack.parameters.unembedding, activations.unembedding_in());
}

// From buffers.norm, the gradient of what the unembedding reads, to buffers.residual, that of the
// end of the stream.
void end_backward(const Stack& stack, const Pass& pass, const StackActivations& activations,
                  const ActivationGradients& buffers, const StackGradients* gradients) {
  const StackSpecification& specification = stack.specification;
  const Reading after_blocks(stack.parameters.schedule, stack.parameters.schedule.after());
  if (specification.has_unembedding) {
    pass.visit_gradient_rows(PointKind::unembedding_in, -1, buffers.norm);
  }
  if (specification.prediction_head)
    prediction_backward(stack, pass, activations, buffers, gradients);
  if (!specification.final_norm) {
    kernels::copy(buffers.norm, buffers.residual);
    return;
  }
  scale_rows(buffers.norm, specification.logit_scale);
  kernels::fill(buffers.residual, 0.0F);
  norm_backward(
      specification, pass, -1, final_norm_points,
      {activations.last_residual(), activations.final_norm_saved(), stack.parameters.final_norm,
       buffers.norm},
      {buffers.residual, gradients != nullptr ? gradients->final_norm : NormWeightGradients{}});
}

}  // namespace

Tensor<float> sinusoid_table(const StackSpecification& stack) {
  if (stack.block.attention.positions != PositionKind::sinusoidal) return {};
  const std::int64_t channels = stack.channels, pairs = (channels + 1) / 2;
  Tensor<float> table(Shape{stack.context, channels});
  const View<float> rows = table;
  if (stack.block.attention.sinusoids == SinusoidOrder::halves) {
    kernels::sinusoids(rows.slice(1, 0, pairs), rows.slice(1, pairs, channels));
  } else {
    kernels::sinusoids(every_second_column(rows, 0), every_second_column(rows, 1));
  }
  return table;
}

RotaryRows rotary_rows(const StackSpecification& stack, const Pass& pass, Device device) {
  const AttentionSpecification& attention = stack.block.attention;
  if (attention.positions != PositionKind::rotary) return {};
  return {attention, pass.sequences.row_positions(),
          turns_by_length(attention) ? row_text_lengths(pass) : std::vector<std::int64_t>(), device,
          pass.repetitions};
}

void stack_forward(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass,
                   const StackActivations& activations) {
  const StackSpecification& specification = stack.specification;
  require_shape(tokens, shape_of_tokens(pass), "tokens");
  require_shape(activations.final_norm(), {pass.rows(), specification.channels}, "activations");
  require_positions_fit(specification, pass.sequences.positions_end());
  if (pass.editor != nullptr) pass.editor->begin_pass(pass.site, pass.sequences);
  if (pass.probe != nullptr) pass.probe->begin_pass(pass.site, pass.sequences);
  for (const Sequence sequence : pass.sequences) {
    check(sequence.cache == nullptr || sequence.cache->length() == sequence.first_position,
          "a sequence goes on at the length of its cache");
  }
  check(
      pass.ring == nullptr || (pass.editor == nullptr && !pass.sequences.have_caches() &&
                               !pass.sequences.is_ragged() && !specification.block.cross_attention),
      "sequences of a ring are trained on and evaluated, and no more");
  if (pass.editor != nullptr) require_editable(specification, pass);
  require_token_types(specification, pass);

  const std::int64_t end = pass.layers.end_of(specification.layers);
  check(0 <= pass.layers.begin && pass.layers.begin <= end && end <= specification.layers &&
            pass.layers.begin < specification.layers,
        "a pass is of layers that there are");
  check(pass.layers.begin == 0 || pass.stream.present(), "a later layer reads a given stream");

  // 1. token + position embedding: (B, T) -> (N, C)
  if (pass.stream.present()) {  // and tokens are not read
    const View<float> stream = activations.block(pass.layers.begin).residual_pre;
    if (pass.stream.data() != stream.data()) kernels::copy(pass.stream, stream);
  } else {
    embed(stack, tokens, pass, activations);
  }

  if (pass.layers.begin == end) return;  // of the embedding alone

  // 2. the blocks
  const RotaryRows rotary = rotary_rows(specification, pass, activations.device());
  const DistanceBias bias(stack, pass.sequences.positions_end());
  for (std::int64_t layer = pass.layers.begin; layer < end; ++layer) {
    const Reading block(stack.parameters.schedule, stack.parameters.schedule.block(layer));
    block_forward(stack.layer_pass(layer, pass, rotary, bias.view()), activations.block(layer));
  }
  pass.sequences.advance_caches();

  // 3. the final norm
  if (end == specification.layers) end_forward(stack, pass, activations);
}

View<float> stack_stream(const Pass& pass, const StackActivations& activations) {
  const std::int64_t end = pass.layers.end;
  if (end < 0) return activations.last_residual();
  return end > pass.layers.begin ? activations.block(end - 1).output
                                 : activations.block(end).residual_pre;
}

void unembed(const Stack& stack, View<const float> x, View<float> logits, std::int64_t positions) {
  const StackSchedule& schedule = stack.parameters.schedule;
  if (schedule.is_divided()) {
    return unembed_in_pieces(schedule, x, stack.parameters.unembedding, logits, positions);
  }
  const UnembeddingReading unembedding(schedule);
  kernels::linear_forward(x, stack.parameters.unembedding, logits, positions);
}

LossSum unembedding_loss(const Stack& stack, const UnembeddingLoss& rows, VocabularyLoss& loss,
                         std::int64_t positions) {
  const StackSchedule& schedule = stack.parameters.schedule;
  const LinearWeights& unembedding = stack.parameters.unembedding;
  if (schedule.is_divided()) {
    return loss.forward_in_pieces(schedule, rows.x, unembedding, rows.targets, rows.losses,
                                  positions);
  }
  const UnembeddingReading reading(schedule);
  return loss.forward(rows.x, unembedding, rows.targets, rows.losses, positions);
}

LossSum unembedding_loss(const Stack& stack, const StackGradients& gradients,
                         const UnembeddingLoss& rows, VocabularyLoss& loss) {
  const StackSchedule& schedule = gradients.schedule;
  const LinearWeights& unembedding = stack.parameters.unembedding;
  const VocabularyLoss::Backward backward{.scale = rows.scale,
                                          .d_x = rows.d_x,
                                          .d_unembedding = gradients.unembedding.weight,
                                          .d_bias = gradients.unembedding.bias};
  // What follows the blocks is complete after the final norm.
  schedule.will_add(schedule.after());
  if (schedule.is_divided()) {
    return loss.forward_backward_in_pieces(schedule, rows.x, unembedding, rows.targets, rows.losses,
                                           backward);
  }
  const UnembeddingReading reading(stack.parameters.schedule);
  if (schedule.tied_unembedding) schedule.will_add(schedule.unembedding());
  const LossSum sum =
      loss.forward_backward(rows.x, unembedding, rows.targets, rows.losses, backward);
  if (schedule.tied_unembedding) {
    schedule.has_added(schedule.unembedding(), GradientState::partial);
  }
  return sum;
}

void stack_backward(const Stack& stack, View<const std::int32_t> tokens, const Pass& pass,
                    const StackActivations& activations, const ActivationGradients& buffers,
                    const StackGradients* gradients, View<float> d_memory) {
  const StackSpecification& specification = stack.specification;
  require(activations.keep() == Keep::every_block || activations.keep() == Keep::residuals,
          ErrorCode::invalid_argument,
          "backward needs activations that keep every block or the residual stream");
  require_shape(tokens, shape_of_tokens(pass), "tokens");
  require_shape(activations.final_norm(), {pass.rows(), specification.channels}, "activations");
  require_shape(buffers.norm, {pass.rows(), specification.channels}, "activation gradients");
  const DistanceBias bias(stack, pass.sequences.positions_end());
  Tensor<float> d_bias;
  if (gradients != nullptr && bias.view().present()) {
    d_bias = Tensor<float>(bias.view().values.shape(), activations.device());
  }
  const auto of_block = [&](std::int64_t layer) {
    if (gradients == nullptr) return BlockGradients{};
    BlockGradients block = gradients->blocks[static_cast<std::size_t>(layer)];
    if (d_bias.present()) block.position_bias = d_bias;
    return block;
  };

  const std::int64_t end = pass.layers.end_of(specification.layers);

  // 3. the final norm, whose input is the end of the residual stream
  if (gradients != nullptr) gradients->schedule.will_add(gradients->schedule.after());
  if (end == specification.layers) {
    end_backward(stack, pass, activations, buffers, gradients);
  } else {
    kernels::copy(buffers.norm, buffers.residual);
  }
  if (gradients != nullptr) {
    gradients->schedule.has_added(gradients->schedule.after(), GradientState::complete);
  }

  // 2. the blocks
  Pass unobserved = pass;
  unobserved.probe = nullptr;
  const RotaryRows rotary = rotary_rows(specification, pass, activations.device());
  for (std::int64_t layer = end - 1; layer >= pass.layers.begin; --layer) {
    const Reading block(stack.parameters.schedule, stack.parameters.schedule.block(layer));
    if (gradients != nullptr) gradients->schedule.will_add(gradients->schedule.block(layer));
    if (activations.keep() == Keep::residuals && layer + 1 < end) {
      block_forward(stack.layer_pass(layer, unobserved, rotary, bias.view()),
                    activations.block(layer));
    }
    block_backward(stack.layer_pass(layer, pass, rotary, bias.view()), of_block(layer),
                   activations.block(layer), buffers, d_memory);
    if (gradients != nullptr) {
      gradients->schedule.has_added(gradients->schedule.block(layer), GradientState::complete);
    }
  }
  if (d_bias.present()) {
    gradients->schedule.will_add(gradients->schedule.before());
    bias.add_gradient(d_bias, gradients->position_bias);
  }

  // 1. the embeddings
  if (pass.stream.present()) return;
  embed_backward(stack, tokens, pass, activations, buffers, gradients);
}

}  // namespace heed
