#include "train/masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "train/evaluation.h"

namespace heed {
namespace {

// A stream of the run's seed that no other use of it shares: its numbers are apart by 2^32.
constexpr std::uint64_t mask_stream = std::uint64_t{0x6d61736b} << 32;
// Sequences that evaluations hide, beyond any that a run trains on.
constexpr std::uint64_t evaluation_sequences = std::uint64_t{1} << 62;

constexpr double masked_share = 0.8;
constexpr double random_share = 0.1;

}  // namespace

void require_mask_token(const Tokenizer& tokenizer, const std::string& name) {
  require(tokenizer.mask().has_value(), ErrorCode::invalid_argument,
          "the tokenizer '{}' has no token <mask> or [MASK], which a masked language model needs",
          name);
}

MaskedBatch::MaskedBatch(const Tokenizer& tokenizer, const TrainSettings& settings,
                         const BatchShare& share)
    : mask_(tokenizer.mask().value()),
      vocabulary_size_(tokenizer.vocabulary_size()),
      is_special_(static_cast<std::size_t>(vocabulary_size_)),
      fraction_(settings.masked_fraction),
      seed_(settings.seed),
      batch_size_(settings.batch_size),
      share_(share),
      tokens_(Shape{share.size(), settings.sequence()}),
      targets_(Shape{share.size(), settings.sequence()}) {
  for (const AddedToken& token : tokenizer.added_tokens()) {
    if (token.special) is_special_[static_cast<std::size_t>(token.id)] = true;
  }
}

void MaskedBatch::hide(View<const std::int32_t> tokens, View<const std::int32_t> following,
                       std::uint64_t pass) {
  const std::int64_t sequences = tokens_.shape()[0], length = tokens_.shape()[1];
  for (std::int64_t b = 0; b < sequences; ++b) {
    const std::uint64_t number = pass * static_cast<std::uint64_t>(batch_size_) +
                                 static_cast<std::uint64_t>(share_.begin + b);
    RandomStream random(seed_, mask_stream ^ number);
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int32_t token = tokens[b](t);
      const bool is_hidden = random.uniform() < fraction_;
      const double how = random.uniform();
      const auto other =
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary_size_)));
      std::int32_t& shown = tokens_.view()[b](t);
      std::int32_t& target = targets_.view()[b](t);
      shown = token;
      target = kernels::ignored_target;
      if (!is_hidden || following[b](t) == kernels::ignored_target ||
          is_special_[static_cast<std::size_t>(token)]) {
        continue;
      }
      target = token;
      if (how < masked_share) {
        shown = mask_;
      } else if (how < masked_share + random_share) {
        shown = other;
      }
    }
  }
}

Evaluation evaluate_masked(const Transformer& model, const TokenSequence& data,
                           const Tokenizer& tokenizer, const TrainSettings& settings,
                           const EvaluationOptions& options) {
  const std::int64_t length = options.sequence_length;
  // A last window that is not full is left out, unless it is the only one.
  const std::int64_t windows = std::max<std::int64_t>((data.size() - 1) / length, 1);
  const std::int64_t wanted =
      options.batches > 0 ? std::min(options.batches * options.batch_size, windows) : windows;
  TrainSettings one = settings;
  one.batch_size = 1;
  MaskedBatch masked(tokenizer, one);
  const PassShape pass(1, length, options.ring);
  EvaluationBuffers buffers(model.specification(), pass.batch, pass.positions, std::nullopt,
                            model.device());
  buffers.loss.set_stop(options.stop);
  StopProbe stop(options.stop);
  Tensor<std::int32_t> tokens(Shape{1, length}), following(Shape{1, length});
  std::vector<std::int32_t> window(static_cast<std::size_t>(length) + 1);
  Group* const sharing = options.ring != nullptr ? nullptr : options.group;
  return evaluate_in_turn(sharing, wanted, [&](std::int64_t i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while evaluating");
    const std::int64_t index = i * windows / wanted;  // evenly spread
    const std::int64_t begin = index * length;
    const std::int64_t count = std::min(length, data.size() - 1 - begin);
    data.read(begin, std::span(window).first(static_cast<std::size_t>(count) + 1));
    for (std::int64_t t = 0; t < length; ++t) {
      const auto at = static_cast<std::size_t>(t);
      tokens.view()[0](t) = t < count ? window[at] : 0;
      following.view()[0](t) = t < count ? window[at + 1] : kernels::ignored_target;
    }
    masked.hide(tokens, following, evaluation_sequences + static_cast<std::uint64_t>(index));
    LossSum loss = model.loss(masked.tokens(), masked.targets(), buffers, &stop, options.ring);
    if (options.ring != nullptr) {
      loss.sum = options.ring->sum(loss.sum);
      loss.count = std::llround(options.ring->sum(static_cast<double>(loss.count)));
    }
    std::vector<WindowLoss> losses;
    if (loss.count > 0) losses.push_back({loss.sum, loss.count});
    return losses;
  });
}

}  // namespace heed
