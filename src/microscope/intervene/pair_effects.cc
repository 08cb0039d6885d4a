#include "microscope/intervene/pair_effects.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "model/editor.h"
#include "model/input_checks.h"

namespace heed {

namespace {

double relative_change(std::span<const float> before, std::span<const float> after) {
  if (std::memcmp(before.data(), after.data(), before.size_bytes()) == 0) return 0;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double change = double{after[i]} - before[i];
    difference += change * change;
    size += double{before[i]} * before[i];
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

std::vector<double> row_changes(View<const float> before, View<const float> after) {
  std::vector<double> changes;
  for (std::int64_t row = 0; row < before.extent(0); ++row) {
    changes.push_back(relative_change(before[row].span(), after[row].span()));
  }
  return changes;
}

// An encoded source, and the decoder's state after some tokens.
class GreedyDecoder {
 public:
  GreedyDecoder(const Transformer& model, std::span<const std::int32_t> source,
                const GreedyOptions& options, std::int64_t max_length)
      : model_(model),
        options_(options),
        editor_(model.editor(), options.editor),
        sources_(std::ssize(source)),
        encoder_(model.architecture().encoder(), 1, sources_, Keep::one_block),
        decoder_(model.architecture().decoder(), 1, 1, Keep::one_block, sources_),
        cache_(model.make_cache(1, max_length, CacheType::f32)),
        memory_{.rows = encoder_.final_norm(), .texts = {1, sources_}} {
    stack_forward(model.stack(StackSite::encoder), {source.data(), Shape{1, sources_}},
                  {.sequences = {1, sources_},
                   .site = StackSite::encoder,
                   .probe = options.probe,
                   .editor = editor_.get()},
                  encoder_);
  }
  GreedyDecoder(const GreedyDecoder&) = delete;
  GreedyDecoder& operator=(const GreedyDecoder&) = delete;

  // Logits of the token after this one.
  std::span<const float> read(std::int32_t token) {
    const Pass pass{.sequences = Sequences::next_of(cache_),
                    .length = kernels::decoding_step,
                    .memory = &memory_,
                    .site = StackSite::decoder,
                    .probe = options_.probe,
                    .editor = editor_.get()};
    stack_forward(model_.stack(StackSite::decoder), {&token, Shape{1, 1}}, pass, decoder_);
    logits_ = Tensor<float>(Shape{1, model_.architecture().decoder().vocabulary_size});
    unembed(model_.stack(StackSite::decoder), decoder_.unembedding_in(), logits_,
            pass.arithmetic_length());
    return logits_.span();
  }

 private:
  const Transformer& model_;
  const GreedyOptions& options_;
  EditorOfPass editor_;
  std::int64_t sources_;
  StackActivations encoder_;
  StackActivations decoder_;
  KeyValueCache cache_;
  CrossMemory memory_;
  Tensor<float> logits_;
};

}  // namespace

std::vector<std::int32_t> decoder_input(const Architecture& architecture,
                                        std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> input;
  if (architecture.decoder_start >= 0) {
    input.push_back(static_cast<std::int32_t>(architecture.decoder_start));
  }
  input.insert(input.end(), tokens.begin(), tokens.end());
  return input;
}

GreedyTranslation translate_greedily(const Transformer& model, std::span<const std::int32_t> source,
                                     const GreedyOptions& options) {
  const Architecture& architecture = model.architecture();
  require_text_fits(architecture.encoder(), source, "the source");
  require(architecture.decoder_start >= 0, ErrorCode::invalid_argument,
          "this model does not say with which token its decoder starts");
  const std::int64_t room = architecture.decoder().context;
  const std::int64_t max_length =
      options.max_length > 0 ? std::min(options.max_length, room) : room;
  GreedyDecoder decoder(model, source, options, max_length);
  GreedyTranslation translation;
  auto token = static_cast<std::int32_t>(architecture.decoder_start);
  for (std::int64_t step = 0; step < max_length; ++step) {
    require(!stop_requested(options.stop), ErrorCode::interrupted,
            "interrupted after {} tokens of the translation", step);
    const std::vector<double> probabilities = probabilities_of(decoder.read(token));
    const auto best = std::ranges::max_element(probabilities);
    if (step == 0 && architecture.forced_first >= 0) {
      token = static_cast<std::int32_t>(architecture.forced_first);
    } else if (step + 1 == max_length && architecture.forced_last >= 0) {
      token = static_cast<std::int32_t>(architecture.forced_last);
    } else {
      translation.log_probability += std::log(*best);
      token = static_cast<std::int32_t>(best - probabilities.begin());
    }
    if (architecture.ends_text(token)) {
      translation.end = token;
      break;
    }
    translation.tokens.push_back(token);
  }
  return translation;
}

std::vector<PredictionEffect> prediction_effects(const RecordedPass& unedited,
                                                 const RecordedPass& edited, StopFlag stop) {
  const std::vector<std::int32_t>& target = unedited.texts().target;
  require(target == edited.texts().target, ErrorCode::invalid_argument,
          "effects are compared on one target, not on two");
  std::vector<PredictionEffect> effects;
  for (std::int64_t position = 0; position < unedited.positions(); ++position) {
    require(!stop_requested(stop), ErrorCode::interrupted, "interrupted");
    const std::vector<double> before = unedited.next_probabilities(position);
    const std::vector<double> after = edited.next_probabilities(position);
    PredictionEffect& effect = effects.emplace_back();
    for (std::size_t i = 0; i < before.size(); ++i) {
      effect.moved += std::abs(before[i] - after[i]) / 2;
    }
    if (position + 1 == unedited.positions()) continue;
    effect.next = target[static_cast<std::size_t>(position) + 1];
    effect.before = before[static_cast<std::size_t>(*effect.next)];
    effect.after = after[static_cast<std::size_t>(*effect.next)];
  }
  return effects;
}

TokenInfluence token_influence(const RecordedPass& pass, PairSide side, std::int64_t position,
                               std::int32_t token) {
  Texts changed = pass.texts();
  std::vector<std::int32_t>& text = side == PairSide::source ? changed.source : changed.target;
  require(position >= 0 && position < std::ssize(text), ErrorCode::invalid_argument,
          "position {} does not exist: the {} has positions 0 to {}", position,
          side == PairSide::source ? "source" : "target", text.size() - 1);
  text[static_cast<std::size_t>(position)] = token;
  const RecordedPass other(pass.model(), std::move(changed), pass.editor(),
                           {.keep = Keep::one_block});
  return {.encoder = row_changes(pass.final_rows(StackSite::encoder),
                                 other.final_rows(StackSite::encoder)),
          .decoder = row_changes(pass.final_rows(), other.final_rows())};
}

namespace {

// Tokens of the source words that a word of the target is linked to, ascending and distinct.
std::vector<std::int64_t> true_tokens(std::int64_t target, const PairWords& words,
                                      const scoring::TrueAlignment& truth) {
  std::vector<std::int64_t> tokens;
  for (const scoring::AlignmentLink& link : truth.sure) {
    if (link.target != target) continue;
    const TextWord& word = words.source[static_cast<std::size_t>(link.source)];
    for (std::int64_t s = word.begin; s < word.end; ++s) tokens.push_back(s);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

// As many others of the first `count` tokens, drawn at random; none where there are too few.
std::vector<std::int64_t> other_tokens(const std::vector<std::int64_t>& taken, std::int64_t count,
                                       RandomStream& random) {
  std::vector<std::int64_t> others;
  for (std::int64_t s = 0; s < count; ++s) {
    if (!std::ranges::binary_search(taken, s)) others.push_back(s);
  }
  if (others.size() < taken.size()) return {};
  for (std::size_t i = 0; i < taken.size(); ++i) {
    std::swap(others[i], others[i + random.below(others.size() - i)]);
  }
  others.resize(taken.size());
  return others;
}

}  // namespace

std::vector<CutEdges::Edge> writing_edges(const TextWord& target_word,
                                          const std::vector<std::int64_t>& source_tokens) {
  const std::int64_t back = target_word.begin > 0 ? 1 : 0;
  std::vector<CutEdges::Edge> edges;
  for (std::int64_t t = target_word.begin - back; t < target_word.end - back; ++t) {
    for (const std::int64_t s : source_tokens) edges.push_back({t, s});
  }
  return edges;
}

WordProbability written_word(const RecordedPass& pass, const TextWord& word) {
  WordProbability written{.log = 0, .is_likeliest = true};
  for (std::int64_t t = word.begin; t < word.end; ++t) {
    const std::vector<double> next = pass.next_probabilities(t - 1);
    const auto token = pass.texts().target[static_cast<std::size_t>(t)];
    written.log += std::log(next[static_cast<std::size_t>(token)]);
    const auto likeliest = std::ranges::max_element(next) - next.begin();
    written.is_likeliest &= likeliest == token;
    if (t > word.begin) continue;
    written.first = static_cast<std::int32_t>(likeliest);
    written.first_probability = next[static_cast<std::size_t>(likeliest)];
  }
  return written;
}

WordProbability written_without(const RecordedPass& pass, const TextWord& word,
                                const std::vector<std::int64_t>& source_tokens) {
  const Architecture& architecture = pass.architecture();
  const CutEdges cut{writing_edges(word, source_tokens), CutEdges::Rest::renormalised};
  std::vector<Intervention> interventions;
  for (std::int64_t layer = 0; layer < architecture.decoder().layers; ++layer) {
    interventions.push_back({pattern_point(cross_site, layer), {}, cut});
  }
  const RecordedPass edited(pass.model(), pass.texts(),
                            std::make_shared<Interventions>(architecture, std::move(interventions)),
                            {.keep = Keep::one_block});
  return written_word(edited, word);
}

std::vector<WordCut> cut_alignments(const RecordedPass& pass, const PairWords& words,
                                    const scoring::TrueAlignment& truth,
                                    const AlignmentCutOptions& options) {
  for (const scoring::AlignmentLink& link : truth.sure) {
    require(link.target >= 0 && link.target < std::ssize(words.target) && link.source >= 0 &&
                link.source < std::ssize(words.source),
            ErrorCode::invalid_argument,
            "the link of source word {} and target word {} lies outside texts of {} and {} words",
            link.source, link.target, words.source.size(), words.target.size());
  }
  RandomStream random(options.seed, 0);
  std::vector<WordCut> cuts;
  for (std::int64_t target = 0; target < std::ssize(words.target); ++target) {
    const TextWord& word = words.target[static_cast<std::size_t>(target)];
    const std::vector<std::int64_t> own = true_tokens(target, words, truth);
    if (own.empty() || word.begin == 0) continue;
    const std::vector<std::int64_t> others =
        other_tokens(own, pass.sources() - options.last_tokens, random);
    if (others.empty()) continue;
    require(!stop_requested(options.stop), ErrorCode::interrupted,
            "interrupted while cutting edges");
    const WordProbability before = written_word(pass, word);
    const WordProbability without_true = written_without(pass, word, own);
    const WordProbability without_others = written_without(pass, word, others);
    cuts.push_back({.target = target,
                    .edges = std::ssize(own),
                    .before = before.log,
                    .without_true = without_true.log,
                    .without_others = without_others.log,
                    .is_written = before.is_likeliest,
                    .survives_true = before.is_likeliest && without_true.is_likeliest,
                    .survives_others = before.is_likeliest && without_others.is_likeliest});
  }
  return cuts;
}

}  // namespace heed
