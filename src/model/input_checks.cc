#include "model/input_checks.h"

#include "base/error.h"

namespace heed {

void require_tokens(std::span<const std::int32_t> tokens, std::string_view text) {
  require(!tokens.empty(), ErrorCode::invalid_argument,
          "{} has no tokens: expected at least one token", text);
}

void require_text_fits(const StackSpecification& config, std::span<const std::int32_t> tokens,
                       std::string_view text) {
  require_tokens(tokens, text);
  require(std::ssize(tokens) <= config.context, ErrorCode::invalid_argument,
          "{} has {} tokens, more than the model's context of {}; shorten it", text, tokens.size(),
          config.context);
}

void require_positions_fit(const StackSpecification& config, std::int64_t positions) {
  require(positions <= config.context, ErrorCode::invalid_argument,
          "{} positions are more than the model's context of {}", positions, config.context);
}

void require_predicts_next(const StackSpecification& config, std::string_view what) {
  require(config.role == StackRole::decoder && config.is_causal(), ErrorCode::unsupported,
          "{} needs a model that predicts the next token; this one is an encoder, whose positions "
          "attend to later ones too",
          what);
}

void require_stream_of_sums(const StackSpecification& config, std::string_view what) {
  require(!config.is_post_norm(), ErrorCode::unsupported,
          "{} needs a model with norms before its branches; this one has them after, so that its "
          "stream is not a sum",
          what);
  require(config.final_norm && !config.prediction_head, ErrorCode::unsupported,
          "{} needs logits that are computed from a final norm; this model {}", what,
          config.prediction_head ? "has a prediction head" : "has no final norm");
}

void require_sums_to_logits(const StackSpecification& config, std::string_view what) {
  require_stream_of_sums(config, what);
  require(!config.has_output_norms(), ErrorCode::unsupported,
          "{} needs a model whose branches add what they give; this one adds the norms of it "
          "(norm_placement '{}')",
          what, norm_placement_name(config.block.norm.placement));
  require(config.logit_cap == 0, ErrorCode::unsupported,
          "{} needs logits that are sums; this model's have a soft cap of {}", what,
          config.logit_cap);
}

void require_unembedding(const StackSpecification& config, std::string_view what) {
  require(config.has_unembedding, ErrorCode::unsupported,
          "{} needs logits, and this model has none: it is an encoder without the head of a masked "
          "language model, which gives hidden states and attention",
          what);
}

std::int64_t checked_layer(std::int64_t layer, const StackSpecification& config) {
  require(layer >= 0 && layer < config.layers, ErrorCode::invalid_argument,
          "layer {} does not exist: the model has layers 0 to {}", layer, config.layers - 1);
  return layer;
}

std::int64_t checked_head(std::int64_t head, const StackSpecification& config) {
  require(head >= 0 && head < config.heads(), ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", head, config.heads() - 1);
  return head;
}

std::int64_t checked_neuron(std::int64_t neuron, const StackSpecification& config) {
  require(neuron >= 0 && neuron < config.feed_forward(), ErrorCode::invalid_argument,
          "neuron {} does not exist: a layer has neurons 0 to {}", neuron,
          config.feed_forward() - 1);
  return neuron;
}

}  // namespace heed
