// Families of decoders in Hugging Face's layout, against what PyTorch computes with the same files:
// tests/golden/make_family_goldens.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "formats/model_files.h"
#include "heed/f32_products.h"
#include "kernels/instruction_sets.h"
#include "model/comparison.h"
#include "support/golden.h"
#include "support/golden_gradients.h"
#include "support/golden_steps.h"
#include "support/small_model.h"
#include "support/tested_instruction_sets.h"

namespace heed {
namespace {

using testing::GoldenSteps;
using testing::RecordingProbe;
using testing::relative_error;

constexpr double forward_tolerance = 1e-5;
constexpr double gradient_tolerance = 1e-4;
constexpr double step_tolerance = 1e-4;

std::filesystem::path families() {
  return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/families";
}

struct Case {
  std::string family;
  std::string instruction_set;

  friend std::ostream& operator<<(std::ostream& out, const Case& case_) {
    return out << case_.family << " on " << case_.instruction_set;
  }
};

class Family : public ::testing::TestWithParam<Case> {
 protected:
  Family()
      : directory_(families() / GetParam().family),
        transformer_(load_transformer(StacksWanted::one, directory_)),
        file_(SafetensorsFile::open(directory_ / "golden.safetensors")),
        tokens_(testing::exact<std::int32_t>(file_, "tokens")),
        targets_(testing::exact<std::int32_t>(file_, "targets")) {
    kernels::use_instruction_set(GetParam().instruction_set);
  }
  ~Family() override { kernels::use_instruction_set(""); }

  std::int64_t batch() const { return tokens_.shape()[0]; }
  std::int64_t positions() const { return tokens_.shape()[1]; }
  const StackSpecification& stack() const { return transformer_.specification(); }

  Tensor<float> floats(const std::string& name) const {
    Tensor<float> values(file_.find(name)->shape);
    read_as_f32(*file_.find(name), values);
    return values;
  }

  Tensor<float> logits_of(const Transformer& transformer, const Pass& pass) const {
    const StackActivations activations(transformer.specification(), batch(), positions(),
                                       Keep::one_block);
    transformer.forward(tokens_, pass, activations);
    Tensor<float> logits(Shape{batch() * positions(), transformer.specification().vocabulary_size});
    transformer.project(activations.final_norm(), logits);
    return logits;
  }

  double expect_gradients(double tolerance);

  std::filesystem::path directory_;
  Transformer transformer_;
  SafetensorsFile file_;
  Tensor<std::int32_t> tokens_;
  Tensor<std::int32_t> targets_;
};

TEST_P(Family, LogitsAndPointsAgree) {
  RecordingProbe probe;
  const Tensor<float> logits =
      logits_of(transformer_, {.sequences = {batch(), positions()}, .probe = &probe});
  EXPECT_LE(relative_error(logits.span(), floats("logits").span()), forward_tolerance);
  std::size_t compared = 0;
  for (const TensorEntry& entry : file_.tensors()) {
    constexpr std::string_view prefix = "probe.";
    if (!entry.name.starts_with(prefix)) continue;
    const auto& record = probe.records[entry.name.substr(prefix.size())];
    EXPECT_EQ(record.shape, entry.shape) << entry.name;
    EXPECT_LE(relative_error(record.values, floats(entry.name).span()), forward_tolerance)
        << entry.name;
    ++compared;
  }
  EXPECT_GE(compared, 7U);
  EXPECT_EQ(probe.order, all_points(stack()));
}

// The largest error of a parameter's gradients. The loss is to agree to a tenth of their tolerance.
double Family::expect_gradients(double tolerance) {
  TrainingBuffers buffers(stack(), batch(), positions());
  Gradients gradients({.stacks = {stack()}});
  const auto counted = std::ranges::count_if(
      targets_.span(), [](std::int32_t target) { return target != kernels::ignored_target; });
  const LossSum loss = transformer_.loss_and_gradients(
      tokens_, targets_, {.scale = 1.0F / static_cast<float>(counted)}, buffers, gradients);
  const double expected_loss = testing::exact<double>(file_, "loss")[0];
  EXPECT_NEAR(loss.mean(), expected_loss, tolerance / 10 * expected_loss);
  const Format& format = format_of_config(read_model_fields(directory_));
  const Parameters expected = testing::golden_gradients(file_, {.stacks = {stack()}}, format);
  double worst = 0;
  for (const Parameter& parameter : transformer_.parameters().list()) {
    const double error =
        relative_error(gradients.tensor(parameter.id).span(), expected.tensor(parameter.id).span());
    EXPECT_LE(error, tolerance) << parameter_name(parameter.id);
    worst = std::max(worst, error);
  }
  return worst;
}

TEST_P(Family, LossAndGradientsAgree) { expect_gradients(gradient_tolerance); }

// In TF32, a device's products of a chain, four of a block and the unembedding, there and back, add
// the errors of two operands each: at most 2^-10, a root mean square of a √3rd of it, and random.
// The processor's products are those of f32.
TEST_P(Family, LossAndGradientsAgreeInTf32) {
  struct Back {
    ~Back() { set_f32_products(F32Products::f32); }
  } back;
  set_f32_products(F32Products::tf32);
  const bool rounds = std::getenv("HEED_TEST_DEVICE") != nullptr;
  const double tolerance =
      rounds ? std::sqrt(2.0 / 3.0 * static_cast<double>(8 * stack().layers + 2)) / 1024
             : gradient_tolerance;
  const double worst = expect_gradients(tolerance);
  EXPECT_EQ(worst > gradient_tolerance, rounds);
  RecordProperty("worst_gradient", fmt::format("{:.1e}", worst));
}

// Token by token through a cache: the numbers of the whole pass.
TEST_P(Family, CachedDecodingIsTheWholePass) {
  const Tensor<float> expected = floats("logits");  // (B, T, V)
  const std::int64_t v = stack().vocabulary_size;
  for (std::int64_t b = 0; b < batch(); ++b) {
    KeyValueCache cache(stack(), 1, positions());
    const StackActivations step(stack(), 1, 1, Keep::one_block);
    std::vector<float> logits;
    for (std::int64_t t = 0; t < positions(); ++t) {
      transformer_.forward(View<const std::int32_t>(&tokens_.view()(b, t), {1, 1}),
                           {.sequences = Sequences::next_of(cache)}, step);
      Tensor<float> row(Shape{1, v});
      transformer_.project(step.final_norm(), row);
      logits.insert(logits.end(), row.span().begin(), row.span().end());
    }
    const std::span<const float> whole = expected.span().subspan(
        static_cast<std::size_t>(b * positions() * v), static_cast<std::size_t>(positions() * v));
    EXPECT_LE(relative_error(logits, whole), forward_tolerance) << "sequence " << b;
  }
}

TEST_P(Family, TrainsAsPyTorchDoesForAHundredSteps) {
  const auto curves = SafetensorsFile::open(families() / "curves.safetensors");
  const auto tokens = testing::exact<std::int32_t>(curves, "tokens");
  const auto expected = testing::exact<double>(curves, "losses." + GetParam().family);
  for (const Parameter& parameter : transformer_.parameters().list()) {
    if (parameter.shape.rank() < 2) continue;
    for (float& value : transformer_.parameters().tensor(parameter.id).span()) value /= 8;
  }
  const std::int64_t sequences = tokens.shape()[1], length = tokens.shape()[2] - 1;
  Tensor<std::int32_t> inputs(Shape{sequences, length}), targets(inputs.shape());
  TrainingBuffers buffers(stack(), sequences, length);
  Gradients gradients({.stacks = {stack()}});
  GoldenSteps steps(transformer_.parameters());
  double worst = 0;
  for (std::int64_t step = 0; step < expected.size(); ++step) {
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int32_t* const row = tokens.data() + (step * sequences + s) * (length + 1);
      std::copy_n(row, length, inputs.data() + s * length);
      std::copy_n(row + 1, length, targets.data() + s * length);
    }
    gradients.clear();
    const float scale = 1.0F / static_cast<float>(sequences * length);
    const double loss =
        transformer_.loss_and_gradients(inputs, targets, {.scale = scale}, buffers, gradients)
            .mean();
    worst = std::max(worst, std::abs(loss - expected[step]));
    steps.take(gradients, transformer_.parameters());
  }
  EXPECT_LE(worst, step_tolerance);
  RecordProperty("worst_step_loss", fmt::format("{:.1e}", worst));
}

// Saved and loaded again, in each format of weights, a model computes the same.
TEST_P(Family, IsReadAsItWasWritten) {
  const testing::ScratchDirectory scratch;
  const Pass pass{.sequences = {batch(), positions()}};
  for (const auto format : {kernels::WeightFormat::f32, kernels::WeightFormat::bf16,
                            kernels::WeightFormat::int8, kernels::WeightFormat::int4}) {
    save_transformer(transformer_, scratch.path(), {}, format);
    const Transformer loaded = load_transformer(StacksWanted::one, scratch.path());
    EXPECT_EQ(loaded.specification(), stack());
    Transformer prepared = load_transformer(StacksWanted::one, directory_);
    prepared.parameters().prepare(format);
    EXPECT_TRUE(testing::same_bits(logits_of(loaded, pass), logits_of(prepared, pass)))
        << kernels::weight_format_name(format);
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* family : {"gpt2",
                             "gpt_neo",
                             "opt",
                             "llama",
                             "llama_biased",
                             "llama_scaled",
                             "llama_yarn",
                             "mistral",
                             "neox",
                             "neox_sequential",
                             "olmo2",
                             "phi3",
                             "gemma2",
                             "gemma3",
                             "falcon",
                             "falcon_new",
                             "qwen2",
                             "qwen2_windows",
                             "qwen3",
                             "starcoder2",
                             "starcoder2_windows"}) {
    for (const std::string& set : testing::tested_instruction_sets()) {
      cases.push_back({family, set});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Families, Family, ::testing::ValuesIn(all_cases()),
                         [](const auto& tested) {
                           return tested.param.family + "_" + tested.param.instruction_set;
                         });

}  // namespace
}  // namespace heed
