#include "microscope/intervene/pair_effects.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
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

}  // namespace heed
