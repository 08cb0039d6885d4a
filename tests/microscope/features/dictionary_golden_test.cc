// Sparse dictionaries of every architecture and layout against PyTorch in float64:
// tests/golden/make_dictionary_goldens.py wrote them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "microscope/features/dictionary_files.h"
#include "support/golden.h"

namespace heed {
namespace {

std::filesystem::path dictionaries() {
  return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/dictionaries";
}

// Sums of at most 24 products in f32: a relative 24 · 6e-8 of the largest number, and as much again
// for the norm before them.
constexpr float golden_tolerance = 1e-5F;

void expect_close(View<const float> found, const Tensor<float>& wanted, const std::string& what) {
  ASSERT_EQ(found.shape(), wanted.shape()) << what;
  float largest = 0, apart = 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    apart = std::max(apart, std::abs(found.span()[static_cast<std::size_t>(i)] - wanted[i]));
  }
  EXPECT_GT(largest, 0.0F) << what;
  EXPECT_LE(apart, golden_tolerance * largest) << what;
}

void expect_golden(const Dictionary& dictionary, const SafetensorsFile& golden) {
  const auto wanted = [&](const char* name) { return testing::exact<float>(golden, name); };
  const Tensor<float> x = wanted("hook_sae_input");
  const Dictionary::Encoding read = dictionary.read(x);
  const Dictionary::PreActivations pre = dictionary.pre_activations(read.input);
  expect_close(pre.values, wanted("hook_sae_acts_pre"), "pre-activations");

  const FeatureRows acts = dictionary.encode(x);
  const Tensor<float> golden_acts = wanted("hook_sae_acts_post");
  Tensor<float> dense(golden_acts.shape());
  acts.copy_to(dense);
  expect_close(dense, golden_acts, "activations");
  const FeatureRows again = dictionary.activate(pre.values, pre.gate);
  EXPECT_EQ(again.features, acts.features);
  EXPECT_EQ(again.values, acts.values);

  const Tensor<float> golden_out = wanted("hook_sae_output"), d_out = wanted("d_out");
  Tensor<float> recons(golden_out.shape()), out(golden_out.shape());
  dictionary.reconstruct(acts, recons);
  expect_close(recons, wanted("hook_sae_recons"), "reconstruction");
  dictionary.decode(acts, x, out);
  expect_close(out, golden_out, "output");

  Tensor<float> d_recons(d_out.shape()), d_x(x.shape()), d_input(x.shape());
  std::ranges::copy(d_out.span(), d_recons.data());
  dictionary.finish_backward(recons, x, read.scales, d_recons, d_x);
  Tensor<float> d_acts(golden_acts.shape());
  dictionary.reconstruct_backward(d_recons, d_acts);
  expect_close(d_acts, wanted("d_acts"), "gradient of the activations");
  std::vector<float> d_entries(static_cast<std::size_t>(acts.entries()));
  dictionary.reconstruct_backward(acts, d_recons, d_entries);
  dictionary.encode_backward(acts, d_entries, d_input);
  dictionary.read_backward(x, read.scales, d_input, d_x);
  expect_close(d_x, wanted("d_x"), "gradient of the input");
}

TEST(DictionaryGolden, EveryArchitectureOfSaelensEqualsPyTorch) {
  for (const char* name : {"standard_oldest", "standard", "standard_without_bias", "gated",
                           "topk_old", "topk", "topk_rescaled", "batchtopk", "jumprelu",
                           "finetuned", "transcoder", "skip_transcoder", "jumprelu_transcoder"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path directory = dictionaries() / name;
    const std::vector<Dictionary> found = load_dictionaries(directory);
    ASSERT_EQ(found.size(), 1U);
    const DictionarySpecification& own = found.front().specification();
    EXPECT_EQ(own.input_point, "blocks.1.hook_resid_pre");
    EXPECT_EQ(own.is_transcoder(), own.outputs == 6);
    EXPECT_EQ(own.model, "tiny");
    expect_golden(found.front(), SafetensorsFile::open(directory / "golden.safetensors"));
  }
}

TEST(DictionaryGolden, WhatIsSavedIsReadAgain) {
  for (const char* name : {"gated", "topk", "jumprelu", "skip_transcoder", "standard"}) {
    SCOPED_TRACE(name);
    const testing::TemporaryDirectory directory;
    const std::vector<Dictionary> first = load_dictionaries(dictionaries() / name);
    save_dictionary(first.front(), directory.path() / "saved", OrderedJson{{"note", "kept"}});
    const std::vector<Dictionary> again = load_dictionaries(directory.path() / "saved");
    EXPECT_EQ(again.front().specification().output_points,
              first.front().specification().output_points);
    expect_golden(again.front(),
                  SafetensorsFile::open(dictionaries() / name / "golden.safetensors"));
  }
}

TEST(DictionaryGolden, GemmaScopeEqualsPyTorch) {
  const std::filesystem::path directory = dictionaries() / "tiny-pt-res/layer_1/width_24";
  const std::vector<Dictionary> found = load_dictionaries(directory);
  EXPECT_EQ(found.front().specification().input_point, "blocks.1.hook_resid_post");
  expect_golden(found.front(), SafetensorsFile::open(directory / "golden.safetensors"));
}

TEST(DictionaryGolden, TranscodersOfCircuitTracerEqualPyTorch) {
  const std::vector<Dictionary> found = load_dictionaries(dictionaries() / "transcoder_set");
  ASSERT_EQ(found.size(), 2U);
  for (int layer = 0; layer < 2; ++layer) {
    SCOPED_TRACE(layer);
    const DictionarySpecification& own = found[layer].specification();
    EXPECT_EQ(own.input_point, fmt::format("blocks.{}.hook_resid_mid", layer));
    EXPECT_EQ(own.output_points.front(), fmt::format("blocks.{}.hook_mlp_out", layer));
    expect_golden(found[layer], SafetensorsFile::open(dictionaries() / "transcoder_set" /
                                                      fmt::format("golden_{}.safetensors", layer)));
  }
}

// Layer l is the sum of what all layers up to it write there.
TEST(DictionaryGolden, ACrossLayerTranscoderEqualsPyTorch) {
  const std::filesystem::path directory = dictionaries() / "cross_layer";
  const std::vector<Dictionary> found = load_dictionaries(directory);
  ASSERT_EQ(found.size(), 3U);
  const SafetensorsFile golden = SafetensorsFile::open(directory / "golden.safetensors");
  const Tensor<float> x = testing::exact<float>(golden, "x");
  const Tensor<float> wanted = testing::exact<float>(golden, "outputs");
  Tensor<float> outputs(wanted.shape());
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    const Dictionary& dictionary = found[static_cast<std::size_t>(layer)];
    ASSERT_EQ(dictionary.specification().points(), 3 - layer);
    const FeatureRows acts = dictionary.encode(x.view()[layer]);
    for (std::int64_t to = layer; to < 3; ++to) {
      Tensor<float> written(Shape{wanted.shape()[1], wanted.shape()[2]});
      dictionary.decode(acts, x.view()[layer], written, to - layer);
      for (std::int64_t i = 0; i < written.size(); ++i) {
        outputs[to * written.size() + i] += written[i];
      }
    }
  }
  expect_close(outputs, wanted, "outputs of all layers");
}

// Weights that were saved before the factor was folded into them.
TEST(DictionaryGolden, AScalingFactorIsFoldedIn) {
  const std::vector<Dictionary> plain = load_dictionaries(dictionaries() / "standard");
  const SafetensorsFile file =
      SafetensorsFile::open(dictionaries() / "standard/sae_weights.safetensors");
  Json config = parse_json(read_text_file(dictionaries() / "standard/cfg.json"), "cfg.json");
  config["normalize_activations"] = "expected_average_only_in";
  const Dictionary scaled =
      saelens_dictionary(config, file.tensors(), "scaled",
                         {.input_point = {}, .output_point = {}, .norm_scaling_factor = 2.0});
  Tensor<float> x(Shape{3, 8}), twice(Shape{3, 8});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 5) - 2;
    twice[i] = 2 * x[i];
  }
  Tensor<float> out(x.shape()), wanted(x.shape());
  plain.front().decode(plain.front().encode(twice), twice, wanted);
  for (float& value : wanted.span()) value /= 2;
  scaled.decode(scaled.encode(x), x, out);
  expect_close(out, wanted, "output");
}

}  // namespace
}  // namespace heed
