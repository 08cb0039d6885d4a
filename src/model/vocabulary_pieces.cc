// The loss over a vocabulary whose unembedding comes in pieces. The first pass over the pieces adds
// up the sums that losses are computed from; backward passes over them once more, the other way
// round, as the last piece is still there. Logits that fit in a chunk stay between the two; others
// are computed again.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

using Unembedding = VocabularyLoss::Unembedding;

Unembedding piece_of(const Unembedding& unembedding, const RowRange& rows) {
  check(unembedding.prepared == nullptr && unembedding.packed == nullptr,
        "parameters that come in pieces are as they are");
  return {.weight = unembedding.weight.slice(0, rows.begin, rows.end),
          .bias = unembedding.bias.present() ? unembedding.bias.slice(0, rows.begin, rows.end)
                                             : View<const float>(),
          .precision = unembedding.precision,
          .soft_cap = unembedding.soft_cap};
}

View<float> rows_of(View<float> table, const RowRange& rows) {
  return table.present() ? table.slice(0, rows.begin, rows.end) : View<float>();
}

}  // namespace

// What is known of all rows after the first pass.
struct VocabularyLoss::PieceSums {
  Tensor<float> normaliser, target_logit, logit_sum;  // (N); the last only for smoothed labels

  PieceSums(std::int64_t rows, bool smoothed) : normaliser(Shape{rows}), target_logit(Shape{rows}) {
    kernels::fill(normaliser, -std::numeric_limits<float>::infinity());
    if (smoothed) logit_sum = Tensor<float>(Shape{rows});
  }

  kernels::VocabularySums<float> slice(std::int64_t begin, std::int64_t end) {
    const auto of = [&](Tensor<float>& all) { return all.view().slice(0, begin, end); };
    return {.normaliser = of(normaliser),
            .target_logit = of(target_logit),
            .logit_sum = logit_sum.present() ? of(logit_sum) : View<float>()};
  }
};

// Where the logits of the pieces have room, those of `rows` rows at a time.
class VocabularyLoss::PieceRoom {
 public:
  PieceRoom(VocabularyLoss& loss, const StackSchedule& schedule, std::int64_t rows, Device device)
      : loss_(loss), rows_(rows), keeps_all_(loss.reserve(rows, device) >= rows) {
    const std::int64_t widest = std::min(schedule.piece_rows, schedule.vocabulary);
    const std::int64_t room = loss.logits_.size();
    most_ = keeps_all_ ? rows : std::clamp<std::int64_t>(room / widest, 1, rows);
  }

  bool keeps_all() const { return keeps_all_; }

  // Calls body(begin, end, logits (end − begin, W)) for ranges of all rows.
  template <class Body>
  void for_each_chunk(const RowRange& words, Body&& body) {
    const std::int64_t width = words.end - words.begin;
    const std::int64_t first = keeps_all_ ? rows_ * words.begin : 0;
    const View<float> room = loss_.logits_.view().reshape({loss_.logits_.size()});
    for (std::int64_t begin = 0; begin < rows_; begin += most_) {
      require(!stop_requested(loss_.stop_), ErrorCode::interrupted,
              "stopped while computing a loss");
      const std::int64_t end = std::min(begin + most_, rows_);
      const View<float> logits = room.slice(0, first, first + (end - begin) * width);
      body(begin, end, logits.reshape({end - begin, width}));
    }
  }

 private:
  VocabularyLoss& loss_;
  std::int64_t rows_;
  bool keeps_all_;
  std::int64_t most_ = 0;  // rows of a chunk
};

void VocabularyLoss::add_pieces(const StackSchedule& schedule, View<const float> x,
                                const Unembedding& unembedding, View<const std::int32_t> targets,
                                std::int64_t positions, PieceRoom& room, PieceSums& sums) {
  const std::int64_t length = positions > 0 ? positions : x.extent(0);
  for (std::int64_t i = 0; i < schedule.pieces(); ++i) {
    const Reading reading(schedule, schedule.unembedding(i));
    const RowRange words = schedule.rows(i);
    const Unembedding piece = piece_of(unembedding, words);
    room.for_each_chunk(words, [&](std::int64_t begin, std::int64_t end, View<float> logits) {
      kernels::linear_forward(x.slice(0, begin, end), piece, logits, length);
      kernels::cross_entropy_piece_forward(logits, {words.begin, vocabulary_size_},
                                           targets.slice(0, begin, end), sums.slice(begin, end));
    });
  }
}

LossSum VocabularyLoss::sum_of_rows(PieceSums& sums, View<const std::int32_t> targets,
                                    View<float> losses) const {
  const std::int64_t rows = targets.extent(0);
  const View<float> of_rows = losses.slice(0, 0, rows);
  Tensor<float> smoothed;
  if (label_smoothing_ > 0.0F) smoothed = Tensor<float>(of_rows.shape());
  kernels::LabelSmoothing<float> smoothing{.rate = label_smoothing_};
  if (smoothed.present()) smoothing.losses = smoothed;
  kernels::cross_entropy_piece_losses(sums.slice(0, rows), vocabulary_size_, targets, of_rows,
                                      smoothing);
  LossSum total;
  total.add(of_rows, smoothed.present() ? smoothed.view() : of_rows, targets);
  return total;
}

LossSum VocabularyLoss::forward_in_pieces(const StackSchedule& schedule, View<const float> x,
                                          const Unembedding& unembedding,
                                          View<const std::int32_t> targets, View<float> losses,
                                          std::int64_t positions) {
  const Reading after_blocks(schedule, schedule.after());
  PieceSums sums(x.extent(0), label_smoothing_ > 0.0F);
  PieceRoom room(*this, schedule, x.extent(0), x.device());
  add_pieces(schedule, x, unembedding, targets, positions, room, sums);
  return sum_of_rows(sums, targets, losses);
}

LossSum VocabularyLoss::forward_backward_in_pieces(const StackSchedule& schedule,
                                                   View<const float> x,
                                                   const Unembedding& unembedding,
                                                   View<const std::int32_t> targets,
                                                   View<float> losses, const Backward& backward) {
  const std::int64_t rows = x.extent(0);
  const Reading after_blocks(schedule, schedule.after());
  PieceSums sums(rows, label_smoothing_ > 0.0F);
  PieceRoom room(*this, schedule, rows, x.device());
  // 1. logits = x · unembeddingᵀ + bias, 2. the loss
  add_pieces(schedule, x, unembedding, targets, 0, room, sums);
  const LossSum total = sum_of_rows(sums, targets, losses);

  Tensor<float> d_x_of_piece(backward.d_x.shape());
  kernels::fill(backward.d_x, 0.0F);
  const GradientState state =
      schedule.tied_unembedding ? GradientState::partial : GradientState::complete;
  for (std::int64_t i = schedule.pieces() - 1; i >= 0; --i) {
    const ParameterPart part = schedule.unembedding(i);
    const Reading reading(schedule, part);
    schedule.will_add(part);
    const RowRange words = schedule.rows(i);
    const Unembedding piece = piece_of(unembedding, words);
    room.for_each_chunk(words, [&](std::int64_t begin, std::int64_t end, View<float> logits) {
      const View<const float> chunk_x = x.slice(0, begin, end);
      if (!room.keeps_all()) kernels::linear_forward(chunk_x, piece, logits);
      Tensor<float> capped;
      if (piece.soft_cap > 0) {
        capped = Tensor<float>(logits.shape());
        kernels::copy(logits, capped);
      }
      // 2. backward
      kernels::cross_entropy_piece_backward(
          logits, {words.begin, vocabulary_size_}, targets.slice(0, begin, end),
          sums.normaliser.view().slice(0, begin, end), backward.scale, label_smoothing_);
      // 1. backward
      if (capped.present()) kernels::soft_cap_backward(capped, piece.soft_cap, logits, logits);
      const View<float> d_x = backward.d_x.slice(0, begin, end);
      const View<float> added = d_x_of_piece.view().slice(0, begin, end);
      kernels::linear_backward_input(piece.weight, logits, added, unembedding.precision);
      kernels::add(d_x, added, d_x);
      kernels::linear_backward_parameters(chunk_x, logits,
                                          {.weight = rows_of(backward.d_unembedding, words),
                                           .bias = rows_of(backward.d_bias, words)},
                                          unembedding.precision);
    });
    schedule.has_added(part, state);
  }
  return total;
}

void unembed_in_pieces(const StackSchedule& schedule, View<const float> x,
                       const Unembedding& unembedding, View<float> logits, std::int64_t positions) {
  const Reading after_blocks(schedule, schedule.after());
  for (std::int64_t i = 0; i < schedule.pieces(); ++i) {
    const Reading reading(schedule, schedule.unembedding(i));
    const RowRange words = schedule.rows(i);
    Tensor<float> piece(Shape{x.extent(0), words.end - words.begin});
    kernels::linear_forward(x, piece_of(unembedding, words), piece, positions);
    kernels::copy(piece, logits.slice(1, words.begin, words.end));
  }
}

}  // namespace heed
