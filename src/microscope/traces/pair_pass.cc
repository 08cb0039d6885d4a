#include "microscope/traces/pair_pass.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Hands the operands of each attention to its reader.
class AttentionReaders final : public Probe {
 public:
  explicit AttentionReaders(std::vector<LazyAttention>& readers) : readers_(readers) {}

  bool wants(const Point&) const override { return false; }
  void observe(const Point&, View<const float>) override {}
  bool wants_attention_at(const Point& pattern) const override {
    return std::ranges::any_of(
        readers_, [&](const LazyAttention& reader) { return reader.wants_attention_at(pattern); });
  }
  void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                            View<const float> log_sum_exp) override {
    for (LazyAttention& reader : readers_) {
      if (reader.wants_attention_at(pattern)) {
        reader.observe_attention_at(pattern, input, log_sum_exp);
      }
    }
  }

 private:
  std::vector<LazyAttention>& readers_;
};

}  // namespace

void require_pair_fits(const Architecture& architecture, const Texts& tokens) {
  require_text_fits(architecture.encoder(), tokens.source, "the source");
  require_text_fits(architecture.decoder(), tokens.target, "the target");
}

bool has_source_rows(const Point& point) {
  return point.site == StackSite::encoder || point.kind == PointKind::cross_key ||
         point.kind == PointKind::cross_value;
}

StackActivations run_pair(const Transformer& model, const Texts& tokens, Editor* editor,
                          Probe* probe, View<float> encoded) {
  const Architecture& architecture = model.architecture();
  require_pair_fits(architecture, tokens);
  const std::int64_t sources = std::ssize(tokens.source), targets = std::ssize(tokens.target);
  const StackActivations encoder(architecture.encoder(), 1, sources, Keep::one_block);
  StackActivations decoder(architecture.decoder(), 1, targets, Keep::one_block, sources);
  model.forward(
      {{tokens.source.data(), Shape{1, sources}},
       {.sequences = {1, sources}, .site = StackSite::encoder, .probe = probe, .editor = editor},
       encoder},
      {{tokens.target.data(), Shape{1, targets}},
       {.sequences = {1, targets}, .site = StackSite::decoder, .probe = probe, .editor = editor},
       decoder});
  if (encoded.present()) std::ranges::copy(encoder.final_norm().span(), encoded.data());
  return decoder;
}

PairPass::PairPass(const Transformer& model, Texts tokens, std::shared_ptr<Editor> editor)
    : model_(model), tokens_(std::move(tokens)), editor_(std::move(editor)) {
  require_pair_fits(architecture(), tokens_);
  for (const AttentionSite kind : sites_of(architecture())) {
    attention_.emplace_back(architecture(), kind, queries(kind), keys(kind));
  }
  AttentionReaders readers(attention_);
  encoded_ = Tensor<float>(Shape{sources(), architecture().encoder().channels});
  const StackActivations decoder = run_pair(model_, tokens_, editor_.get(), &readers, encoded_);
  decoded_ = Tensor<float>(decoder.unembedding_in().shape());
  std::ranges::copy(decoder.unembedding_in().span(), decoded_.data());
}

std::int64_t PairPass::bytes_needed(const Architecture& architecture, std::int64_t sources,
                                    std::int64_t targets) {
  std::int64_t numbers =
      sources * architecture.encoder().channels + targets * architecture.decoder().channels;
  for (const AttentionSite kind : sites_of(architecture)) {
    const AttentionSpecification& attention = attention_of(architecture, kind);
    const std::int64_t queries = kind == encoder_site ? sources : targets;
    const std::int64_t keys = kind == decoder_site ? targets : sources;
    numbers += architecture.of(kind.stack).layers *
               (queries * (attention.query_width() + attention.query_heads) +
                keys * attention.key_value_width());
  }
  return numbers * static_cast<std::int64_t>(sizeof(float)) +
         StackActivations::bytes_needed(architecture.encoder(), 1, sources, Keep::one_block) +
         StackActivations::bytes_needed(architecture.decoder(), 1, targets, Keep::one_block,
                                        sources);
}

bool PairPass::edits_pattern(AttentionSite kind, std::int64_t layer, std::int64_t head) const {
  if (editor_ == nullptr) return false;
  Point point = pattern_point(kind, layer);
  const auto edits = [&] { return editor_->edits(point) && editor_->edits_head(point, head); };
  if (edits()) return true;
  point.kind = kind == cross_site ? PointKind::cross_scores : PointKind::scores;
  return edits();
}

const LazyAttention& PairPass::attention(AttentionSite kind) const {
  const auto sites = sites_of(architecture());
  const auto index = std::ranges::find(sites, kind) - sites.begin();
  return attention_[static_cast<std::size_t>(index)];
}

void PairPass::replay(Probe& probe) const { run_pair(model_, tokens_, editor_.get(), &probe); }

Tensor<float> PairPass::logits(std::int64_t begin, std::int64_t end) const {
  Tensor<float> logits(Shape{end - begin, architecture().decoder().vocabulary_size});
  unembed(model_.stack(StackSite::decoder), decoded().slice(0, begin, end), logits, targets());
  return logits;
}

std::vector<double> PairPass::next_probabilities(std::int64_t position) const {
  require(position >= 0 && position < targets(), ErrorCode::invalid_argument,
          "position {} is not in a target of {} tokens", position, targets());
  return probabilities_of(logits(position, position + 1).span());
}

std::vector<double> probabilities_of(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> probabilities;
  probabilities.reserve(logits.size());
  double sum = 0;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(logit - largest));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace heed
