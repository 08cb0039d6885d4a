// Attention forward with AMX. Scores are computed transposed, keys along rows and queries along
// lanes, so that softmax runs along columns and its weights are already words of pairs of keys;
// out, also transposed, is Σ valueᵀ·weights.
//
// Keys and values are packed a block at a time, and every group of queries of the span attends to
// the block while it is in the second-level cache: working memory does not depend on the context.
#include <hwy/highway.h>

#include "kernels/cpu/attention_tiles.h"

#if HWY_ARCH_X86_64

#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/cpu/attention_tile_softmax.h"
#include "kernels/cpu/rounding.h"
#include "kernels/cpu/scratch.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
namespace {

// Keys processed by a group before its results are merged.
constexpr std::int64_t memory_block = 256;
constexpr std::int64_t squares = memory_block / square_side;

// State of a group of queries. Scores are in units of log 2; `reference` is an integer near their
// maximum, so that sums are rescaled without rounding.
struct GroupState {
  __m512 reference[2];
  __m512 sum[2];
};

// The state of a softmax over one block, in registers.
struct BlockSoftmax {
  __m512 sum[2] = {};
  __m512 most[2] = {};  // of scores above the reference
};

// Per-query values of a group.
struct GroupScores {
  float factor;  // from products to scores in powers of two
  __m512 reference[2];
  SquareDropout dropout{};
};

enum class Visibility { whole, cut };
enum class Dropping { none, some };

// Turns `scores` into the weights 2^(scores − reference), packed as `to`.
template <Visibility visibility, Dropping dropping>
HEED_INLINE void weigh_square(const float* scores, const SquarePlace& place, std::int64_t key,
                              const GroupScores& group, BlockSoftmax& softmax, Word* to) {
  const __m512 factor = _mm512_set1_ps(group.factor);
  const auto weigh = [&](std::int64_t row, std::int64_t half) {
    __m512 score = _mm512_load_ps(scores + row * square_side + half * 16);
    score = _mm512_fmsub_ps(score, factor, group.reference[half]);
    __m512 weight;
    if constexpr (visibility == Visibility::cut) {
      const __mmask16 seen = place.visible(row, half);
      softmax.most[half] = _mm512_mask_max_ps(softmax.most[half], seen, softmax.most[half], score);
      weight = _mm512_maskz_mov_ps(seen, exp2_clamped(score));
    } else {
      softmax.most[half] = _mm512_max_ps(softmax.most[half], score);
      weight = exp2_clamped(score);
    }
    softmax.sum[half] = _mm512_add_ps(softmax.sum[half], weight);
    if constexpr (dropping == Dropping::some) {
      weight = _mm512_maskz_mov_ps(group.dropout.kept(half, key + row), weight);
    }
    return weight;
  };
#pragma GCC unroll 2
  for (std::int64_t pair = 0; pair < 16; ++pair) {
#pragma GCC unroll 2
    for (std::int64_t half = 0; half < 2; ++half) {
      const __m512 even = weigh(2 * pair, half), odd = weigh(2 * pair + 1, half);
      _mm512_store_si512(to + half * tile_words + pair * tile_side, paired_words(even, odd));
    }
  }
}

// A whole number not below the largest visible score of the first square.
void begin_reference(const float* scores, const SquarePlace& place, float factor,
                     __m512 (&reference)[2]) {
  for (std::int64_t half = 0; half < 2; ++half) {
    __m512 most = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
    for (std::int64_t row = 0; row < square_side; ++row) {
      const __m512 score = _mm512_mul_ps(_mm512_load_ps(scores + row * square_side + half * 16),
                                         _mm512_set1_ps(factor));
      most = _mm512_mask_max_ps(most, place.visible(row, half), most, score);
    }
    reference[half] = _mm512_roundscale_ps(most, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  }
}

template <Dropping dropping>
class Span {
 public:
  Span(const Head& head, std::int64_t begin, std::int64_t end)
      : head_(head),
        begin_(begin),
        queries_(end - begin),
        depth_(round_up(head.head_size, square_side)),
        groups_(round_up(end - begin, query_group) / query_group) {
    const std::int64_t rows = groups_ * query_group;
    const std::int64_t block = std::min(memory_block, round_up(head.memory, square_side));
    using Query = PackedMatrix<TileForm::right_transposed>;
    using Key = PackedMatrix<TileForm::left>;
    using Value = PackedMatrix<TileForm::left_transposed>;
    const std::int64_t weights = memory_block * square_side / 2;
    const std::int64_t states = groups_ * static_cast<std::int64_t>(sizeof(GroupState)) / 4;
    float* next =
        scratch(Scratch::item,
                static_cast<std::size_t>(Query::size(rows, depth_) + 2 * Key::size(block, depth_) +
                                         weights + rows * depth_ + states + 2 * square));
    const auto take = [&](std::int64_t count) {
      float* const taken = next;
      next += count;
      return taken;
    };
    query_ = {reinterpret_cast<Word*>(take(Query::size(rows, depth_))), rows, depth_};
    key_ = {reinterpret_cast<Word*>(take(Key::size(block, depth_))), block, depth_};
    value_ = {reinterpret_cast<Word*>(take(Value::size(block, depth_))), block, depth_};
    weights_ = reinterpret_cast<Word*>(take(weights));
    mixed_ = take(rows * depth_);
    states_ = reinterpret_cast<GroupState*>(take(states));
    scores_ = take(square);
    sums_ = take(square);
  }

  void attend() {
    query_.pack({head_.query[begin_], head_.query.stride}, 0, queries_, head_.head_size);
    const std::int64_t last = visible_end(head_, begin_ + queries_);
    for (std::int64_t key = 0; key < last; key += memory_block) {
      const std::int64_t count = std::min(memory_block, last - key);
      key_.pack({head_.key[key], head_.key.stride}, 0, count, head_.head_size);
      value_.pack({head_.value[key], head_.value.stride}, 0, count, head_.head_size);
      for (std::int64_t group = 0; group < groups_; ++group) {
        const std::int64_t query = begin_ + group * query_group;
        if (!place_square(head_, query, key).empty()) attend_to_block(group, key);
      }
    }
  }

  void finish(Rows<float> out, float* log_sum_exp) const {
    const float kept = 1.0F - head_.dropout.rate;
    for (std::int64_t group = 0; group < groups_; ++group) {
      const GroupState& state = states_[group];
      const std::int64_t first = group * query_group;
      const std::int64_t count = std::min(query_group, queries_ - first);
      alignas(64) float reference[query_group], sum[query_group];
      for (int half = 0; half < 2; ++half) {
        _mm512_store_ps(reference + half * 16, state.reference[half]);
        _mm512_store_ps(sum + half * 16, state.sum[half]);
      }
      for (std::int64_t t = 0; t < count; ++t) {
        log_sum_exp[begin_ + first + t] =
            reference[t] * std::numbers::ln2_v<float> + std::log(sum[t]);
      }
      const float* const mixed = mixed_ + group * query_group * depth_;
      for (std::int64_t t = 0; t < count; t += 16) {
        for (std::int64_t d = 0; d < head_.head_size; d += 16) {
          const TurnedSquare turned(mixed + d * square_side + t);
          for (std::int64_t i = 0; i < std::min<std::int64_t>(16, count - t); ++i) {
            const __m512 factor = _mm512_set1_ps(1.0F / (sum[t + i] * kept));
            _mm512_mask_storeu_ps(out[begin_ + first + t + i] + d, first_lanes(head_.head_size - d),
                                  _mm512_mul_ps(turned.row(i), factor));
          }
        }
      }
    }
  }

 private:
  static constexpr std::int64_t square = square_side * square_side;

  void attend_to_block(std::int64_t group, std::int64_t key) {
    GroupState& state = states_[group];
    const std::int64_t query = begin_ + group * query_group;
    const std::int64_t count =
        std::min(squares, (place_keys(query) - key + square_side - 1) / square_side);
    const bool first = key == 0;
    // A reference far below the maximum is raised, and the block is restarted.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const BlockSoftmax softmax = weigh_block(group, key, count, first && attempt == 0);
      __m512 rescale[2];
      bool again = false;
      for (int half = 0; half < 2; ++half) {
        constexpr float furthest = 60.0F;  // largest exponent that sums and weights can represent
        again = again ||
                _mm512_cmp_ps_mask(softmax.most[half], _mm512_set1_ps(furthest), _CMP_GT_OQ) != 0;
        const __m512 rise =
            _mm512_roundscale_ps(softmax.most[half], _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
        rescale[half] =
            _mm512_scalef_ps(_mm512_set1_ps(1.0F), _mm512_sub_ps(_mm512_setzero_ps(), rise));
        state.reference[half] = _mm512_add_ps(state.reference[half], rise);
      }
      if (again && attempt == 0) {
        if (!first) rescale_group(group, rescale);
        continue;
      }
      for (int half = 0; half < 2; ++half) {
        const __m512 sum =
            first ? softmax.sum[half] : _mm512_add_ps(state.sum[half], softmax.sum[half]);
        state.sum[half] = _mm512_mul_ps(sum, rescale[half]);
      }
      mix_values(group, count, rescale, first);
      return;
    }
  }

  // The end of the memory visible to the group of `query`.
  std::int64_t place_keys(std::int64_t query) const {
    return visible_end(head_, std::min(query + query_group, head_.queries));
  }

  BlockSoftmax weigh_block(std::int64_t group, std::int64_t key, std::int64_t count, bool begins) {
    GroupState& state = states_[group];
    const std::int64_t query = begin_ + group * query_group;
    const TileOperand queries = query_.operand().at(2 * group, 0);
    GroupScores scores{.factor = head_.scale * std::numbers::log2e_v<float>,
                       .reference = {state.reference[0], state.reference[1]}};
    if constexpr (dropping == Dropping::some) scores.dropout = SquareDropout(head_, query);
    BlockSoftmax softmax;
    for (std::int64_t index = 0; index < count; ++index) {
      multiply_square(key_.operand().at(2 * index, 0), queries, depth_ / square_side);
      store_square(scores_, square_side);
      const std::int64_t first = key + index * square_side;
      const SquarePlace place = place_square(head_, query, first);
      if (begins && index == 0) {
        begin_reference(scores_, place, scores.factor, scores.reference);
        state.reference[0] = scores.reference[0];
        state.reference[1] = scores.reference[1];
      }
      Word* const to = weights_ + index * 2 * tile_words;
      if (place.cut()) {
        weigh_square<Visibility::cut, dropping>(scores_, place, first, scores, softmax, to);
      } else {
        weigh_square<Visibility::whole, dropping>(scores_, place, first, scores, softmax, to);
      }
    }
    return softmax;
  }

  void mix_values(std::int64_t group, std::int64_t count, const __m512 (&rescale)[2], bool first) {
    const TileOperand weights{weights_, tile_words, 2 * tile_words};
    for (std::int64_t d = 0; d < depth_; d += square_side) {
      float* mixed = mixed_ + (group * depth_ + d) * query_group;
      multiply_square(value_.operand().at(d / 16, 0), weights, count);
      store_square(sums_, square_side);
      for (std::int64_t at = 0; at < square; at += 16) {
        __m512 sum = _mm512_load_ps(sums_ + at);
        if (!first) sum = _mm512_add_ps(sum, _mm512_load_ps(mixed + at));
        _mm512_store_ps(mixed + at, _mm512_mul_ps(sum, rescale[at / 16 % 2]));
      }
    }
  }

  void rescale_group(std::int64_t group, const __m512 (&rescale)[2]) {
    GroupState& state = states_[group];
    for (int half = 0; half < 2; ++half) {
      state.sum[half] = _mm512_mul_ps(state.sum[half], rescale[half]);
    }
    float* const mixed = mixed_ + group * depth_ * query_group;
    for (std::int64_t at = 0; at < depth_ * query_group; at += 16) {
      _mm512_store_ps(mixed + at, _mm512_mul_ps(_mm512_load_ps(mixed + at), rescale[at / 16 % 2]));
    }
  }

  const Head& head_;
  std::int64_t begin_;
  std::int64_t queries_;
  std::int64_t depth_;  // head size, in whole squares
  std::int64_t groups_;
  PackedMatrix<TileForm::right_transposed> query_;
  PackedMatrix<TileForm::left> key_;
  PackedMatrix<TileForm::left_transposed> value_;
  Word* weights_ = nullptr;       // (keys, queries) of a block, as a right operand
  float* mixed_ = nullptr;        // (groups, depth, 32): out, unnormalised and transposed
  GroupState* states_ = nullptr;  // (groups)
  float* scores_ = nullptr;       // (32 keys, 32 queries)
  float* sums_ = nullptr;         // (32 of depth, 32 queries)
};

}  // namespace

void attend_span_in_tiles(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                          float* log_sum_exp) {
  const TileSession session;
  const auto attend = [&](auto span) {
    span.attend();
    span.finish(out, log_sum_exp);
  };
  if (head.dropout.rate > 0.0F) {
    attend(Span<Dropping::some>(head, begin, end));
  } else {
    attend(Span<Dropping::none>(head, begin, end));
  }
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#endif  // HWY_ARCH_X86_64
