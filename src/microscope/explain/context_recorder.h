// The contexts of a neuron or a feature, found while a text is read window by window.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "microscope/explain/neurons.h"

namespace heed {

// Statistics of one neuron, or feature, so far. Borrows the search.
class ContextRecorder {
 public:
  ContextRecorder(NeuronId id, const NeuronSearch& search) : id_(id), search_(search) {}

  const NeuronId& id() const { return id_; }

  // The tokens and activations (T) of one window, whose first token has the position `first`.
  void read(std::span<const std::int32_t> window, std::int64_t first,
            std::span<const float> activations) {
    for (const float activation : activations) {
      sum_ += activation;
      active_ += activation > 0;
    }
    count_ += std::ssize(activations);
    const auto peak = std::ranges::max_element(activations) - activations.begin();
    largest_ = count_ == std::ssize(activations) ? activations[peak]
                                                 : std::max(largest_, activations[peak]);
    if (std::ssize(contexts_) == search_.top && contexts_.back().activation >= activations[peak]) {
      return;
    }
    keep(context(window, first, activations, peak));
  }

  NeuronMemory result() && {
    const auto count = static_cast<double>(count_);
    return {.id = id_,
            .contexts = std::move(contexts_),
            .mean_activation = sum_ / count,
            .active_share = static_cast<double>(active_) / count,
            .largest = largest_};
  }

 private:
  NeuronContext context(std::span<const std::int32_t> window, std::int64_t first,
                        std::span<const float> activations, std::int64_t peak) const {
    const std::int64_t begin = std::max<std::int64_t>(0, peak - search_.before);
    const std::int64_t end =
        std::min<std::int64_t>(std::ssize(activations), peak + search_.after + 1);
    const std::span<const std::int32_t> tokens = window.subspan(begin, end - begin);
    return {.position = first + peak,
            .activation = activations[peak],
            .tokens = {tokens.begin(), tokens.end()},
            .activations = {activations.begin() + begin, activations.begin() + end},
            .peak = peak - begin};
  }

  void keep(NeuronContext found) {
    const auto place = std::ranges::find_if(
        contexts_, [&](const NeuronContext& other) { return other.activation < found.activation; });
    contexts_.insert(place, std::move(found));
    if (std::ssize(contexts_) > search_.top) contexts_.pop_back();
  }

  NeuronId id_;
  const NeuronSearch& search_;
  std::vector<NeuronContext> contexts_;
  double sum_ = 0;
  std::int64_t active_ = 0;
  std::int64_t count_ = 0;
  float largest_ = 0;
};

}  // namespace heed
