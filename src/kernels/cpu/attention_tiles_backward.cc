// Attention backward with AMX. As in forward, scores are transposed: keys along rows, queries
// along lanes. The memory is processed in pieces, whose packed keys and values and
// gradients stay in the second-level cache; for each piece all queries are processed block by
// block.
#include <hwy/highway.h>

#include "kernels/cpu/attention_tiles.h"

#if HWY_ARCH_X86_64

#include <cstring>
#include <numbers>

#include "kernels/cpu/attention_tile_softmax.h"
#include "kernels/cpu/rounding.h"
#include "kernels/cpu/scratch.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
namespace {

constexpr std::int64_t square = square_side * square_side;

// Queries and keys whose weights are in memory at a time.
constexpr std::int64_t queries_at_once = 128;
constexpr std::int64_t keys_at_once = 128;
constexpr std::int64_t query_squares = queries_at_once / square_side;

// Per-query values of a group.
struct GroupScores {
  float factor;          // from products to scores in powers of two
  float product_factor;  // from d_out·valueᵀ to the gradient of weights, times scale
  float keep_scale;
  __m512 log_sum_exp[2];  // in powers of two
  __m512 inner[2];        // scale · Σ out·d_out
  const SquareDropout* dropout;
};

// The weights that forward mixed values with, and the gradients of scores, of a square.
struct SquareWords {
  Word* weights;           // left operand (keys, queries)
  Word* gradients;         // the same
  Word* paired_gradients;  // right operand (keys, queries)
  std::int64_t row_tiles;  // words from keys 0–15 to 16–31 in left operands
};

enum class Visibility { whole, cut };

template <Visibility visibility>
HEED_INLINE void differentiate_square(const float* scores, const float* products,
                                      const SquarePlace& place, std::int64_t key,
                                      const GroupScores& group, const SquareWords& to) {
  struct Element {
    __m512 weight, gradient;
  };
  const __m512 factor = _mm512_set1_ps(group.factor);
  const __m512 product_factor = _mm512_set1_ps(group.product_factor);
  const auto differentiate = [&](std::int64_t row, std::int64_t half) {
    const std::int64_t at = row * square_side + half * 16;
    __m512 weight =
        exp2_clamped(_mm512_fmsub_ps(_mm512_load_ps(scores + at), factor, group.log_sum_exp[half]));
    __m512 product = _mm512_load_ps(products + at), kept = weight;
    __m512 gradient;
    if (group.dropout != nullptr) {
      const __mmask16 keeps = group.dropout->kept(half, key + row);
      product = _mm512_maskz_mov_ps(keeps, product);
      kept = _mm512_maskz_mul_ps(keeps, weight, _mm512_set1_ps(group.keep_scale));
    }
    gradient = _mm512_mul_ps(weight, _mm512_fmsub_ps(product, product_factor, group.inner[half]));
    if constexpr (visibility == Visibility::cut) {
      const __mmask16 seen = place.visible(row, half);
      kept = _mm512_maskz_mov_ps(seen, kept);
      gradient = _mm512_maskz_mov_ps(seen, gradient);
    }
    return Element{kept, gradient};
  };
  for (std::int64_t pair = 0; pair < 16; ++pair) {
    Element elements[2][2];  // [row][half]
#pragma GCC unroll 2
    for (std::int64_t i = 0; i < 2; ++i) {
#pragma GCC unroll 2
      for (std::int64_t half = 0; half < 2; ++half) {
        elements[i][half] = differentiate(2 * pair + i, half);
      }
      const std::int64_t row = 2 * pair + i;
      const std::int64_t at = row / 16 * to.row_tiles + row % 16 * tile_side;
      _mm512_store_si512(to.weights + at,
                         neighbour_words(elements[i][0].weight, elements[i][1].weight));
      _mm512_store_si512(to.gradients + at,
                         neighbour_words(elements[i][0].gradient, elements[i][1].gradient));
    }
#pragma GCC unroll 2
    for (std::int64_t half = 0; half < 2; ++half) {
      _mm512_store_si512(to.paired_gradients + half * tile_words + pair * tile_side,
                         paired_words(elements[0][half].gradient, elements[1][half].gradient));
    }
  }
}

// to (32, 32) += left·right over `steps` of 32.
HEED_INLINE void add_product(const TileOperand& left, const TileOperand& right, std::int64_t steps,
                             float* to, std::int64_t stride) {
  finish_stores();
  _tile_loadd(0, to, stride * 4);
  _tile_loadd(1, to + 16, stride * 4);
  _tile_loadd(2, to + 16 * stride, stride * 4);
  _tile_loadd(3, to + 16 * stride + 16, stride * 4);
  add_square(left, right, steps);
  store_square(to, stride);
}

float dot(const float* x, const float* y, std::int64_t size) {
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < size; k += 16) {
    const __mmask16 mask = first_lanes(size - k);
    sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, x + k), _mm512_maskz_loadu_ps(mask, y + k),
                          sum);
  }
  return _mm512_reduce_add_ps(sum);
}

class Backward {
  using Left = PackedMatrix<TileForm::left>;
  using LeftTransposed = PackedMatrix<TileForm::left_transposed>;
  using Right = PackedMatrix<TileForm::right>;
  using RightTransposed = PackedMatrix<TileForm::right_transposed>;

 public:
  explicit Backward(const BackwardGroup& group)
      : group_(group),
        head_(group.head(0)),
        gradients_(group.gradients(0)),
        depth_(round_up(head_.head_size, square_side)) {
    const std::int64_t piece =
        std::min(tile_memory_piece(head_.head_size), round_up(head_.memory, square_side));
    const std::int64_t memory = Left::size(piece, depth_);
    const std::int64_t queries = Left::size(queries_at_once, depth_);
    const std::int64_t weights = queries_at_once * keys_at_once / 2;
    const std::int64_t block = queries_at_once * depth_;
    float* next =
        scratch(Scratch::item,
                static_cast<std::size_t>(3 * memory + 2 * piece * depth_ + 4 * queries +
                                         3 * weights + block + 2 * square + 2 * queries_at_once));
    const auto take = [&](std::int64_t count) {
      float* const taken = next;
      next += count;
      return taken;
    };
    const auto words = [&](std::int64_t count) { return reinterpret_cast<Word*>(take(count)); };
    key_ = Left(words(memory), piece, depth_);
    key_transposed_ = LeftTransposed(words(memory), piece, depth_);
    value_ = Left(words(memory), piece, depth_);
    d_key_ = take(piece * depth_);
    d_value_ = take(piece * depth_);
    query_transposed_ = RightTransposed(words(queries), queries_at_once, depth_);
    query_ = Right(words(queries), queries_at_once, depth_);
    d_out_transposed_ = RightTransposed(words(queries), queries_at_once, depth_);
    d_out_ = Right(words(queries), queries_at_once, depth_);
    weights_ = words(weights);
    score_gradients_ = words(weights);
    paired_gradients_ = words(weights);
    d_query_ = take(block);
    scores_ = take(square);
    products_ = take(square);
    log_sum_exp_ = take(queries_at_once);
    inner_ = take(queries_at_once);
  }

  // The memory [begin, begin + count), with all queries of the group that attend to part of it.
  void attend_to_piece(std::int64_t begin, std::int64_t count) {
    const std::int64_t size = head_.head_size;
    const Rows<const float> key{head_.key[begin], head_.key.stride};
    key_.pack(key, 0, count, size);
    key_transposed_.pack(key, 0, count, size);
    value_.pack({head_.value[begin], head_.value.stride}, 0, count, size);
    const auto rows = static_cast<std::size_t>(round_up(count, square_side) * depth_);
    std::fill_n(d_key_, rows, 0.0F);
    std::fill_n(d_value_, rows, 0.0F);
    const std::int64_t blind = std::max<std::int64_t>(begin - head_.visible, 0);
    for (std::int64_t k = 0; k < group_.heads; ++k) {
      head_ = group_.head(k);
      gradients_ = group_.gradients(k);
      for (std::int64_t query = blind / queries_at_once * queries_at_once; query < head_.queries;
           query += queries_at_once) {
        attend_from_block(query, begin, count);
      }
    }
    for (std::int64_t s = 0; s < count; ++s) {
      std::copy_n(d_key_ + s * depth_, size, gradients_.key[begin + s]);
      std::copy_n(d_value_ + s * depth_, size, gradients_.value[begin + s]);
    }
  }

 private:
  void pack_queries(std::int64_t begin, std::int64_t count) {
    const std::int64_t size = head_.head_size;
    const Rows<const float> query{head_.query[begin], head_.query.stride};
    const Rows<const float> d_out{gradients_.d_out[begin], gradients_.d_out.stride};
    query_.pack(query, 0, count, size);
    query_transposed_.pack(query, 0, count, size);
    d_out_.pack(d_out, 0, count, size);
    d_out_transposed_.pack(d_out, 0, count, size);
    for (std::int64_t t = 0; t < queries_at_once; ++t) {
      const bool inside = t < count;
      log_sum_exp_[t] =
          inside ? gradients_.log_sum_exp[begin + t] * std::numbers::log2e_v<float> : 0.0F;
      inner_[t] = inside ? head_.scale * dot(gradients_.out[begin + t], d_out[t], size) : 0.0F;
    }
  }

  void attend_from_block(std::int64_t query, std::int64_t begin, std::int64_t count) {
    const std::int64_t queries = std::min(queries_at_once, head_.queries - query);
    pack_queries(query, queries);
    std::fill_n(d_query_, queries_at_once * depth_, 0.0F);
    const std::int64_t end = std::min(visible_end(head_, query + queries) - begin, count);
    for (std::int64_t key = 0; key < end; key += keys_at_once) {
      const std::int64_t keys = std::min(keys_at_once, end - key);
      differentiate(query, queries, begin, key, keys);
      mix(query, queries, begin, key, keys);
    }
    add_query_gradient(query, queries);
  }

  // Whether keys from `key` on are masked for a square of the block of queries.
  bool blind(std::int64_t query, std::int64_t key) const {
    return place_square(head_, query, key).empty();
  }

  // 1: scores = scale · query·keyᵀ, as forward had them; 4: out = dropout(pattern)·value, towards
  // the pattern; 3 and 2: pattern = softmax(scores), dropped.
  void differentiate(std::int64_t query, std::int64_t queries, std::int64_t begin, std::int64_t key,
                     std::int64_t keys) {
    const float keep_scale = 1.0F / (1.0F - head_.dropout.rate);
    for (std::int64_t q = 0; q * square_side < queries; ++q) {
      const std::int64_t first = query + q * square_side;
      const SquareDropout dropout(head_, first);
      const auto load = [&](const float* from) { return _mm512_load_ps(from + q * square_side); };
      const GroupScores group{.factor = head_.scale * std::numbers::log2e_v<float>,
                              .product_factor = head_.scale * keep_scale,
                              .keep_scale = keep_scale,
                              .log_sum_exp = {load(log_sum_exp_), load(log_sum_exp_ + 16)},
                              .inner = {load(inner_), load(inner_ + 16)},
                              .dropout = head_.dropout.rate > 0.0F ? &dropout : nullptr};
      for (std::int64_t k = 0; k * square_side < keys; ++k) {
        const std::int64_t row = key + k * square_side;
        const SquarePlace place = place_square(head_, first, begin + row);
        if (place.empty()) break;
        const std::int64_t steps = depth_ / square_side;
        multiply_square(key_.operand().at(row / 16, 0), query_transposed_.operand().at(2 * q, 0),
                        steps);
        store_square(scores_, square_side);
        multiply_square(value_.operand().at(row / 16, 0), d_out_transposed_.operand().at(2 * q, 0),
                        steps);
        store_square(products_, square_side);
        const std::int64_t left = (2 * k * query_squares + q) * tile_words;
        const SquareWords to{
            .weights = weights_ + left,
            .gradients = score_gradients_ + left,
            .paired_gradients = paired_gradients_ + (k * query_squares + q) * 2 * tile_words,
            .row_tiles = query_squares * tile_words};
        if (place.cut()) {
          differentiate_square<Visibility::cut>(scores_, products_, place, begin + row, group, to);
        } else {
          differentiate_square<Visibility::whole>(scores_, products_, place, begin + row, group,
                                                  to);
        }
      }
    }
  }

  // 4, towards values; 1, towards keys and queries.
  void mix(std::int64_t query, std::int64_t queries, std::int64_t begin, std::int64_t key,
           std::int64_t keys) {
    const TileOperand weights{weights_, query_squares * tile_words, tile_words};
    const TileOperand gradients{score_gradients_, query_squares * tile_words, tile_words};
    const TileOperand paired{paired_gradients_, tile_words, query_squares * 2 * tile_words};
    const std::int64_t all = round_up(queries, square_side) / square_side;
    for (std::int64_t k = 0; k * square_side < keys; ++k) {
      const std::int64_t row = key + k * square_side;
      std::int64_t q = 0;
      while (q < all && blind(query + q * square_side, begin + row)) ++q;
      if (q == all) continue;
      for (std::int64_t d = 0; d < depth_; d += square_side) {
        add_product(weights.at(2 * k, q), d_out_.operand().at(d / 16, q), all - q,
                    d_value_ + row * depth_ + d, depth_);
        add_product(gradients.at(2 * k, q), query_.operand().at(d / 16, q), all - q,
                    d_key_ + row * depth_ + d, depth_);
      }
    }
    for (std::int64_t q = 0; q < all; ++q) {
      std::int64_t squares = 0;
      while (squares * square_side < keys &&
             !blind(query + q * square_side, begin + key + squares * square_side)) {
        ++squares;
      }
      if (squares == 0) continue;
      for (std::int64_t d = 0; d < depth_; d += square_side) {
        add_product(key_transposed_.operand().at(d / 16, key / square_side), paired.at(2 * q, 0),
                    squares, d_query_ + (q * depth_ + d) * square_side, square_side);
      }
    }
  }

  void add_query_gradient(std::int64_t query, std::int64_t queries) {
    for (std::int64_t t = 0; t < queries; t += 16) {
      const float* const from = d_query_ + t / square_side * depth_ * square_side + t % square_side;
      for (std::int64_t d = 0; d < head_.head_size; d += 16) {
        const TurnedSquare turned(from + d * square_side);
        const __mmask16 mask = first_lanes(head_.head_size - d);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(16, queries - t); ++i) {
          float* const to = gradients_.query[query + t + i] + d;
          _mm512_mask_storeu_ps(to, mask,
                                _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), turned.row(i)));
        }
      }
    }
  }

  const BackwardGroup& group_;
  Head head_;                // the query head at work
  HeadGradients gradients_;  // its own; key and value are the group's
  std::int64_t depth_;       // head size, in whole squares
  // of a piece of the memory
  Left key_;
  LeftTransposed key_transposed_;
  Left value_;
  float* d_key_ = nullptr;    // (keys, depth)
  float* d_value_ = nullptr;  // (keys, depth)
  // of a block of queries
  RightTransposed query_transposed_;
  Right query_;
  RightTransposed d_out_transposed_;
  Right d_out_;
  float* d_query_ = nullptr;      // (squares of queries, depth, 32)
  float* log_sum_exp_ = nullptr;  // in powers of two
  float* inner_ = nullptr;        // scale · Σ out·d_out
  // of both: (keys, queries) in squares
  Word* weights_ = nullptr;
  Word* score_gradients_ = nullptr;
  Word* paired_gradients_ = nullptr;
  float* scores_ = nullptr;    // (32 keys, 32 queries)
  float* products_ = nullptr;  // (32 keys, 32 queries)
};

}  // namespace

// Half of a second-level cache of 2 MiB: three packed operands and two gradients.
std::int64_t tile_memory_piece(std::int64_t head_size) {
  const std::int64_t depth = round_up(head_size, square_side);
  return std::max<std::int64_t>(65536 / depth / keys_at_once, 1) * keys_at_once;
}

void attend_backward_in_tiles(const BackwardGroup& group, std::int64_t part, std::int64_t parts) {
  const TileSession session;
  Backward backward(group);
  const Head head = group.head(0);
  for (std::int64_t k = 0; k < group.heads; ++k) {
    const HeadGradients gradients = group.gradients(k);
    for (std::int64_t t = 0; t < head.queries; ++t) {
      std::fill_n(gradients.query[t], head.head_size, 0.0F);
    }
  }
  const std::int64_t piece = tile_memory_piece(head.head_size);
  for (std::int64_t s = part * piece; s < head.memory; s += parts * piece) {
    backward.attend_to_piece(s, std::min(piece, head.memory - s));
  }
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#endif  // HWY_ARCH_X86_64
