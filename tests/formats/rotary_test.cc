// Scalings of rotary positions as config.json files have them, against what their formulas make of
// frequencies in float64: tests/golden/make_rotary_goldens.py.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "formats/model_files.h"
#include "model/comparison.h"
#include "model/rotary.h"
#include "support/golden.h"

namespace heed {
namespace {
namespace rotary_golden {

using testing::expect_error;
using testing::relative_error;

std::filesystem::path golden() {
  return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/rotary";
}

StackSpecification described(const Json& document) {
  return stack_config_from_json(document, "config.json");
}

Json scalings() { return parse_json(read_text_file(golden() / "scalings.json"), "scalings.json"); }

TEST(RotaryGolden, FrequenciesAndMagnitudesAgree) {
  const Json cases = scalings();
  ASSERT_EQ(cases.size(), 20U);
  for (const Json& expected : cases) {
    const Json& config = expected["config"];
    SCOPED_TRACE(config["rope_scaling"].dump());
    const StackSpecification stack = described(config);
    // Read as they are written, too.
    for (const StackSpecification& read : {stack, described(Json(stack_config_to_json(stack)))}) {
      const AttentionSpecification& attention = read.block.attention;
      const std::vector<double> found =
          rotary_frequencies(attention, expected["length"].get<std::int64_t>());
      ASSERT_EQ(found.size(), expected["frequencies"].size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        // Both are f64; powers and logarithms differ in their last bits.
        const auto frequency = expected["frequencies"][i].get<double>();
        EXPECT_NEAR(found[i], frequency, 1e-13 * frequency) << i;
      }
      EXPECT_NEAR(rotary_magnitude(attention.rotary), expected["magnitude"].get<double>(), 1e-14);
    }
  }
}

TEST(RotaryGolden, NamesAnImpossibleScaling) {
  Json config = scalings()[3]["config"];  // yarn, without a factor
  const auto refuse = [&](const char* key, const Json& value, const char* part) {
    Json changed = config;
    changed["rope_scaling"][key] = value;
    expect_error(
        ErrorCode::corrupt_data, [&] { described(changed); }, part);
  };
  refuse("original_max_position_embeddings", nullptr, "'factor' is missing");
  refuse("original_max_position_embeddings", 1 << 20, "factor");
  refuse("attention_factor", 0.0, "'attention_factor'");
  refuse("mscale", -1.0, "mscale");
  refuse("rope_type", "linear", "'factor' is missing");
  refuse("rope_type", "longrope", "'short_factor' must be a list");
  config = scalings()[12]["config"];
  config["rope_scaling"]["factor"] = 0.5;
  expect_error(
      ErrorCode::corrupt_data, [&] { described(config); }, "factor");
  config["rope_scaling"]["factor"] = 4.0;
  config["head_dim"] = 2;
  expect_error(
      ErrorCode::corrupt_data, [&] { described(config); }, "dynamic", "at least 4 channels");
  config = scalings()[17]["config"];
  config["rope_scaling"]["long_factor"].erase(0);
  expect_error(
      ErrorCode::corrupt_data, [&] { described(config); }, "longrope", "8 pairs", "got 7");
  config["rope_scaling"]["long_factor"].push_back(0.0);
  expect_error(
      ErrorCode::corrupt_data, [&] { described(config); }, "longrope", "above 0, not 0");
}

// A dynamic scaling: the context of a config is that of training.
TEST(RotaryGolden, DynamicTextsMayBeLonger) {
  const auto directory = golden() / "dynamic";
  const Transformer transformer = load_transformer(StacksWanted::one, directory);
  EXPECT_EQ(transformer.specification().context, 64);
  EXPECT_EQ(transformer.specification().block.attention.rotary.scaling.original_context, 16);
  const auto file = SafetensorsFile::open(directory / "golden.safetensors");
  const auto tokens = testing::exact<std::int32_t>(file, "tokens");
  Tensor<float> expected(file.find("logits")->shape);
  read_as_f32(*file.find("logits"), expected);
  const std::int64_t positions = tokens.size();
  const StackActivations activations(transformer.specification(), 1, positions, Keep::one_block);
  transformer.forward(tokens.view().reshape({1, positions}), {.sequences = {1, positions}},
                      activations);
  Tensor<float> logits(Shape{positions, transformer.specification().vocabulary_size});
  transformer.project(activations.final_norm(), logits);
  EXPECT_LE(relative_error(logits.span(), expected.span()), 1e-5);
  // The config that is written says what was read.
  const testing::TemporaryDirectory saved;
  save_transformer(transformer, saved.path());
  EXPECT_EQ(load_transformer(StacksWanted::one, saved.path()).specification(),
            transformer.specification());
  EXPECT_EQ(read_config_document(saved / config_file_name)["max_position_embeddings"], 16);
}

}  // namespace rotary_golden
}  // namespace
}  // namespace heed
