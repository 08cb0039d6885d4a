#include "microscope/intervene/edge_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/attention/visible_keys.h"
#include "model/input_checks.h"
#include "model/variants.h"

namespace heed {
namespace {

constexpr std::size_t changes_together = 64;  // rows of a pass

std::vector<double> softmax_of(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> probabilities;
  probabilities.reserve(logits.size());
  double sum = 0;
  for (const float logit : logits) sum += probabilities.emplace_back(std::exp(logit - largest));
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

bool shares_passes(const Transformer& model) {
  const StackSpecification& config = model.specification();
  return model.editor() == nullptr && !config.is_post_norm() && config.final_norm &&
         !config.prediction_head;
}

const Transformer& checked(const Transformer& model, std::span<const std::int32_t> tokens) {
  require_predicts_next(model.specification(), "effects of edges");
  require_text_fits(model.specification(), tokens);
  return model;
}

}  // namespace

EdgeRuns::EdgeRuns(const Transformer& model, std::span<const std::int32_t> tokens, StopFlag stop)
    : model_(checked(model, tokens)),
      tokens_(tokens.begin(), tokens.end()),
      stop_(stop),
      by_rows_(shares_passes(model)),
      cache_(model.make_cache(1, std::ssize(tokens), CacheType::f32)),
      activations_(model.specification(), 1, std::ssize(tokens),
                   by_rows_ ? Keep::every_block : Keep::one_block),
      step_(model.specification(), 1, 1, Keep::one_block),
      rows_(model.specification(), query()) {
  feed(tokens_, nullptr, &rows_, activations_);
  const StackSpecification& config = model.specification();
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const View<const float> values = cache_.values(layer, query() + 1)[0];
    kernels::copy(values, values_.emplace_back(values.shape()));
  }
  Tensor<float> logits(Shape{1, config.vocabulary_size});
  model.project(activations_.final_norm().slice(0, query(), query() + 1), logits, query() + 1);
  probabilities_ = softmax_of(logits.span());
}

void EdgeRuns::require_running() const {
  require(!stop_requested(stop_), ErrorCode::interrupted, "stopped while cutting edges");
}

// Appends tokens to the cache. Rows are computed as those of the text's pass.
void EdgeRuns::feed(std::span<const std::int32_t> tokens, Editor* editor, Probe* probe,
                    const StackActivations& activations) {
  require_running();
  const std::int64_t count = std::ssize(tokens);
  model_.forward({tokens.data(), {1, count}},
                 {.sequences = Sequences::next_of(cache_, count),
                  .length = query() + 1,
                  .text_length = query() + 1,
                  .probe = probe,
                  .editor = editor},
                 activations);
  positions_read_ += count;
}

// Makes the cache that of the text's first tokens.
void EdgeRuns::cache_up_to(std::int64_t length) {
  if (cache_.length() > length) cache_.truncate(length);
  const std::int64_t held = cache_.length();
  if (held == length) return;
  const StackActivations activations(model_.specification(), 1, length - held, Keep::one_block);
  feed(std::span(tokens_).subspan(static_cast<std::size_t>(held),
                                  static_cast<std::size_t>(length - held)),
       nullptr, nullptr, activations);
}

std::vector<double> EdgeRuns::read_last(Editor* editor) {
  cache_up_to(query());
  feed({&tokens_.back(), 1}, editor, nullptr, step_);
  Tensor<float> logits(Shape{1, model_.specification().vocabulary_size});
  model_.project(step_.final_norm(), logits, query() + 1);
  return softmax_of(logits.span());
}

// (D), of the key/value head that a head reads.
View<const float> EdgeRuns::value(std::int64_t layer, std::int64_t head,
                                  std::int64_t position) const {
  const std::int64_t group = model_.specification().block.attention.group_size();
  return values_[static_cast<std::size_t>(layer)].view()[position][head / group];
}

std::vector<float> EdgeRuns::mixed_without(const AttentionEdge& edge) const {
  const std::span<const float> row = rows_.row(edge.head);
  std::vector<double> sums(static_cast<std::size_t>(head_size()), 0.0);
  double rest = 0;
  for (std::int64_t s = 0; s <= query(); ++s) {
    const double weight = row[static_cast<std::size_t>(s)];
    if (weight == 0 || (s >= edge.key.begin && s < edge.key.end)) continue;
    rest += weight;
    const View<const float> own = value(edge.head.layer, edge.head.head, s);
    for (std::int64_t i = 0; i < head_size(); ++i) {
      sums[static_cast<std::size_t>(i)] += weight * own(i);
    }
  }
  // Heads with a sink have rows that sum to less than one, and keep their sum.
  const double all = std::accumulate(row.begin(), row.end(), 0.0);
  std::vector<float> mixed;
  for (const double sum : sums)
    mixed.push_back(static_cast<float>(rest > 0 ? sum * all / rest : 0));
  return mixed;
}

std::vector<float> EdgeRuns::mixed_with(const AttentionEdge& edge, View<const float> values) const {
  const std::span<const float> row = rows_.row(edge.head);
  const std::int64_t group = model_.specification().block.attention.group_size();
  std::vector<float> mixed;
  for (std::int64_t i = 0; i < head_size(); ++i) {
    double sum = 0;
    for (std::int64_t s = 0; s <= query(); ++s) {
      const bool is_changed = s >= edge.key.begin && s < edge.key.end;
      const double weight = row[static_cast<std::size_t>(s)];
      if (weight == 0) continue;
      sum += weight * double{is_changed ? values(s - edge.key.begin, edge.head.head / group, i)
                                        : value(edge.head.layer, edge.head.head, s)(i)};
    }
    mixed.push_back(static_cast<float>(sum));
  }
  return mixed;
}

// What is left without the edge is not summed anew, unless little is.
std::vector<double> EdgeRuns::changes_by_cut(const HeadName& head,
                                             std::span<const TokenRun> keys) const {
  constexpr double little = 1e-3;
  const std::span<const float> row = rows_.row(head);
  const double all = std::accumulate(row.begin(), row.end(), 0.0);
  const std::vector<float> mixed = mixed_without({head, {}});
  std::vector<double> changes;
  for (const TokenRun& key : keys) {
    const double own = weight({head, key});
    const bool is_exact = all - own < little * all;
    const std::vector<float> exact = is_exact ? mixed_without({head, key}) : std::vector<float>();
    double sum = 0;
    for (std::int64_t i = 0; i < head_size(); ++i) {
      const double with = mixed[static_cast<std::size_t>(i)];
      double without = with;
      for (std::int64_t s = key.begin; s < key.end && !is_exact; ++s) {
        without -= double{row[static_cast<std::size_t>(s)]} * value(head.layer, head.head, s)(i);
      }
      without = is_exact ? exact[static_cast<std::size_t>(i)] : without * all / (all - own);
      sum += (without - with) * (without - with);
    }
    changes.push_back(std::sqrt(sum));
  }
  return changes;
}

// (changes, C): what attention adds to the stream with the changes, all of one layer.
Tensor<float> EdgeRuns::attention_with(std::span<const HeadChange* const> changes) const {
  const StackSpecification& config = model_.specification();
  const std::int64_t layer = changes.front()->head.layer, rows = std::ssize(changes);
  Tensor<float> mixed(Shape{rows, config.attention_width()});
  for (std::int64_t row = 0; row < rows; ++row) {
    const HeadChange& change = *changes[static_cast<std::size_t>(row)];
    const View<float> heads = mixed.view()[row];
    kernels::copy(activations_.block(layer).attention.mixed_values[query()], heads);
    if (!change.mixed.empty()) {
      std::ranges::copy(change.mixed, &heads(change.head.head * head_size()));
    }
  }
  Tensor<float> added(Shape{rows, config.channels});
  const BlockParameters& block = model_.parameters().block(layer);
  project({.sequences = {1, query() + 1}}, mixed, block.projection, added);
  norm_output(config, block.attention_out_norm, added);
  return added;
}

EdgeRuns::ByLayer EdgeRuns::by_layer(std::span<const HeadChange> changes) const {
  ByLayer groups(static_cast<std::size_t>(model_.specification().layers));
  for (const HeadChange& change : changes) {
    groups[static_cast<std::size_t>(change.head.layer)].push_back(&change);
  }
  return groups;
}

// The rows of `logits` are those of the changes, layer by layer.
std::vector<std::vector<double>> EdgeRuns::in_order(std::span<const HeadChange> changes,
                                                    const ByLayer& groups,
                                                    const Tensor<float>& logits) const {
  std::vector<std::vector<double>> read(changes.size());
  std::int64_t row = 0;
  for (const auto& group : groups) {
    for (const HeadChange* const change : group) {
      read[static_cast<std::size_t>(change - changes.data())] =
          softmax_of(logits.view()[row++].span());
    }
  }
  return read;
}

// Changes of early layers are on their way when those of later ones enter.
std::vector<std::vector<double>> EdgeRuns::read_rows(std::span<const HeadChange> changes) {
  const StackSpecification& config = model_.specification();
  const ByLayer groups = by_layer(changes);
  Variants variants(model_, activations_, std::vector<std::int64_t>(changes.size(), query()));
  std::int64_t active = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    require_running();
    variants.run_block(layer, active);
    const auto& group = groups[static_cast<std::size_t>(layer)];
    if (group.empty()) continue;
    Tensor<float> streams = attention_with(group);
    Tensor<float> before(streams.shape());
    for (std::int64_t row = 0; row < std::ssize(group); ++row) {
      kernels::copy(activations_.block(layer).residual_pre[query()], before.view()[row]);
    }
    kernels::add(before, streams, streams);
    variants.add_feed_forward(layer, config.is_parallel() ? before.view() : streams.view(),
                              streams);
    for (std::int64_t row = 0; row < std::ssize(group); ++row) {
      kernels::copy(streams.view()[row], variants.stream(active + row)[0]);
    }
    active += std::ssize(group);
  }
  positions_read_ += active;
  return in_order(changes, groups, variants.logits());
}

std::vector<std::vector<double>> EdgeRuns::read_directly(std::span<const HeadChange> changes) {
  if (!by_rows_ || changes.empty()) return {};
  require_running();
  const ByLayer groups = by_layer(changes);
  Variants variants(model_, activations_, std::vector<std::int64_t>(changes.size(), query()));
  std::int64_t row = 0;
  for (std::int64_t layer = 0; layer < model_.specification().layers; ++layer) {
    const auto& group = groups[static_cast<std::size_t>(layer)];
    if (group.empty()) continue;
    const HeadChange unchanged{{layer, 0}, {}};
    const Tensor<float> added = attention_with(group);
    const Tensor<float> own = attention_with(std::array{&unchanged});
    for (std::int64_t i = 0; i < std::ssize(group); ++i) {
      Tensor<float> stream(Shape{own.size()});
      kernels::copy(activations_.last_residual()[query()], stream);
      for (std::int64_t c = 0; c < own.size(); ++c) {
        stream[c] = stream[c] + added.view()(i, c) - own[c];
      }
      kernels::copy(stream, variants.stream(row++)[0]);
    }
  }
  return in_order(changes, groups, variants.logits());
}

std::vector<std::vector<double>> EdgeRuns::read(std::span<const HeadChange> changes) {
  std::vector<std::vector<double>> all;
  if (by_rows_) {
    for (std::size_t begin = 0; begin < changes.size(); begin += changes_together) {
      const std::size_t count = std::min(changes_together, changes.size() - begin);
      std::ranges::move(read_rows(changes.subspan(begin, count)), std::back_inserter(all));
    }
    return all;
  }
  const StackSpecification& config = model_.specification();
  for (const HeadChange& change : changes) {
    std::vector<float> row(static_cast<std::size_t>(config.attention_width()));
    std::ranges::copy(change.mixed, row.begin() + change.head.head * head_size());
    Interventions set(config, {{.point = {PointKind::mixed_values, change.head.layer},
                                .where = {.heads = {change.head.head},
                                          .first_position = query(),
                                          .last_position = query()},
                                .change = SetRow{std::move(row)}}});
    all.push_back(read_last(&set));
  }
  return all;
}

// Edits of the model may change what a head mixes: those of its passes come after the cut.
std::vector<std::vector<double>> EdgeRuns::read_without(std::span<const AttentionEdge> edges) {
  if (model_.editor() == nullptr) {
    std::vector<HeadChange> changes;
    for (const AttentionEdge& edge : edges) changes.push_back({edge.head, mixed_without(edge)});
    return read(changes);
  }
  std::vector<std::vector<double>> all;
  for (const AttentionEdge& edge : edges) {
    CutEdges cut{.rest = CutEdges::Rest::renormalised};
    for (std::int64_t s = edge.key.begin; s < edge.key.end; ++s) cut.edges.push_back({query(), s});
    Interventions without(model_.specification(), {{.point = {PointKind::pattern, edge.head.layer},
                                                    .where = {.heads = {edge.head.head}},
                                                    .change = std::move(cut)}});
    all.push_back(read_last(&without));
  }
  return all;
}

std::vector<double> EdgeRuns::read_without_word(const TokenRun& word) {
  const StackSpecification& config = model_.specification();
  std::vector<Intervention> cuts;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    CutEdges cut{.rest = CutEdges::Rest::renormalised};
    const VisibleKeys keys = visible_keys(config.block.attention, layer, query(), query() + 1);
    for (std::int64_t s = std::max(word.begin, keys.begin); s < word.end; ++s) {
      cut.edges.push_back({query(), s});
    }
    if (cut.edges.empty()) continue;
    cuts.push_back({.point = {PointKind::pattern, layer}, .change = std::move(cut)});
  }
  Interventions without(config, std::move(cuts));
  return read_last(&without);
}

std::vector<EdgeRuns::OtherWord> EdgeRuns::other_words(const TokenRun& word,
                                                       std::span<const std::int32_t> others,
                                                       std::size_t most) {
  const StackSpecification& config = model_.specification();
  const std::int32_t own = tokens_[static_cast<std::size_t>(word.begin)];
  std::vector<std::int32_t> firsts;
  const auto add = [&](std::int32_t token) {
    if (token != own && std::ranges::find(firsts, token) == firsts.end()) firsts.push_back(token);
  };
  Tensor<float> logits(Shape{1, config.vocabulary_size});
  const auto likeliest = [&](const StackActivations& activations, std::int64_t row,
                             std::size_t count) {
    model_.project(activations.final_norm().slice(0, row, row + 1), logits, query() + 1);
    std::vector<std::int32_t> tokens(logits.span().size());
    std::iota(tokens.begin(), tokens.end(), 0);
    count = std::min(count, tokens.size());
    std::ranges::partial_sort(tokens, tokens.begin() + static_cast<std::ptrdiff_t>(count), {},
                              [&](std::int32_t token) { return std::pair(-logits[token], token); });
    tokens.resize(count);
    return tokens;
  };
  if (word.begin == 0) {
    std::ranges::for_each(others, add);
  } else {
    std::ranges::for_each(likeliest(activations_, word.begin - 1, most + 1), add);
  }
  firsts.resize(std::min(firsts.size(), most));

  std::vector<OtherWord> found;
  for (const std::int32_t first : firsts) {
    cache_up_to(word.begin);
    OtherWord other{.tokens = {first}};
    feed({&other.tokens.back(), 1}, nullptr, nullptr, step_);
    while (std::ssize(other.tokens) < word.count()) {
      other.tokens.push_back(likeliest(step_, 0, 1).front());
      feed({&other.tokens.back(), 1}, nullptr, nullptr, step_);
    }
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const View<const float> values =
          cache_.values(layer, word.end)[0].slice(0, word.begin, word.end);
      kernels::copy(values, other.values.emplace_back(values.shape()));
    }
    found.push_back(std::move(other));
    // What the cache holds now is another text.
    cache_.truncate(word.begin);
  }
  return found;
}

}  // namespace heed
