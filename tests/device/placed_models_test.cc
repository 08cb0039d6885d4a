// Models on a device against the same models on the processor: what they compute, train and write.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "device/training_runs.h"
#include "engine/loaded_model.h"
#include "heed/device.h"
#include "heed/heed.h"
#include "heed/intervention.h"
#include "heed/weights.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/training_buffers.h"
#include "tensor/device.h"

namespace heed {
namespace {

using testing::expect_error;
// Sums of some hundred products in another order, in f32, through six blocks.
constexpr double tolerance = 2e-5;

const char* const text = "Harry met the wizard in the tower, and the fluffy blue creature";

double relative_difference(std::span<const float> actual, std::span<const float> expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    if (expected[i] == -INFINITY && actual[i] == -INFINITY) continue;
    difference += (double{actual[i]} - expected[i]) * (double{actual[i]} - expected[i]);
    size += double{expected[i]} * expected[i];
  }
  return std::sqrt(difference) / (size > 0 ? std::sqrt(size) : 1.0);
}

double difference_of(const Array& actual, const Array& expected) {
  return relative_difference(std::span(actual.data(), actual.size()),
                             std::span(expected.data(), expected.size()));
}

struct Both {
  Model here, there;

  explicit Both(const std::string& name, LoadOptions options = {})
      : here(Model::load(name, with(options, "cpu"))),
        there(Model::load(name, with(options, "cuda"))) {}

  static LoadOptions with(LoadOptions options, const std::string& device) {
    options.device = device;
    return options;
  }
};

TEST(PlacedModels, SayWhereTheyAre) {
  const Both both("starter");
  EXPECT_EQ(both.here.architecture().device, "cpu");
  EXPECT_EQ(both.there.architecture().device, "cuda:0");
}

TEST(PlacedModels, EveryPointAndGradientOfStarterAgrees) {
  const Both both("starter");
  const std::vector<std::int32_t> tokens = both.here.encode(text);
  const TraceRequest all{.points = {"*", "*_grad"}};
  const Trace expected = both.here.trace(tokens, all), found = both.there.trace(tokens, all);
  ASSERT_EQ(found.arrays.size(), expected.arrays.size());
  for (const TracedArray& array : expected.arrays) {
    EXPECT_LE(difference_of(found.at(array.name).values, array.values), 10 * tolerance)
        << array.name;
  }
  EXPECT_LE(difference_of(both.there.all_logits(tokens), both.here.all_logits(tokens)), tolerance);
}

// Without a copy: the stream after a block is what the next one reads, and the pass brings nothing
// to the processor.
TEST(PlacedModels, ShareWhatAPassComputed) {
  const Both both("starter");
  const std::vector<std::int32_t> tokens = both.there.encode(text);
  const Activations found = record(both.there, {tokens});
  const std::int64_t used = device_bytes_in_use(), held = found.bytes();
  const DeviceView after = on_device(found, "blocks.1.hook_resid_post");
  const DeviceView before = on_device(found, "blocks.2.hook_resid_pre");
  const DeviceView keys = on_device(found, "blocks.2.attn.hook_k");
  EXPECT_EQ(after.data, before.data);
  EXPECT_TRUE(is_on_accelerator(after.data));
  EXPECT_EQ(device_bytes_in_use(), used);
  EXPECT_EQ(found.bytes(), held);
  const Array copy = copied_here(keys);
  const SharedView here = found.at("blocks.2.attn.hook_k");
  EXPECT_EQ(copy.shape(), here.shape);
  EXPECT_EQ(keys.strides, here.strides);
  EXPECT_EQ(copy[1 * 192 + 33], here.data[here.strides[1] + here.strides[2] + 1]);
  EXPECT_GT(found.bytes(), held);  // at() brought it
  const Activations other = record(both.here, {tokens});
  expect_error(
      ErrorCode::invalid_argument, [&] { on_device(other, "blocks.2.attn.hook_k"); },
      "the model of this pass is on the processor");
}

TEST(PlacedModels, ShareTheirWeights) {
  const Both both("starter");
  const SharedView here = weight(both.there, "attn.W_V");
  const DeviceView there = weight_on_device(both.there, "attn.W_V");
  EXPECT_EQ(there.shape, here.shape);
  EXPECT_EQ(there.strides, here.strides);
  EXPECT_TRUE(is_on_accelerator(there.data));
  const Array copy = copied_here(there),
              wanted = copied_here({here.data, here.shape, here.strides, {}});
  EXPECT_EQ(copy, wanted);
  EXPECT_TRUE(computes_with_views(both.here));
  EXPECT_FALSE(computes_with_views(both.there));
  expect_error(
      ErrorCode::invalid_argument, [&] { weight_on_device(both.here, "attn.W_V"); },
      "the model is on the processor");
}

// Of weights that are rounded, prompts also round what they multiply, to bf16 or to integers; the
// sums of either place then differ by more than the order of their terms.
TEST(PlacedModels, GenerateTheSameTextInAllTypes) {
  const auto compare = [](const LoadOptions& options, double most) {
    const Both both("starter", options);
    const std::vector<std::int32_t> tokens = both.here.encode(text);
    EXPECT_LE(difference_of(both.there.logits(tokens), both.here.logits(tokens)), most);
    if (options.weights != WeightType::as_stored) return;
    const Model::GenerateOptions greedy{.max_new_tokens = 12, .sampling = {.temperature = 0}};
    EXPECT_EQ(both.there.generate(text, greedy).text, both.here.generate(text, greedy).text);
  };
  for (const KeyValueType cache : {KeyValueType::f32, KeyValueType::bf16, KeyValueType::int8}) {
    compare({.cache = cache}, tolerance);
  }
  for (const WeightType weights : {WeightType::bf16, WeightType::int8, WeightType::int4}) {
    compare({.weights = weights}, 2e-2);
  }
}

TEST(PlacedModels, SampleTheSameTextFromTheSameSeed) {
  const Both both("starter");
  const Model::GenerateOptions options{.max_new_tokens = 16,
                                       .sampling = {.temperature = 1, .seed = 5}};
  EXPECT_EQ(both.there.generate("The ", options).text, both.here.generate("The ", options).text);
}

TEST(PlacedModels, TranslateAlike) {
  const Both both("translator");
  const std::vector<std::string> texts{"a man is riding a bicycle", "two dogs play in the snow"};
  const TranslateOptions options{.beams = 3, .alignment = true};
  const auto expected = both.here.translate(texts, options);
  const auto found = both.there.translate(texts, options);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(found[i].hypotheses.front().text, expected[i].hypotheses.front().text);
    EXPECT_NEAR(found[i].hypotheses.front().score, expected[i].hypotheses.front().score, 1e-4);
    EXPECT_LE(difference_of(found[i].cross_attention, expected[i].cross_attention), 10 * tolerance);
  }
}

// Edits go to the processor and back; one that changes nothing leaves every bit.
TEST(PlacedModels, AreEditedAlike) {
  const Both both("starter");
  const std::vector<std::int32_t> tokens = both.here.encode(text);
  for (const Edit& edit : {Edit{.where = "L1H1", .change = SetZero{}},
                           Edit{.where = "blocks.2.hook_resid_mid", .change = ScaleBy{0.5F}},
                           Edit{.where = "blocks.0.attn.hook_pattern", .change = ScaleBy{2.0F}}}) {
    const EditedModel here(both.here, {edit}), there(both.there, {edit});
    const Array expected = here.logits(tokens), found = there.logits(tokens);
    EXPECT_LE(difference_of(found, expected), 10 * tolerance) << edit.where;
    EXPECT_GT(difference_of(found, both.here.logits(tokens)), 1e-4) << edit.where;
  }
  const EditedModel same(both.there,
                         {{.where = "blocks.1.hook_resid_pre", .change = ScaleBy{1.0F}}});
  const Array plain = both.there.logits(tokens), edited = same.logits(tokens);
  EXPECT_EQ(difference_of(edited, plain), 0.0);
}

// The whole of a step: losses, gradients, their norm, and the update.
TEST(PlacedModels, AStepOfTrainingIsTheProcessors) {
  const auto stepped = [](const std::string& device) {
    LoadedModel loaded = load_model("starter", {.device = device});
    Transformer& model = loaded.transformer;
    const Device place = model.device();
    model.set_dropout(0.1F, 0.1F, 0.1F);
    const StackSpecification& stack = model.specification();
    const std::int64_t batch = 2, positions = 12;
    Tensor<std::int32_t> tokens(Shape{batch, positions}), targets(tokens.shape());
    for (std::int64_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::int32_t>(i * 37 % stack.vocabulary_size);
      targets[i] = static_cast<std::int32_t>(i * 53 % stack.vocabulary_size);
    }
    targets[5] = kernels::ignored_target;
    TrainingBuffers buffers(stack, batch, positions, Keep::every_block, place);
    Gradients gradients(model.architecture(), ArenaMemory::whole, place);
    const LossSum loss = model.loss_and_gradients(
        tokens, targets, {.scale = 0.05F, .dropout = {.active = true, .seed = 3}}, buffers,
        gradients);
    Tensor<float> first(Shape{std::ssize(gradients.all())}, place);
    Tensor<float> second(first.shape(), place);
    kernels::adamw_step({.parameters = model.parameters().placed_all(),
                         .gradients = gradients.all(),
                         .first_moment = first.span(),
                         .second_moment = second.span()},
                        {.learning_rate = 1e-3F, .weight_decay = 0.1F});
    model.parameters().fetch();
    struct Result {
      double loss;
      double norm;
      std::vector<float> gradients, parameters;
    } result{.loss = loss.mean(), .norm = kernels::squared_norm(gradients.all())};
    result.gradients.resize(gradients.all().size());
    const Shape all{std::ssize(result.gradients)};
    kernels::copy(View<const float>(gradients.all().data(), all), {result.gradients.data(), all});
    const auto parameters = model.parameters().all();
    result.parameters.assign(parameters.begin(), parameters.end());
    return result;
  };
  const auto here = stepped("cpu"), there = stepped("cuda");
  EXPECT_NEAR(there.loss, here.loss, 1e-5 * here.loss);
  EXPECT_NEAR(there.norm, here.norm, 1e-4 * here.norm);
  EXPECT_LE(relative_difference(there.gradients, here.gradients), 10 * tolerance);
  // AdamW's first update divides each gradient by its own size: those near 0 keep few digits. The
  // whole update is a hundred times as large.
  EXPECT_LE(relative_difference(there.parameters, here.parameters), 1e-4);
}

class PlacedTraining : public testing::TrainingRuns {
 protected:
  PlacedTraining() : TrainingRuns(30, {{"context", "16"}, {"dropout", "0.1"}}) {}
};

TEST_F(PlacedTraining, LosesWhatTheProcessorLoses) {
  const std::vector<double> here = losses("cpu", "here", 12);
  const std::vector<double> there = losses("cuda", "there", 12);
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
}

// A run may change device where it is resumed; on one device it is the uninterrupted run.
TEST_F(PlacedTraining, GoesOnHereAndThere) {
  const std::vector<double> whole = losses("cuda", "whole", 12);
  losses("cuda", "parts", 6);
  const std::vector<double> resumed = losses("cuda", "parts", 12);
  losses("cuda", "moved", 6);
  const std::vector<double> moved = losses("cpu", "moved", 12);
  ASSERT_GE(resumed.size(), 6U);
  ASSERT_EQ(resumed.size(), moved.size());
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(resumed[resumed.size() - 1 - i], whole[whole.size() - 1 - i]) << i;
    EXPECT_NEAR(moved[moved.size() - 1 - i], whole[whole.size() - 1 - i], 1e-4) << i;
  }
}

// What is saved as the best is what was evaluated.
TEST_F(PlacedTraining, SavesWhatItEvaluated) {
  for (const char* device : {"cpu", "cuda"}) {
    losses(device, device, 12);
    const auto weights = [&](const char* which) {
      return read_text_file(directory_ / device / which / "model.safetensors");
    };
    EXPECT_TRUE(weights("best") == weights("last")) << device;  // losses fall to the end
  }
}

}  // namespace
}  // namespace heed
