// A patching sweep compared with one full forward pass per cell: GPT-2 124M with random weights,
// resid_pre over all layers and positions of a prompt.
//
//   patch_benchmark [T] [rounds]
//
// Forwards are timed between sweeps, some cells' worth a round, for a machine's speed drifts;
// ratios are of the same round. Cells of the last round are compared with whole forwards.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/random.h"
#include "microscope/intervene/intervention.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/capture.h"
#include "model/presets.h"
#include "model/transformer.h"

namespace heed {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<std::int32_t> tokens;
  while (std::ssize(tokens) < count) {
    tokens.push_back(static_cast<std::int32_t>(random.below(50257)));
  }
  return tokens;
}

// Logits (1, V) of what follows a prompt, by one whole forward.
Tensor<float> last_logits(const Transformer& gpt, const std::vector<std::int32_t>& tokens,
                          const StackActivations& activations, Probe* probe, Editor* editor) {
  const std::int64_t positions = std::ssize(tokens);
  gpt.forward({tokens.data(), {1, positions}},
              {.sequences = {1, positions}, .probe = probe, .editor = editor}, activations);
  Tensor<float> logits(Shape{1, gpt.specification().vocabulary_size});
  gpt.project(activations.final_norm().slice(0, positions - 1, positions), logits);
  return logits;
}

double largest_difference(const Transformer& gpt, const PatchRequest& request,
                          const PatchResult& result, const StackActivations& activations) {
  double largest = 0;
  for (std::int64_t layer = 0; layer < result.rows; layer += 4) {
    const Point point{PointKind::residual_pre, layer};
    Capture capture(std::vector<Point>{point});
    const auto clean = last_logits(gpt, request.clean.target, activations, &capture, nullptr);
    for (std::int64_t t = 0; t < result.columns; t += 9) {
      Tensor<float> values(capture.at(point).shape());
      std::ranges::copy(capture.at(point).span(), values.data());
      Interventions editor(
          gpt.specification(),
          {{point, {.first_position = t, .last_position = t}, ReplaceWith{std::move(values)}}});
      const auto logits = last_logits(gpt, request.corrupted.target, activations, nullptr, &editor);
      const double metric = patch_metric(request.metric, logits.span(), clean.span());
      const double size = std::abs(logits[request.metric.answer]);
      largest = std::max(largest, std::abs(metric - result.value(layer, t)) / size);
    }
  }
  return largest;
}

void run(std::int64_t positions, int rounds) {
  Transformer gpt({.stacks = {model_preset("gpt2").config}});
  gpt.parameters().initialize(1);
  const PatchRequest request{.clean = {.target = random_tokens(positions, 1)},
                             .corrupted = {.target = random_tokens(positions, 2)},
                             .metric = {.answer = 464, .wrong = 262}};
  const StackActivations activations(gpt.specification(), 1, positions, Keep::one_block);
  const int forwards = 16;
  std::vector<double> ratios;
  PatchResult result;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds_now();
    for (int i = 0; i < forwards; ++i) {
      last_logits(gpt, request.corrupted.target, activations, nullptr, nullptr);
    }
    const double middle = seconds_now();
    result = patch_sweep(gpt, request);
    const double sweep = seconds_now() - middle;
    const double per_cell = (middle - start) / forwards;
    ratios.push_back(per_cell * static_cast<double>(result.cells) / sweep);
    fmt::print("round {}: {} cells in {:.2f} s; a forward {:.1f} ms; {:.2f} times as fast\n", round,
               result.cells, sweep, 1000 * per_cell, ratios.back());
  }
  std::ranges::sort(ratios);
  fmt::print("median {:.2f} times as fast; largest difference {:.1e} of a logit\n",
             ratios[ratios.size() / 2], largest_difference(gpt, request, result, activations));
}

}  // namespace
}  // namespace heed

int main(int argc, char** argv) {
  heed::run(argc > 1 ? std::atoll(argv[1]) : 64, argc > 2 ? std::atoi(argv[2]) : 3);
}
