#include "microscope/explain/neurons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/traces/capture.h"
#include "support/blocks_read.h"

namespace heed {
namespace {

// Against each window traced separately; the last window is shorter.
TEST(NeuronContexts, AreTheWindowsWithTheLargestActivations) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> corpus = testing::random_tokens(10 * 16 + 5, 61, 4);
  const std::vector<NeuronId> neurons{{0, 3}, {2, 100}};
  std::int64_t reports = 0;
  const auto memories = find_neuron_contexts(transformer, corpus, neurons,
                                             {.top = 4,
                                              .window = 16,
                                              .batch = 3,
                                              .before = 5,
                                              .after = 2,
                                              .progress = [&](const Progress& progress) {
                                                EXPECT_EQ(progress.total, std::ssize(corpus));
                                                ++reports;
                                              }});
  EXPECT_EQ(reports, 3 + 1 + 1);
  ASSERT_EQ(memories.size(), 2U);
  for (const NeuronMemory& memory : memories) {
    std::vector<std::pair<float, std::int64_t>> peaks;
    double sum = 0;
    for (std::int64_t first = 0; first < std::ssize(corpus); first += 16) {
      const auto count = std::min<std::int64_t>(16, std::ssize(corpus) - first);
      const Point point{PointKind::neurons_post, memory.id.layer};
      const Capture capture = trace(transformer, std::span(corpus).subspan(first, count), {point});
      std::pair<float, std::int64_t> best{-1e9F, 0};
      for (std::int64_t t = 0; t < count; ++t) {
        const float value = capture.at(point).view()(0, t, memory.id.neuron);
        best = std::max(best, {value, first + t});
        sum += value;
      }
      peaks.push_back(best);
    }
    std::ranges::sort(peaks, std::greater<>{});
    ASSERT_EQ(memory.contexts.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      const NeuronContext& context = memory.contexts[i];
      EXPECT_EQ(context.position, peaks[i].second);
      EXPECT_NEAR(context.activation, peaks[i].first, 1e-5);
      EXPECT_EQ(context.tokens[context.peak], corpus[context.position]);
      EXPECT_EQ(context.activations[context.peak], context.activation);
      EXPECT_EQ(context.tokens.size(), context.activations.size());
      EXPECT_LE(context.peak, 5);
    }
    EXPECT_EQ(memory.largest, memory.contexts.front().activation);
    EXPECT_NEAR(memory.mean_activation, sum / static_cast<double>(corpus.size()), 1e-5);
    EXPECT_EQ(memory.says.most.size(), 4U);
  }
}

// The column of W_out through gain and unembedding: the change of logits per unit of activation.
TEST(NeuronContexts, SaysWhatItsColumnPromotes) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> corpus{1, 2, 3};
  const std::vector<NeuronId> neurons{{1, 7}};
  const NeuronMemory memory =
      find_neuron_contexts(transformer, corpus, neurons, {.top = 61}).front();
  const View<const float> down = transformer.parameters().block(1).down.weight;
  double mean = 0;
  for (std::int64_t c = 0; c < 32; ++c) mean += down(c, 7) / 32;
  for (const ProjectedToken& token : memory.says.most) {
    double expected = 0;
    for (std::int64_t c = 0; c < 32; ++c) {
      expected += (down(c, 7) - mean) * transformer.parameters().final_norm().gain(c) *
                  transformer.parameters().unembedding().weight(token.token, c);
    }
    EXPECT_NEAR(token.score, expected, 1e-5);
  }
}

TEST(NeuronContexts, NeedNoLaterBlock) {
  Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> corpus = testing::random_tokens(40, 61, 4);
  testing::BlocksRead blocks(transformer);
  find_neuron_contexts(transformer, corpus, std::vector{NeuronId{1, 3}, NeuronId{0, 5}},
                       {.window = 16, .batch = 2});
  EXPECT_EQ(blocks.taken(), (std::set<std::int64_t>{0, 1}));
}

TEST(NeuronContexts, RefusesWhatIsNotThere) {
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> corpus{1, 2, 3};
  const auto find = [&](NeuronId id, std::span<const std::int32_t> tokens) {
    find_neuron_contexts(transformer, tokens, std::vector{id});
  };
  EXPECT_THROW(find({3, 0}, corpus), Error);
  EXPECT_THROW(find({0, 128}, corpus), Error);
  EXPECT_THROW(find({0, 0}, {}), Error);
  const std::atomic<bool> stop{true};
  EXPECT_THROW(
      find_neuron_contexts(transformer, corpus, std::vector{NeuronId{0, 0}}, {.stop = &stop}),
      Error);
}

}  // namespace
}  // namespace heed
