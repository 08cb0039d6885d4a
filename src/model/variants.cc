#include "model/variants.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/block.h"
#include "model/input_checks.h"
#include "model/view_shapes.h"

namespace heed {
namespace {

View<float> first_rows(View<float> matrix, std::int64_t rows) { return matrix.slice(0, 0, rows); }

// Rows that go through a feed-forward layer together: a multiple of the rows that products take
// together, few enough for their neurons to stay in a cache.
constexpr std::int64_t feed_forward_rows = 288;

// Rows that attend together, of variants that begin at one position.
constexpr std::int64_t attending_rows = 512;

}  // namespace

Variants::Variants(const Transformer& model, const StackActivations& base,
                   std::vector<std::int64_t> firsts)
    : model_(model),
      base_(base),
      positions_(base.positions()),
      pass_{.sequences = {1, base.positions()}},
      firsts_(std::move(firsts)) {
  require_predicts_next(model.specification(), "variants of a text");
  require_stream_of_sums(model.specification(), "variants of a text");
  require(base.batch() == 1 && base.keep() == Keep::every_block, ErrorCode::invalid_argument,
          "variants need the activations of one sequence with every block kept");
  begins_.push_back(0);
  for (const std::int64_t first : firsts_) {
    require(first >= 0 && first < positions_, ErrorCode::invalid_argument,
            "a variant cannot begin at position {} of a sequence of {}", first, positions_);
    begins_.push_back(begins_.back() + positions_ - first);
    for (std::int64_t t = first; t < positions_; ++t) row_positions_.push_back(t);
  }
  const StackSpecification& config = model.specification();
  const AttentionSpecification& attention = config.block.attention;
  const Device device = model.device();
  const std::int64_t n = rows(), c = config.channels, f = config.feed_forward();
  const std::int64_t a = attention.query_width(), k = attention.key_value_width();
  stream_storage_ = Tensor<float>(Shape{n, c}, device);
  stream_ = stream_storage_;
  norm_ = Tensor<float>(Shape{n, c}, device);
  query_key_value_ = Tensor<float>(Shape{n, attention.projected_width()}, device);
  if (attention.changes_query_and_key()) positioned_ = Tensor<float>(Shape{n, a + k}, device);
  if (attention.query_key_norm) {
    const auto norms = [&](std::int64_t heads) { return heads / attention.heads_of_norm(heads); };
    query_deviation_ = Tensor<float>(Shape{n, norms(attention.query_heads)}, device);
    key_deviation_ = Tensor<float>(Shape{n, norms(attention.key_value_heads)}, device);
  }
  mixed_ = Tensor<float>(Shape{n, a}, device);
  branch_out_ = Tensor<float>(Shape{n, c}, device);
  const std::int64_t together = std::min(n, feed_forward_rows);
  neurons_ = Tensor<float>(Shape{together, f}, device);
  if (config.block.feed_forward.gated) linear_ = Tensor<float>(Shape{together, f}, device);
  activated_ = Tensor<float>(Shape{together, f}, device);
  mean_ = Tensor<float>(Shape{n}, device);
  deviation_ = Tensor<float>(Shape{n}, device);
  const std::int64_t variants =
      std::clamp<std::int64_t>(attending_rows / positions_, 1, std::max<std::int64_t>(count(), 1));
  queries_ = Tensor<float>(Shape{variants * positions_, a}, device);
  keys_ = Tensor<float>(Shape{variants * positions_, k}, device);
  values_ = Tensor<float>(Shape{variants * positions_, k}, device);
  attended_ = Tensor<float>(Shape{variants * positions_, a}, device);
  log_sum_exp_ = Tensor<float>(Shape{variants * config.heads() * positions_}, device);
  last_rows_ = Tensor<float>(Shape{count(), c}, device);
  if (config.is_parallel()) last_read_ = Tensor<float>(Shape{count(), c}, device);
}

std::int64_t Variants::bytes_per_row(const StackSpecification& config) {
  const AttentionSpecification& attention = config.block.attention;
  const std::int64_t heads =
      attention.projected_width() + attention.query_width() +
      (attention.changes_query_and_key()
           ? attention.query_width() + attention.key_value_width() + 2 * attention.query_heads
           : 0);
  const std::int64_t floats = 3 * config.channels + heads + 2;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

AttentionActivations Variants::attention_rows(std::int64_t begin, std::int64_t end) {
  const auto part = [&](Tensor<float>& rows) {
    return rows.present() ? rows.view().slice(0, begin, end) : View<float>();
  };
  return {.query_key_value = part(query_key_value_),
          .positioned = part(positioned_),
          .query_deviation = part(query_deviation_),
          .key_deviation = part(key_deviation_)};
}

// As many variants from `begin` on, up to `active`, as begin at its position and attend together.
std::int64_t Variants::attending_end(std::int64_t begin, std::int64_t active) const {
  std::int64_t end = begin + 1;
  while (end < active && first(end) == first(begin) &&
         (end + 1 - begin) * positions_ <= attending_rows) {
    ++end;
  }
  return end;
}

// The queries, keys and values of variants [begin, end) at all positions, (end - begin, T, heads,
// D): before their first position the base's.
Heads<const float> Variants::heads_of_variants(std::int64_t layer, std::int64_t begin,
                                               std::int64_t end) {
  const AttentionSpecification& attention = model_.specification().block.attention;
  const std::int64_t shared = first(begin), variants = end - begin;
  const AttentionActivations rows = attention_rows(rows_of(begin), rows_of(end));
  if (shared == 0) return attention_heads(attention, variants, rows);
  const Heads<const float> own = attention_heads(attention, variants, rows);
  const Heads<const float> base = attention_heads(attention, 1, base_.block(layer).attention);
  const std::int64_t size = attention.head_size;
  const auto gather = [&](const View<const float>& from_base, const View<const float>& from_own,
                          Tensor<float>& to) {
    const View<float> all{to.data(), {variants, positions_, from_own.extent(2), size}};
    kernels::copy(repeated(from_base.slice(1, 0, shared), variants), all.slice(1, 0, shared));
    kernels::copy(from_own, all.slice(1, shared, positions_));
    return View<const float>(all);
  };
  return {gather(base.query, own.query, queries_), gather(base.key, own.key, keys_),
          gather(base.value, own.value, values_)};
}

// mixed ((end - begin)·(T - first_query), A) for the queries of variants [begin, end) from position
// `first_query` on. They are computed from a multiple of query_alignment on, as in the base's pass.
void Variants::attend(std::int64_t layer, std::int64_t begin, std::int64_t end,
                      std::int64_t first_query, View<float> mixed) {
  const AttentionSpecification& attention = model_.specification().block.attention;
  const std::int64_t aligned = first_query / query_alignment * query_alignment;
  const std::int64_t variants = end - begin, queries = positions_ - aligned;
  const std::int64_t size = attention.head_size, width = attention.query_width();
  const bool in_place = aligned == first_query;
  const View<float> attended = in_place ? mixed : first_rows(attended_, variants * queries);
  const Heads<const float> heads = heads_of_variants(layer, begin, end);
  const RotaryRows none;
  Pass pass = pass_;
  pass.sequences = {variants, positions_};
  const LayerPass at = model_.layer_pass(layer, pass, none);
  heed::attend(at, AttentionKind::self,
               attention_input(at, AttentionKind::self,
                               {heads.query.slice(1, aligned, positions_), heads.key, heads.value}),
               View<float>(attended.data(), {variants, queries, width / size, size}),
               View<float>(log_sum_exp_.data(), {variants, attention.query_heads, queries}));
  if (in_place) return;
  const std::int64_t wanted = positions_ - first_query;
  for (std::int64_t variant = 0; variant < variants; ++variant) {
    kernels::copy(attended.slice(0, (variant + 1) * queries - wanted, (variant + 1) * queries),
                  mixed.slice(0, variant * wanted, (variant + 1) * wanted));
  }
}

// mixed of the first variants, each from its first position on, but not from before `first_query`.
void Variants::attend_all(std::int64_t layer, std::int64_t active, std::int64_t first_query,
                          View<float> mixed) {
  std::int64_t row = 0;
  for (std::int64_t begin = 0; begin < active;) {
    const std::int64_t end = attending_end(begin, active);
    const std::int64_t from = std::max(first(begin), first_query);
    const std::int64_t rows = (end - begin) * (positions_ - from);
    attend(layer, begin, end, from, mixed.slice(0, row, row + rows));
    row += rows;
    begin = end;
  }
}

// What a branch reads of rows of the stream: their norm, or they themselves.
void Variants::norm_stream(View<const float> stream, const NormWeights& weights, View<float> out) {
  const StackSpecification& config = model_.specification();
  if (!config.has_input_norms()) return kernels::copy(stream, out);
  const std::int64_t rows = stream.extent(0);
  NormSaved saved{.reciprocal_deviation = first_rows(deviation_, rows)};
  if (config.block.norm.kind == NormKind::layer) saved.mean = first_rows(mean_, rows);
  normalise(config, stream, weights, saved, out);
}

void Variants::add_feed_forward(std::int64_t layer, View<const float> read, View<float> stream) {
  const RotaryRows none;
  const LayerPass at = layer_pass(layer, none);
  for (std::int64_t begin = 0; begin < stream.extent(0); begin += feed_forward_rows) {
    const std::int64_t end = std::min(begin + feed_forward_rows, stream.extent(0));
    const std::int64_t r = end - begin;
    const View<float> norm = first_rows(norm_, r), out = first_rows(branch_out_, r);
    const View<float> some = stream.slice(0, begin, end);
    norm_stream(read.slice(0, begin, end), at.parameters.norm_2, norm);
    feed_forward(at, norm,
                 {.pre = first_rows(neurons_, r),
                  .linear = linear_.present() ? first_rows(linear_, r) : View<float>(),
                  .post = first_rows(activated_, r)},
                 out);
    norm_output(model_.specification(), at.parameters.feed_forward_out_norm, out);
    kernels::add(some, out, some);
  }
}

// Queries, keys and values of the first variants. Those of prepared weights come in one product.
void Variants::project_heads(std::int64_t layer, std::int64_t active, Queries queries) {
  const std::int64_t rows = rows_of(active);
  if (rows != rotary_rows_) {
    const auto count = static_cast<std::size_t>(rows);
    const std::vector<std::int64_t> text_lengths(count, positions_);
    rotary_ = RotaryRows(model_.specification().block.attention,
                         std::span(row_positions_).first(count), text_lengths, model_.device());
    rotary_rows_ = rows;
  }
  const LayerPass at = layer_pass(layer, rotary_);
  const View<float> norm = first_rows(norm_, rows);
  norm_stream(first_rows(stream_, rows), at.parameters.norm_1, norm);
  if (queries == Queries::of_all_positions) {
    project(pass_, norm, at.parameters.query_key_value, first_rows(query_key_value_, rows));
  } else {
    project_last_queries(at, active);
  }
  position(at, attention_rows(0, rows));
}

// Leaves the queries of other positions as they are: numbers that nothing reads.
void Variants::project_last_queries(const LayerPass& at, std::int64_t active) {
  const std::int64_t rows = rows_of(active), width = query_key_value_.shape()[1];
  const std::int64_t queries = model_.specification().block.attention.query_width();
  const LinearWeights& weights = at.parameters.query_key_value;
  const View<float> heads = first_rows(query_key_value_, rows);
  Tensor<float> keys_values(Shape{rows, width - queries}, model_.device());
  project_outputs(pass_, first_rows(norm_, rows), weights, queries, keys_values);
  kernels::copy(keys_values, heads.slice(1, queries, width));
  const View<float> last_norms = first_rows(branch_out_, active);
  for (std::int64_t variant = 0; variant < active; ++variant) {
    const std::int64_t last = rows_of(variant + 1) - 1;
    kernels::copy(norm_.view().slice(0, last, last + 1), last_norms.slice(0, variant, variant + 1));
  }
  Tensor<float> last_queries(Shape{active, queries}, model_.device());
  project_outputs(pass_, last_norms, weights, 0, last_queries);
  for (std::int64_t variant = 0; variant < active; ++variant) {
    const std::int64_t last = rows_of(variant + 1) - 1;
    kernels::copy(last_queries.view().slice(0, variant, variant + 1),
                  heads.slice(0, last, last + 1).slice(1, 0, queries));
  }
}

void Variants::run_block(std::int64_t layer, std::int64_t active) {
  if (active == 0) return;
  if (layer + 1 == model_.specification().layers) return last_block(layer, active);
  block(layer, active);
}

void Variants::block(std::int64_t layer, std::int64_t active) {
  const BlockParameters& parameters = model_.parameters().placed().blocks[layer];
  const std::int64_t n = rows_of(active);
  const View<float> stream = first_rows(stream_, n), mixed = first_rows(mixed_, n);
  const View<float> out = first_rows(branch_out_, n);
  project_heads(layer, active, Queries::of_all_positions);
  attend_all(layer, active, 0, mixed);
  project(pass_, mixed, parameters.projection, out);
  norm_output(model_.specification(), parameters.attention_out_norm, out);
  if (!model_.specification().is_parallel()) {
    kernels::add(stream, out, stream);
    return add_feed_forward(layer, stream, stream);
  }
  Tensor<float> read(stream.shape(), stream.device());
  kernels::copy(stream, read);
  kernels::add(stream, out, stream);
  add_feed_forward(layer, read, stream);
}

// Of variants [begin, end).
View<float> Variants::gather_last_rows(std::int64_t begin, std::int64_t end) {
  for (std::int64_t variant = begin; variant < end; ++variant) {
    kernels::copy(stream_[rows_of(variant + 1) - 1], last_rows_.view()[variant]);
  }
  return last_rows_.view().slice(0, begin, end);
}

// In the last block only the last position of each variant attends; the others provide keys and
// values.
void Variants::last_block(std::int64_t layer, std::int64_t active) {
  const BlockParameters& parameters = model_.parameters().placed().blocks[layer];
  project_heads(layer, active,
                parameters.query_key_value.prepared == nullptr ? Queries::of_last_positions
                                                               : Queries::of_all_positions);
  const View<float> mixed = first_rows(mixed_, active), out = first_rows(branch_out_, active);
  attend_all(layer, active, positions_ - 1, mixed);
  project(pass_, mixed, parameters.projection, out);
  norm_output(model_.specification(), parameters.attention_out_norm, out);
  const View<float> last = gather_last_rows(0, active);
  View<const float> read = last;
  if (model_.specification().is_parallel()) {
    const View<float> before = first_rows(last_read_, active);
    kernels::copy(last, before);
    read = before;
  }
  kernels::add(last, out, last);
  add_feed_forward(layer, read, last);
  ended_ = active;
}

Tensor<float> Variants::logits(std::span<const std::int32_t> tokens) {
  const std::int64_t b = count();
  gather_last_rows(ended_, b);
  const bool has_mean = model_.specification().block.norm.kind == NormKind::layer;
  const View<float> norm = first_rows(norm_, b);
  normalise(model_.specification(), last_rows_, model_.parameters().placed().final_norm,
            {has_mean ? first_rows(mean_, b) : View<float>(), first_rows(deviation_, b)}, norm);
  return model_.project_tokens(norm, tokens, positions_);
}

Tensor<float> Variants::run(std::int64_t layer) {
  for (; layer < model_.specification().layers; ++layer) run_block(layer, count());
  return logits();
}

}  // namespace heed
