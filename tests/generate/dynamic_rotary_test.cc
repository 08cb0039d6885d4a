// Texts beyond the context of training, where a dynamic scaling turns by their length, read with a
// cache: tests/golden/make_rotary_goldens.py.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/model_files.h"
#include "generate/session.h"
#include "model/comparison.h"
#include "support/golden.h"

namespace heed {
namespace {
namespace dynamic_rotary {

using testing::relative_error;

constexpr std::int64_t prompt = 24;

class DynamicRotary : public ::testing::Test {
 protected:
  DynamicRotary()
      : transformer_(load_transformer(StacksWanted::one, directory())),
        file_(SafetensorsFile::open(directory() / "golden.safetensors")),
        tokens_(testing::exact<std::int32_t>(file_, "tokens")),
        decoded_(file_.find("decoded")->shape) {
    read_as_f32(*file_.find("decoded"), decoded_);
  }

  static std::filesystem::path directory() {
    return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/rotary/dynamic";
  }
  std::span<const std::int32_t> tokens() const { return tokens_.span(); }
  void expect_step(std::int64_t step, std::span<const float> logits) const {
    EXPECT_LE(relative_error(logits, decoded_.view()[step].span()), 1e-5) << "step " << step;
  }

  Transformer transformer_;
  SafetensorsFile file_;
  Tensor<std::int32_t> tokens_;
  Tensor<float> decoded_;  // (17, V)
};

TEST_F(DynamicRotary, KeysKeepTheFrequenciesWithWhichTheyWereRead) {
  Session session(transformer_);
  expect_step(0, session.feed(tokens().first(prompt)));
  for (std::int64_t step = 1; step <= 16; ++step) {
    expect_step(step, session.feed(tokens().subspan(prompt + step - 1, 1)));
  }
}

// A prompt that is read in parts is that of one pass, once its length is announced.
TEST_F(DynamicRotary, PartsOfAPromptAreOneText) {
  Session session(transformer_);
  session.expect(prompt);
  session.feed(tokens().first(10));
  expect_step(0, session.feed(tokens().subspan(10, prompt - 10)));
  session.expect(0);
  expect_step(1, session.feed(tokens().subspan(prompt, 1)));
}

TEST_F(DynamicRotary, ReusesNoPrefixThatTurnsOtherwise) {
  Session session(transformer_);
  session.feed(tokens().first(10));
  EXPECT_EQ(session.reusable(8, 16), 8) << "both texts are within the context of training";
  EXPECT_EQ(session.reusable(8, 17), 0);
  session.feed(tokens().subspan(10, 14));
  EXPECT_EQ(session.reusable(8, 12), 0);
}

// Each sequence of a batch turns by its own length.
TEST_F(DynamicRotary, SequencesOfABatchDoNotDependOnEachOther) {
  BatchSession batch(transformer_, 64);
  std::vector<float> logits(static_cast<std::size_t>(transformer_.specification().vocabulary_size));
  const std::int64_t other = batch.begin(tokens().first(5), logits);
  const std::int64_t own = batch.begin(tokens().first(prompt), logits);
  expect_step(0, logits);
  for (std::int64_t step = 1; step <= 16; ++step) {
    const std::int32_t token = tokens()[static_cast<std::size_t>(prompt + step - 1)];
    const BatchSession::Step steps[] = {{other, tokens()[static_cast<std::size_t>(step)]},
                                        {own, token}};
    expect_step(step, batch.step(steps)[1].span());
  }
}

}  // namespace dynamic_rotary
}  // namespace
}  // namespace heed
