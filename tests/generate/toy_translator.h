// An encoder-decoder of random weights and a small vocabulary, and its outputs by full passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "model/transformer.h"

namespace heed::testing {

inline constexpr std::int32_t toy_end = 0, toy_padding = 5;

// Tokens 0 (end) to V − 1; 5 pads and starts the decoder.
inline Architecture toy_translator_architecture(std::int64_t vocabulary = 6) {
  StackSpecification decoder = make_gpt_config(2, 2, 16, 24, vocabulary);
  decoder.initial_deviation = 0.5F;  // outputs that depend on what was read
  decoder.block.attention.positions = PositionKind::sinusoidal;
  decoder.end_of_text = toy_end;
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  decoder.block.cross_attention = decoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  decoder.block.cross_attention->mask.kind = MaskKind::full;
  return {.stacks = {encoder, decoder}, .padding = toy_padding, .decoder_start = toy_padding};
}

inline Transformer toy_translator(std::uint64_t seed = 3, std::int64_t vocabulary = 6) {
  Transformer model(toy_translator_architecture(vocabulary));
  model.parameters().initialize(seed);
  return model;
}

struct ToySources {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> row_starts{0};

  ToySources(std::initializer_list<std::vector<std::int32_t>> sources) {
    for (const auto& source : sources) add(source);
  }
  void add(const std::vector<std::int32_t>& source) {
    tokens.insert(tokens.end(), source.begin(), source.end());
    row_starts.push_back(std::ssize(tokens));
  }
  TokenRows rows() const { return {tokens, row_starts}; }
  std::int64_t count() const { return std::ssize(row_starts) - 1; }
  std::vector<std::int32_t> source(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    return {tokens.begin() + row_starts[at], tokens.begin() + row_starts[at + 1]};
  }
};

// Log-probabilities (V) of the token after the start and `tokens`, by full passes of both stacks
// without a cache, which an editor may change. A first token that is forced has 0, and the others
// −∞.
class UncachedNext {
 public:
  UncachedNext(const Transformer& model, std::vector<std::int32_t> source, Editor* editor = nullptr)
      : model_(model), source_(std::move(source)), editor_(editor) {}

  const std::vector<double>& operator()(const std::vector<std::int32_t>& tokens) {
    const auto found = known_.find(tokens);
    return found != known_.end() ? found->second : known_[tokens] = compute(tokens);
  }

 private:
  std::vector<double> compute(const std::vector<std::int32_t>& tokens) const {
    const std::int64_t forced = model_.architecture().forced_first;
    if (tokens.empty() && forced >= 0) {
      const std::int64_t vocabulary = model_.architecture().decoder().vocabulary_size;
      std::vector<double> certain(static_cast<std::size_t>(vocabulary), -INFINITY);
      certain[static_cast<std::size_t>(forced)] = 0;
      return certain;
    }
    std::vector<std::int32_t> read{static_cast<std::int32_t>(model_.architecture().decoder_start)};
    read.insert(read.end(), tokens.begin(), tokens.end());
    const auto from = std::ssize(source_), to = std::ssize(read);
    StackActivations encoder(model_.architecture().encoder(), 1, from, Keep::one_block);
    StackActivations decoder(model_.architecture().decoder(), 1, to, Keep::one_block, from);
    model_.forward({{source_.data(), Shape{1, from}},
                    {.sequences = {1, from}, .site = StackSite::encoder, .editor = editor_},
                    encoder},
                   {{read.data(), Shape{1, to}},
                    {.sequences = {1, to}, .site = StackSite::decoder, .editor = editor_},
                    decoder});
    Tensor<float> logits(Shape{to, model_.architecture().decoder().vocabulary_size});
    unembed(model_.stack(StackSite::decoder), decoder.unembedding_in(), logits, to);
    std::vector<double> next;
    double sum = 0;
    for (const float logit : logits.view()[to - 1].span()) {
      next.push_back(logit);
      sum += std::exp(static_cast<double>(logit));
    }
    for (double& value : next) value -= std::log(sum);
    return next;
  }

  const Transformer& model_;
  std::vector<std::int32_t> source_;
  Editor* editor_;
  std::map<std::vector<std::int32_t>, std::vector<double>> known_;
};

}  // namespace heed::testing
