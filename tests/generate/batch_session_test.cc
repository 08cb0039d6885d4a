
#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "generate/session.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::random_tokens;
using testing::random_transformer;
using testing::small_config;

std::int32_t most_likely(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Greedy text of a sequence alone, with all its logits.
struct Alone {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<float>> logits;
};

Alone decode_alone(const Transformer& transformer, const std::vector<std::int32_t>& prompt,
                   int count, CacheType type) {
  Alone alone;
  Session session(transformer, transformer.specification().context, type);
  auto logits = session.feed(prompt);
  for (int i = 0; i < count; ++i) {
    alone.logits.emplace_back(logits.begin(), logits.end());
    alone.tokens.push_back(most_likely(logits));
    if (i + 1 < count) logits = session.feed(std::span(&alone.tokens.back(), 1));
  }
  return alone;
}

// Sequences of different lengths that begin and end at different times give, to the bit, what each
// gives alone.
void expect_same_as_alone(const Transformer& transformer, int sequences,
                          CacheType type = CacheType::f32) {
  constexpr int count = 8;
  const std::int64_t vocabulary = transformer.specification().vocabulary_size;
  BatchSession batch(transformer, transformer.specification().context, type);
  struct Running {
    Alone expected;
    std::int64_t number;
    std::vector<std::int32_t> tokens;
  };
  std::vector<Running> running;
  int begun = 0;
  while (begun < sequences || !running.empty()) {
    for (int k = 0; k < 2 && begun < sequences; ++k, ++begun) {  // two join at every step
      const auto prompt =
          random_tokens(1 + begun % 7, vocabulary, static_cast<std::uint64_t>(begun));
      Running next{
          .expected = decode_alone(transformer, prompt, count, type), .number = 0, .tokens = {}};
      std::vector<float> logits(static_cast<std::size_t>(vocabulary));
      next.number = batch.begin(prompt, logits);
      ASSERT_EQ(logits, next.expected.logits[0]);
      next.tokens.push_back(most_likely(logits));
      running.push_back(std::move(next));
    }
    std::vector<BatchSession::Step> steps;
    for (const Running& one : running) steps.push_back({one.number, one.tokens.back()});
    const View<const float> logits = batch.step(steps);
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto row = logits[static_cast<std::int64_t>(i)].span();
      const auto& expected = running[i].expected.logits[running[i].tokens.size()];
      ASSERT_TRUE(std::equal(row.begin(), row.end(), expected.begin())) << "sequence " << i;
      running[i].tokens.push_back(most_likely(row));
    }
    std::erase_if(running, [&](const Running& one) {
      if (one.tokens.size() < count) return false;
      EXPECT_EQ(one.tokens, one.expected.tokens);
      batch.end(one.number);
      return true;
    });
  }
  EXPECT_EQ(batch.active(), 0);
}

TEST(BatchSession, SequencesDecodeAsTheyWouldAlone) {
  Transformer transformer = random_transformer(small_config());
  for (int sequences : {1, 2, 5, 20}) expect_same_as_alone(transformer, sequences);
}

TEST(BatchSession, SequencesDecodeAsTheyWouldAloneWithPreparedWeights) {
  for (const auto format :
       {kernels::WeightFormat::bf16, kernels::WeightFormat::int8, kernels::WeightFormat::int4}) {
    Transformer transformer = random_transformer(small_config());
    transformer.parameters().prepare(format);
    expect_same_as_alone(transformer, 9);
  }
}

TEST(BatchSession, SequencesDecodeAsTheyWouldAloneWithQuantisedCaches) {
  const Transformer transformer = random_transformer(small_config());
  for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
    expect_same_as_alone(transformer, 9, type);
  }
}

TEST(BatchSession, RefusesWhatCannotBeAndStaysAsItWas) {
  const Transformer transformer = random_transformer(small_config());
  expect_error(
      ErrorCode::invalid_argument, [&] { BatchSession(transformer, 0); }, "must be 1 to");
  BatchSession batch(transformer, 4);
  std::vector<float> logits(static_cast<std::size_t>(transformer.specification().vocabulary_size));
  const auto prompt = random_tokens(3, transformer.specification().vocabulary_size, 1);
  expect_error(
      ErrorCode::invalid_argument, [&] { batch.begin({}, logits); }, "1 to 4 tokens, not 0");
  const std::int64_t sequence = batch.begin(prompt, logits);
  const auto step = [&](std::vector<BatchSession::Step> steps) { batch.step(steps); };
  expect_error(
      ErrorCode::invalid_argument, [&] { step({}); }, "at least one sequence");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        step({{7, 0}});
      },
      "no sequence 7");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        step({{sequence, 0}, {sequence, 1}});
      },
      "repeated in one step");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        step({{sequence, -1}});
      },
      "token id -1");
  EXPECT_EQ(batch.length(sequence), 3);
  step({{sequence, 0}});
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        step({{sequence, 0}});
      },
      "is full");
  batch.end(sequence);
  expect_error(
      ErrorCode::invalid_argument, [&] { batch.end(sequence); }, "no sequence 0");
}

class Watcher final : public Probe {
 public:
  explicit Watcher(PointKind kind) : kind_(kind) {}

  bool wants(const Point& point) const override { return point.kind == kind_; }
  void observe(const Point& point, View<const float> values) override {
    if (point != Point{kind_, 1}) return;
    shape = values.shape();
    seen.assign(values.data(), values.data() + values.size());
  }
  bool wants_attention(std::int64_t) const override { return attention; }

  Shape shape;
  std::vector<float> seen;
  bool attention = false;

 private:
  PointKind kind_;
};

TEST(BatchSession, ShowsSequencesAsTheyAreAlone) {
  const Transformer transformer = random_transformer(small_config());
  BatchSession batch(transformer, 16);
  std::vector<float> logits(61);
  std::vector<BatchSession::Step> steps;
  std::vector<float> alone;
  Watcher stream(PointKind::residual_post);
  for (const std::int64_t length : {3, 7}) {
    const auto prompt = random_tokens(length, 61, 5);
    Session session(transformer, 16);
    Watcher expected(PointKind::pattern), actual(PointKind::pattern);
    session.feed(prompt, &expected);
    steps.push_back({batch.begin(prompt, logits, 0, &actual), 9});
    EXPECT_EQ(actual.shape, (Shape{1, 4, length, length}));
    EXPECT_EQ(actual.seen, expected.seen);
    session.feed(std::vector<std::int32_t>{9}, &stream);
    alone.insert(alone.end(), stream.seen.begin(), stream.seen.end());
  }
  batch.step(steps, &stream);
  EXPECT_EQ(stream.shape, (Shape{2, 1, 32}));
  EXPECT_EQ(stream.seen, alone);
}

TEST(BatchSession, RefusesToShowPatternsOfDifferentLengths) {
  const Transformer transformer = random_transformer(small_config());
  BatchSession batch(transformer, 16);
  std::vector<float> logits(61);
  const std::int64_t sequence = batch.begin(random_tokens(3, 61, 1), logits);
  const std::vector<BatchSession::Step> steps{{sequence, 9}};
  for (const PointKind kind : {PointKind::pattern, PointKind::scores}) {
    Watcher watcher(kind);
    expect_error(
        ErrorCode::unsupported, [&] { batch.step(steps, &watcher); }, "one by one");
  }
  Watcher watcher(PointKind::residual_post);
  watcher.attention = true;
  expect_error(
      ErrorCode::unsupported, [&] { batch.step(steps, &watcher); }, "one by one");
  EXPECT_EQ(batch.length(sequence), 3);
}

TEST(BatchSession, ASequenceTakesTheMemoryThatItIsGoingToNeed) {
  const Transformer transformer = random_transformer(make_gpt_config(1, 2, 16, 256, 61));
  BatchSession batch(transformer, 256);
  const std::vector<std::int32_t> prompt = random_tokens(60, 61, 3);
  std::vector<float> logits(61);
  const std::int64_t small = batch.begin(prompt, logits, 64);
  for (int i = 0; i < 4; ++i) batch.step(std::vector<BatchSession::Step>{{small, 5}});
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        batch.step(std::vector<BatchSession::Step>{{small, 5}});
      },
      "full");
  batch.end(small);
  const std::int64_t whole = batch.begin(prompt, logits);  // not in the small one's memory
  for (int i = 0; i < 196; ++i) batch.step(std::vector<BatchSession::Step>{{whole, 5}});
  EXPECT_EQ(batch.length(whole), 256);
}

}  // namespace
}  // namespace heed
