// An encoder with norms after its branches under the microscope: what it can show is its own, and
// what is meant for decoders whose stream is a sum is refused by name.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "formats/model_files.h"
#include "generate/session.h"
#include "generate/token_scores.h"
#include "microscope/attention/head_scan.h"
#include "microscope/attention/induction.h"
#include "microscope/attention/lazy_attention.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/head_circuits.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/explain/loss_flow.h"
#include "microscope/explain/neurons.h"
#include "microscope/explain/residual_parts.h"
#include "microscope/explain/weight_processing.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/intervene/edge_effects.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/recorded_pass.h"
#include "microworld/checks/evidence_check.h"
#include "microworld/checks/microworld_check.h"
#include "model/comparison.h"
#include "model/variants.h"
#include "support/small_model.h"

namespace heed {
namespace {
namespace encoder {

using testing::expect_error;

Transformer bert() {
  return load_transformer(StacksWanted::one,
                          std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/pairs/bert");
}

const std::vector<std::int32_t> tokens{5, 17, 42, 8, 33, 60, 12};

// The pattern of a head by what attention kept equals what a pass computes, later keys included.
TEST(EncoderObserved, ShowsAttentionInBothDirections) {
  const Transformer transformer = bert();
  LazyAttention lazy(transformer.specification(), {}, std::ssize(tokens));
  observe_pass(transformer, tokens, lazy);
  testing::RecordingProbe probe;
  observe_pass(transformer, tokens, probe);
  const auto& pattern = probe.records["blocks.1.attn.hook_pattern"].values;  // (1, H, T, T)
  double later = 0;
  for (std::int64_t head = 0; head < 4; ++head) {
    for (std::int64_t query = 0; query < 7; ++query) {
      EXPECT_EQ(lazy.visible_keys(1, query).count(), 7);
      const std::vector<float> row = lazy.row(1, head, query);
      ASSERT_EQ(row.size(), 7U);
      for (std::size_t key = 0; key < 7; ++key) {
        EXPECT_NEAR(row[key], pattern[static_cast<std::size_t>(head * 7 + query) * 7 + key], 1e-6);
        if (static_cast<std::int64_t>(key) > query) later += row[key];
      }
    }
  }
  EXPECT_GT(later, 1.0);  // of 28 rows
}

// Logits of a trace go through the prediction head, and so do their gradients: along that of the
// embedding of a word, the logit of another rises by the gradient's squared length.
TEST(EncoderObserved, TracesLogitsAndTheirGradients) {
  Transformer transformer = bert();
  const std::int32_t asked = 3;
  const auto logit = [&] {
    const auto trace = trace_prompt(transformer, tokens, {.points = {"unembed.hook_out"}});
    return double{trace.arrays.front().values[static_cast<std::size_t>(6 * 67 + asked)]};
  };
  const Trace trace = trace_prompt(transformer, tokens, {.points = {"hook_embed_grad"}},
                                   {.logits = {{.position = 6, .token = asked}}});
  const std::span<const float> gradient(trace.arrays.front().values.begin() + 2 * 32, 32);
  const std::span<float> word =
      transformer.parameters().tensor({Role::token_embedding}).span().subspan(42 * 32, 32);
  const std::vector<float> before(word.begin(), word.end());
  double squares = 0;
  for (const float g : gradient) squares += double{g} * g;
  ASSERT_GT(squares, 1e-6);
  const double step = 1e-3 / std::sqrt(squares);
  const auto at = [&](double distance) {
    for (std::size_t i = 0; i < 32; ++i) {
      word[i] = static_cast<float>(before[i] + distance * gradient[i]);
    }
    return logit();
  };
  const double slope = (at(step) - at(-step)) / (2 * step);
  EXPECT_NEAR(slope / squares, 1.0, 5e-3);
}

TEST(EncoderObserved, RefusesWhatOnlyDecodersCan) {
  const Transformer transformer = bert();
  const Tensor<float> rows(Shape{1, 32});
  const PatchRequest patch{.clean = {.target = tokens}, .corrupted = {.target = tokens}};
  const LogitMetric metric{.question = {.token = 3}};
  const std::vector<Point> points{{PointKind::residual_pre, 0}};
  const NeuronId neuron[] = {{0, 0}};
  const HeadName head[] = {{0, 0}};
  std::vector<Interventions> off;
  off.push_back(switching_off(transformer.specification(), head));
  const auto tokenizer = testing::microworld_tokenizer();
  const StackActivations base(transformer.specification(), 1, 7, Keep::every_block);
  struct Entry {
    const char* what;
    std::function<void()> call;
  };
  const std::vector<Entry> entries{
      {"generation", [&] { Session session(transformer); }},
      {"generation", [&] { BatchSession session(transformer, 8); }},
      {"scoring a text", [&] { score_text(transformer, tokens, 2); }},
      {"induction", [&] { measure_induction(transformer); }},
      {"the circuit of induction", [&] { measure_induction_circuit(transformer); }},
      {"patterns are detected under causal masks",
       [&] { scan_heads(transformer, tokens, {.detectors = {{}}}); }},
      {"logit attribution",
       [&] { attribute_logit(transformer, tokens, {.token = 3}, AttributionUnit::head); }},
      {"a direction of logits", [&] { logit_direction(transformer, {.token = 3}); }},
      {"a gradient of logits", [&] { differentiate_logit(transformer, tokens, metric, points); }},
      {"estimated patching",
       [&] {
         estimate_patching(transformer, {{}, tokens}, {{}, tokens}, metric, points);
       }},
      {"integrated gradients", [&] { integrate_gradients(transformer, tokens, metric); }},
      {"a logit lens", [&] { look_through_layers(transformer, tokens); }},
      {"a flow of the loss",
       [&] {
         loss_flow(RecordedPass(transformer, {{}, tokens}), 3, 1);
       }},
      {"what neurons write", [&] { find_neuron_contexts(transformer, tokens, neuron); }},
      {"a sum of residual parts",
       [&] { decompose_residual(transformer, tokens, ResidualUnit::component); }},
      {"circuits of heads", [&] { singular_vectors(transformer, HeadCircuit::query_key, 0, 0); }},
      {"composition of heads", [&] { composition_scores(transformer, CompositionKind::query); }},
      {"a projection to logits", [&] { project_to_logits(transformer, rows, 1); }},
      {"weight processing", [&] { process_weights(transformer); }},
      {"the probability of an answer", [&] { next_token_probabilities(transformer, tokens); }},
      {"the probability of an answer", [&] { answer_probability(transformer, tokens, 3); }},
      {"the probability of an answer", [&] { answer_probabilities(transformer, tokens, 3, off); }},
      {"effects of edges",
       [&] {
         edge_to_show(transformer, tokens, {{6, 7}, single_tokens(7)});
       }},
      {"patching", [&] { patch_sweep(transformer, patch); }},
      {"patching", [&] { estimate_sweep(transformer, patch); }},
      {"variants of a text", [&] { Variants variants(transformer, base, {1}); }},
      {"a sum of residual parts",
       [&] {
         decompose_residual(RecordedPass(transformer, {.source = {}, .target = tokens}),
                            ResidualUnit::component, -1);
       }},
      {"the gradient of the loss of a text",
       [&] { trace_prompt(transformer, tokens, {.points = {"blocks.0.hook_resid_pre_grad"}}); }},
      {"the microworld's check", [&] { check_microworld(transformer, *tokenizer, {}); }},
      {"causes in the microworld",
       [&] { check_microworld_causality(transformer, *tokenizer, {}); }},
      {"evidence in the microworld", [&] { check_evidence(transformer, *tokenizer, {}); }},
  };
  for (const Entry& entry : entries) {
    SCOPED_TRACE(entry.what);
    expect_error(ErrorCode::unsupported, entry.call, entry.what);
  }
}

}  // namespace encoder
}  // namespace
}  // namespace heed
