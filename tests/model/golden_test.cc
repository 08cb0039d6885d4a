// Against PyTorch: tests/golden/make_gpt_golden.py wrote what a model of the same weights computes
// there in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "kernels/instruction_sets.h"
#include "kernels/kernels.h"
#include "model/comparison.h"
#include "model/transformer.h"
#include "support/golden.h"
#include "support/golden_steps.h"
#include "support/tested_instruction_sets.h"

namespace heed {
namespace {

using testing::Golden;
using testing::GoldenSteps;
using testing::RecordingProbe;
using testing::relative_error;

constexpr double forward_tolerance = 1e-5;
constexpr double gradient_tolerance = 1e-4;
constexpr double step_tolerance = 1e-4;

struct Case {
  std::string model;
  std::string instruction_set;

  friend std::ostream& operator<<(std::ostream& out, const Case& case_) {
    return out << case_.model << " on " << case_.instruction_set;
  }
};

class AgainstPyTorch : public ::testing::TestWithParam<Case> {
 protected:
  AgainstPyTorch()
      : golden_(GetParam().model),
        transformer_(golden_.transformer()),
        tokens_(golden_.exact<std::int32_t>("tokens")),
        targets_(golden_.exact<std::int32_t>("targets")),
        buffers_(transformer_.specification(), tokens_.shape()[0], tokens_.shape()[1]) {
    kernels::use_instruction_set(GetParam().instruction_set);
    for (const std::int32_t target : targets_.span()) {
      counted_ += target != kernels::ignored_target;
    }
  }
  ~AgainstPyTorch() override { kernels::use_instruction_set(""); }

  LossSum loss_and_gradients(Gradients& gradients) {
    return transformer_.loss_and_gradients(
        tokens_, targets_, {.scale = 1.0F / static_cast<float>(counted_)}, buffers_, gradients);
  }

  void record(const char* what, double error) {
    RecordProperty(what, fmt::format("{:.2e}", error));
  }

  Golden golden_;
  Transformer transformer_;
  Tensor<std::int32_t> tokens_;
  Tensor<std::int32_t> targets_;
  TrainingBuffers buffers_;
  std::int64_t counted_ = 0;
};

TEST_P(AgainstPyTorch, LogitsAndEveryPointOfAPassAgree) {
  const std::int64_t batch = tokens_.shape()[0];
  const std::int64_t positions = tokens_.shape()[1];
  RecordingProbe probe;
  const StackActivations activations(transformer_.specification(), batch, positions,
                                     Keep::one_block);
  transformer_.forward(tokens_, {.sequences = {batch, positions}, .probe = &probe}, activations);
  Tensor<float> logits(Shape{batch * positions, transformer_.specification().vocabulary_size});
  transformer_.project(activations.final_norm(), logits);
  const double logits_error = relative_error(logits.span(), golden_.floats("logits").span());
  EXPECT_LE(logits_error, forward_tolerance);
  record("logits", logits_error);

  double worst = 0;
  std::size_t compared = 0;
  for (const TensorEntry& entry : golden_.file().tensors()) {
    constexpr std::string_view prefix = "probe.";
    if (!entry.name.starts_with(prefix)) continue;
    const auto& record = probe.records[entry.name.substr(prefix.size())];
    EXPECT_EQ(record.shape, entry.shape) << entry.name;
    const double error = relative_error(record.values, golden_.floats(entry.name).span());
    EXPECT_LE(error, forward_tolerance) << entry.name;
    worst = std::max(worst, error);
    ++compared;
  }
  EXPECT_EQ(compared, all_points(transformer_.specification().layers).size());
  record("worst_point", worst);
}

TEST_P(AgainstPyTorch, LossAndGradientsAgree) {
  Gradients gradients(transformer_.architecture());
  const LossSum loss = loss_and_gradients(gradients);
  EXPECT_EQ(loss.count, counted_);
  const double expected_loss = golden_.exact<double>("loss")[0];
  EXPECT_NEAR(loss.mean(), expected_loss, 1e-5 * expected_loss);

  double worst = 0;
  for (const Parameter& parameter : transformer_.parameters().list()) {
    const std::string name = testing::gpt2_name(parameter.id);
    const Tensor<float> expected = golden_.parameter_like("gradient." + name, parameter.shape);
    const double error = relative_error(gradients.tensor(parameter.id).span(), expected.span());
    EXPECT_LE(error, gradient_tolerance) << name;
    worst = std::max(worst, error);
  }
  record("worst_gradient", worst);
}

// Whatever backward recomputes, and whether or not parameters' gradients are wanted.
TEST_P(AgainstPyTorch, TheGradientOfEveryPointAgrees) {
  for (const Keep keep : {Keep::every_block, Keep::residuals}) {
    TrainingBuffers buffers(transformer_.specification(), tokens_.shape()[0], tokens_.shape()[1],
                            keep);
    RecordingProbe probe;
    probe.gradients_wanted = true;
    Gradients gradients(transformer_.architecture());
    transformer_.loss_and_gradients(tokens_, targets_,
                                    {.scale = 1.0F / static_cast<float>(counted_), .probe = &probe},
                                    buffers, gradients);
    double worst = 0;
    std::size_t compared = 0;
    for (const TensorEntry& entry : golden_.file().tensors()) {
      constexpr std::string_view prefix = "probe_gradient.";
      if (!entry.name.starts_with(prefix)) continue;
      const auto& record = probe.gradients[entry.name.substr(prefix.size())];
      EXPECT_EQ(record.shape, entry.shape) << entry.name;
      const double error = relative_error(record.values, golden_.floats(entry.name).span());
      EXPECT_LE(error, gradient_tolerance) << entry.name;
      worst = std::max(worst, error);
      ++compared;
    }
    EXPECT_EQ(compared, all_points(transformer_.specification().layers).size());
    record("worst_point_gradient", worst);
  }
}

TEST_P(AgainstPyTorch, BackwardFromAnyGradientOfTheLogitsNeedsNoParameterGradients) {
  const std::int64_t batch = tokens_.shape()[0];
  const std::int64_t positions = tokens_.shape()[1];
  RecordingProbe probe;
  probe.gradients_wanted = true;
  const Pass pass{.sequences = {batch, positions}, .probe = &probe};
  transformer_.forward(tokens_, pass, buffers_.activations);
  Tensor<float> logits(Shape{batch * positions, transformer_.specification().vocabulary_size});
  transformer_.project(buffers_.activations.final_norm(), logits);
  Tensor<float> losses(Shape{batch * positions});
  kernels::cross_entropy_forward_backward(logits, targets_.view().reshape({batch * positions}),
                                          1.0F / static_cast<float>(counted_), losses);
  kernels::linear_backward_input(transformer_.parameters().unembedding().weight, logits,
                                 buffers_.gradients.norm);
  transformer_.backward(tokens_, pass, buffers_.activations, buffers_.gradients, nullptr);
  for (const auto& [name, record] : probe.gradients) {
    const Tensor<float> expected = golden_.floats("probe_gradient." + name);
    EXPECT_LE(relative_error(record.values, expected.span()), gradient_tolerance) << name;
  }
  // All but the logits', which backward starts from.
  EXPECT_EQ(probe.gradients.size(), all_points(transformer_.specification().layers).size() - 1);
}

TEST_P(AgainstPyTorch, TenStepsOfAdamWAgree) {
  const Tensor<double> losses = golden_.exact<double>("step_losses");
  const Tensor<double> norms = golden_.exact<double>("step_norms");
  Gradients gradients(transformer_.architecture());
  GoldenSteps steps(transformer_.parameters());
  double worst = 0;
  for (std::int64_t step = 0; step < 10; ++step) {
    gradients.clear();
    const double loss = loss_and_gradients(gradients).mean();
    EXPECT_NEAR(loss, losses[step], step_tolerance) << "before step " << step + 1;
    worst = std::max(worst, std::abs(loss - losses[step]));
    EXPECT_NEAR(steps.take(gradients, transformer_.parameters()), norms[step], 1e-4 * norms[step]);
  }
  record("worst_step_loss", worst);
}

// tests/golden/make_curve_golden.py: a hundred steps, each on another batch than the one before. In
// bf16 single losses differ by more, and the curve ends where it does in f32.
class LossCurve : public ::testing::TestWithParam<std::string> {
 protected:
  LossCurve() { kernels::use_instruction_set(GetParam()); }
  ~LossCurve() override { kernels::use_instruction_set(""); }

  // What a hundred steps' losses differ by from PyTorch's.
  static std::vector<double> differences(kernels::Precision precision) {
    const Golden start("gpt_tied");
    const auto curve = SafetensorsFile::open(std::filesystem::path(HEED_SOURCE_DIR) /
                                             "tests/golden/loss_curve.safetensors");
    const auto tokens = testing::exact<std::int32_t>(curve, "tokens");
    const auto expected = testing::exact<double>(curve, "losses");
    Transformer transformer = start.transformer();
    transformer.parameters().set_precision(precision);
    const std::int64_t batches = tokens.shape()[0], sequences = tokens.shape()[1];
    const std::int64_t positions = tokens.shape()[2] - 1;
    Tensor<std::int32_t> inputs(Shape{sequences, positions}), targets(inputs.shape());
    TrainingBuffers buffers(transformer.specification(), sequences, positions);
    Gradients gradients(transformer.architecture());
    GoldenSteps steps(transformer.parameters());
    std::vector<double> differences;
    for (std::int64_t step = 0; step < expected.size(); ++step) {
      for (std::int64_t s = 0; s < sequences; ++s) {
        const std::int32_t* const row =
            tokens.data() + (step % batches * sequences + s) * (positions + 1);
        std::copy_n(row, positions, inputs.data() + s * positions);
        std::copy_n(row + 1, positions, targets.data() + s * positions);
      }
      gradients.clear();
      const float scale = 1.0F / static_cast<float>(sequences * positions);
      const double loss =
          transformer.loss_and_gradients(inputs, targets, {.scale = scale}, buffers, gradients)
              .mean();
      differences.push_back(loss - expected[step]);
      steps.take(gradients, transformer.parameters());
    }
    return differences;
  }
};

TEST_P(LossCurve, InF32IsPyTorchsForAHundredSteps) {
  const std::vector<double> of_steps = differences(kernels::Precision::f32);
  ASSERT_EQ(of_steps.size(), 100U);
  for (const double difference : of_steps) EXPECT_NEAR(difference, 0, 1e-4);
}

TEST_P(LossCurve, InBf16EndsWhereF32Does) {
  const std::vector<double> of_steps = differences(kernels::Precision::bf16);
  double last_sixteen = 0;
  for (std::size_t i = of_steps.size() - 16; i < of_steps.size(); ++i) last_sixteen += of_steps[i];
  EXPECT_NEAR(last_sixteen / 16, 0, 0.02);
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, LossCurve,
                         ::testing::ValuesIn(kernels::available_instruction_sets()),
                         [](const auto& set) { return set.param; });

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* model : {"gpt_tied", "gpt_untied"}) {
    for (const std::string& set : testing::tested_instruction_sets()) {
      cases.push_back({model, set});
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.model + "_" + info.param.instruction_set;
}

INSTANTIATE_TEST_SUITE_P(Models, AgainstPyTorch, ::testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace heed
