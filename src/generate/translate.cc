#include "generate/translate.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "generate/text_stream.h"
#include "model/probe.h"

namespace heed {
namespace {

bool is_blank_text(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// Keeps the cross-attention patterns of a pass of one sequence.
class CrossPatterns : public Probe {
 public:
  CrossPatterns(const StackSpecification& decoder, std::int64_t target, std::int64_t source)
      : patterns_(
            Shape{decoder.layers, decoder.block.cross_attention->query_heads, target, source}) {}

  bool wants(const Point& point) const override { return point.kind == PointKind::cross_pattern; }
  void observe(const Point& point, View<const float> values) override {
    const View<float> to = patterns_.view()[point.layer];
    for (std::int64_t h = 0; h < to.extent(0); ++h) {
      for (std::int64_t t = 0; t < to.extent(1); ++t) {
        for (std::int64_t s = 0; s < to.extent(2); ++s) to(h, t, s) = values(0, h, t, s);
      }
    }
  }

  Tensor<float> take() { return std::move(patterns_); }

 private:
  Tensor<float> patterns_;  // (L, H, T, S)
};

void require_tokens_of(const StackSpecification& stack, std::span<const std::int32_t> tokens,
                       std::string_view name) {
  require(!tokens.empty(), ErrorCode::invalid_argument, "the {} has no tokens", name);
  require(std::ssize(tokens) <= stack.context, ErrorCode::invalid_argument,
          "the {} has {} tokens: expected at most {}", name, tokens.size(), stack.context);
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < stack.vocabulary_size, ErrorCode::invalid_argument,
            "the {} has the token {}: expected 0 to {}", name, token, stack.vocabulary_size - 1);
  }
}

}  // namespace

std::span<const std::int32_t> SourceTokens::source(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return std::span(tokens).subspan(static_cast<std::size_t>(row_starts[at]),
                                   static_cast<std::size_t>(row_starts[at + 1] - row_starts[at]));
}

void SourceTokens::add(std::span<const std::int32_t> source) {
  tokens.insert(tokens.end(), source.begin(), source.end());
  row_starts.push_back(std::ssize(tokens));
}

std::vector<std::int32_t> encode_source(const Architecture& architecture,
                                        const Tokenizer& tokenizer, std::string_view text,
                                        std::string_view name) {
  require(!is_blank_text(text), ErrorCode::invalid_argument,
          "{} is empty: there is nothing to translate", name);
  require(is_valid_utf8(text), ErrorCode::invalid_argument, "{} is not UTF-8", name);
  std::vector<std::int32_t> tokens =
      tokenizer.encode(text, {.add_beginning = true, .add_ending = true});
  const StackSpecification& encoder = architecture.encoder();
  require(!tokens.empty(), ErrorCode::invalid_argument, "{} has no tokens", name);
  require(std::ssize(tokens) <= encoder.context, ErrorCode::invalid_argument,
          "{} has {} tokens, more than the {} that the encoder reads; shorten it", name,
          tokens.size(), encoder.context);
  const std::int32_t highest = *std::ranges::max_element(tokens);
  require(highest < encoder.vocabulary_size, ErrorCode::invalid_argument,
          "{} has the token {}, and the model's vocabulary ends with {}: the tokenizer is that of "
          "another model",
          name, highest, encoder.vocabulary_size - 1);
  return tokens;
}

std::string decode_target(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens) {
  TextStream stream;  // valid UTF-8 of any bytes
  std::string text = stream.push(tokenizer.decode(tokens, {.special_tokens = false}));
  return text + stream.finish();
}

std::vector<std::vector<TokenHypothesis>> translate_tokens(const Transformer& model,
                                                           const Tokenizer& target,
                                                           const SourceTokens& sources,
                                                           BeamOptions options) {
  options.drawable = std::min<std::int64_t>(target.vocabulary_size(),
                                            model.architecture().decoder().vocabulary_size);
  const bool is_edited = options.editor != nullptr || model.editor() != nullptr;
  if (!is_edited || sources.count() == 1) return beam_search(model, sources.rows(), options);
  // Edited passes are of one source each.
  std::vector<std::vector<TokenHypothesis>> found;
  for (std::int64_t i = 0; i < sources.count(); ++i) {
    SourceTokens one;
    one.add(sources.source(i));
    found.push_back(std::move(beam_search(model, one.rows(), options).front()));
  }
  return found;
}

Tensor<float> cross_attention(const Transformer& model, std::span<const std::int32_t> source,
                              std::span<const std::int32_t> target) {
  const Architecture& architecture = model.architecture();
  require_tokens_of(architecture.encoder(), source, "source");
  require_tokens_of(architecture.decoder(), target, "target");
  require(architecture.decoder_start >= 0, ErrorCode::unsupported,
          "the model does not say which token its decoder starts from (decoder_start_token_id)");
  std::vector<std::int32_t> read{static_cast<std::int32_t>(architecture.decoder_start)};
  read.insert(read.end(), target.begin(), target.end() - 1);
  const auto from = std::ssize(source), to = std::ssize(read);
  const StackActivations encoder(architecture.encoder(), 1, from, Keep::one_block, 0,
                                 model.device());
  const StackActivations decoder(architecture.decoder(), 1, to, Keep::one_block, from,
                                 model.device());
  CrossPatterns patterns(architecture.decoder(), to, from);
  model.forward({{source.data(), Shape{1, from}},
                 {.sequences = {1, from}, .site = StackSite::encoder},
                 encoder},
                {{read.data(), Shape{1, to}},
                 {.sequences = {1, to}, .site = StackSite::decoder, .probe = &patterns},
                 decoder});
  return patterns.take();
}

}  // namespace heed
