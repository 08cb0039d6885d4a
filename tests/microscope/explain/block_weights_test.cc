// What reads matrices as such, of a model in the blocks of a GGUF file: they are restored first.
#include <gtest/gtest.h>

#include <vector>

#include "formats/gguf_save.h"
#include "formats/model_files.h"
#include "microscope/explain/head_circuits.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/explain/neurons.h"
#include "microscope/explain/weight_processing.h"
#include "microscope/explain/word_directions.h"
#include "support/small_model.h"

namespace heed {
namespace {

// Rows of 64 numbers are two blocks of Q8_0.
class ExplainedBlocks : public ::testing::Test {
 protected:
  ExplainedBlocks() {
    StackSpecification stack = make_gpt_config(2, 2, 64, 32, 50);
    stack.initial_deviation = 0.3F;
    Transformer model({.stacks = {stack}});
    model.parameters().initialize(3);
    save_gguf(model, path_, {}, {.name = "small"}, GgufWeights::q8_0);
  }

  Transformer blocks() const {
    Transformer model = load_transformer(StacksWanted::one, path_);
    EXPECT_TRUE(model.parameters().are_in_blocks());
    return model;
  }
  Transformer restored() const {
    Transformer model = load_transformer(StacksWanted::one, path_);
    model.parameters().prepare(kernels::WeightFormat::f32);
    return model;
  }

  testing::ScratchDirectory scratch_;
  const std::filesystem::path path_ = scratch_.path() / "small.gguf";
};

void expect_same(View<const float> left, View<const float> right) {
  ASSERT_EQ(left.shape(), right.shape());
  EXPECT_TRUE(std::ranges::equal(left.span(), right.span()));
}

TEST_F(ExplainedBlocks, HaveTheMatricesOfTheirHeadsAndNeurons) {
  const Transformer model = blocks(), expected = restored();
  const LayerHeads heads(model, 1), expected_heads(expected, 1);
  expect_same(heads.all_queries(), expected_heads.all_queries());
  expect_same(heads.all_outputs(), expected_heads.all_outputs());
  EXPECT_EQ(neuron_output_lengths(model, 0), neuron_output_lengths(expected, 0));
}

TEST_F(ExplainedBlocks, HaveTheWordsOfTheirTables) {
  const Transformer model = blocks(), expected = restored();
  const std::vector<std::int32_t> tokens = {3, 49, 0};
  const Tensor<float> words = word_directions(model, tokens, WordDirection::read);
  expect_same(words, word_directions(expected, tokens, WordDirection::read));
  expect_same(word_directions(model, tokens, WordDirection::next),
              word_directions(expected, tokens, WordDirection::next));
  for (const auto& project : {project_to_logits, project_to_embeddings}) {
    const auto found = project(model, words, 3), wanted = project(expected, words, 3);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].most.front().score, wanted[i].most.front().score);
      EXPECT_EQ(found[i].least.front().token, wanted[i].least.front().token);
    }
  }
}

TEST_F(ExplainedBlocks, AreProcessedAsTheirRestoredWeights) {
  const Transformer processed = process_weights(blocks(), {});
  const Transformer expected = process_weights(restored(), {});
  for (const Parameter& parameter : expected.parameters().list()) {
    expect_same(processed.parameters().tensor(parameter.id),
                expected.parameters().tensor(parameter.id));
  }
}

}  // namespace
}  // namespace heed
