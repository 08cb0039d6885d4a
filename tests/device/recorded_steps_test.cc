// Launches that are recorded and repeated, and steps of decoding that are: the bits of those that
// are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "generate/session.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "tensor/device.h"
#include "tensor/device_recording.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::random_tokens;
using testing::random_transformer;

std::vector<float> numbers_of(const Tensor<float>& there) {
  Tensor<float> here(there.shape());
  kernels::copy(there, here);
  return {here.span().begin(), here.span().end()};
}

TEST(DeviceRecording, IsDoneAsOftenAsItIsRepeated) {
  const Device device = open_device("cuda");
  const std::size_t used = device_memory().used;
  {
    Tensor<float> x(Shape{3}, device), sum(Shape{3}, device);
    kernels::fill(x, 1.5F);
    const auto recording = DeviceRecording::begin();
    EXPECT_EQ(DeviceRecording::current(), recording.get());
    kernels::accumulate(x, sum, 2.0F);
    {
      // Memory for the time of the recording, which repetitions use.
      Tensor<float> twice(Shape{3}, device);
      kernels::add(x, x, twice);
      kernels::accumulate(twice, sum);
    }
    recording->finish();
    EXPECT_EQ(DeviceRecording::current(), nullptr);
    EXPECT_THAT(numbers_of(sum), ::testing::Each(0.0F));
    const Tensor<float> other(Shape{3}, device);  // not in that memory
    for (int repetition = 1; repetition <= 3; ++repetition) {
      recording->repeat();
      EXPECT_THAT(numbers_of(sum), ::testing::Each(6.0F * static_cast<float>(repetition)));
    }
    EXPECT_THAT(numbers_of(other), ::testing::Each(0.0F));
  }
  EXPECT_EQ(device_memory().used, used);
}

TEST(DeviceRecording, CopiesFromTheProcessorAtOnceAndNeverToIt) {
  const Device device = open_device("cuda");
  const std::size_t used = device_memory().used;
  {
    Tensor<float> here(Shape{2}), there(Shape{2}, device), sum(Shape{2}, device);
    here.fill(4.0F);
    {
      const auto recording = DeviceRecording::begin();
      kernels::copy(here, there);
      here.fill(5.0F);
      kernels::accumulate(there, sum);
      recording->finish();
      EXPECT_THAT(numbers_of(there), ::testing::Each(4.0F));
      recording->repeat();
      EXPECT_THAT(numbers_of(sum), ::testing::Each(4.0F));
    }
    {
      const auto recording = DeviceRecording::begin();
      kernels::accumulate(there, sum);
      expect_error(
          ErrorCode::unsupported, [&] { kernels::copy(there, here); }, "what is recorded");
      expect_error(
          ErrorCode::unsupported, [] { synchronize_accelerator(); }, "what is recorded");
    }
    {
      const auto recording = DeviceRecording::begin();
      Tensor<float> cleared(Shape{2}, device);
      expect_error(
          ErrorCode::unsupported, [&] { kernels::copy(here, cleared); }, "would be lost");
    }
    // What was given up has not been done, and nothing is recorded any more.
    EXPECT_THAT(numbers_of(sum), ::testing::Each(4.0F));
    kernels::accumulate(there, sum);
    EXPECT_THAT(numbers_of(sum), ::testing::Each(8.0F));
  }
  EXPECT_EQ(device_memory().used, used);
}

TEST(DeviceRecording, IsOfOneThread) {
  const Device device = open_device("cuda");
  Tensor<float> sum(Shape{2}, device), ones(Shape{2}, device);
  kernels::fill(ones, 1.0F);
  auto recording = DeviceRecording::begin();
  std::thread([&] {
    EXPECT_EQ(DeviceRecording::begin(), nullptr);
    kernels::accumulate(ones, sum);
    EXPECT_THAT(numbers_of(sum), ::testing::Each(1.0F));
  }).join();
  recording->finish();
  recording->repeat();  // of nothing
  EXPECT_THAT(numbers_of(sum), ::testing::Each(1.0F));
}

// --- Steps of decoding ---

class Nothing final : public Probe {
 public:
  void observe(const Point&, View<const float>) override {}
  bool wants(const Point&) const override { return false; }
};

struct Decoder {
  std::string name;
  StackSpecification stack;
  CacheType cache = CacheType::f32;
};

StackSpecification learned() { return make_gpt_config(2, 4, 32, 180, 61); }

// Heads in groups, windows with a base of their own, caps.
StackSpecification rotary() {
  StackSpecification stack = learned();
  AttentionSpecification& attention = stack.block.attention;
  attention.key_value_heads = 2;
  attention.positions = PositionKind::rotary;
  attention.rotary.local_base = 500;
  attention.mask = {.kind = MaskKind::banded, .windows = {20, 0}};
  attention.soft_cap = 30;
  return stack;
}

std::vector<Decoder> decoders() {
  return {{"learned positions", learned()},
          {"rotary positions and windows", rotary()},
          {"bf16 keys and values", rotary(), CacheType::bf16},
          {"int8 keys and values", learned(), CacheType::int8}};
}

Transformer placed(const StackSpecification& stack) {
  Transformer transformer = random_transformer(stack);
  transformer.place(open_device("cuda"));
  return transformer;
}

// The logits of the next tokens, where a probe sees each step or none.
std::vector<std::vector<float>> logits_of(Session& session, std::span<const std::int32_t> tokens,
                                          Probe* probe) {
  std::vector<std::vector<float>> all;
  for (const std::int32_t token : tokens) {
    const std::span<const float> logits = session.step(token, probe);
    all.emplace_back(logits.begin(), logits.end());
  }
  return all;
}

// The first step whose logits differ; how many there are where none does.
std::int64_t first_difference(const std::vector<std::vector<float>>& found,
                              const std::vector<std::vector<float>>& expected) {
  return std::ranges::mismatch(found, expected).in1 - found.begin();
}

TEST(RecordedSteps, HaveTheBitsOfOthers) {
  constexpr std::int64_t prompt = 5, steps = 150;  // past 128 positions, a part of the memory
  const auto tokens = random_tokens(prompt + steps, 61, 1);
  const auto first = std::span(tokens).first(prompt), rest = std::span(tokens).subspan(prompt);
  for (const Decoder& decoder : decoders()) {
    const Transformer transformer = placed(decoder.stack);
    Session session(transformer, 180, decoder.cache), watched(transformer, 180, decoder.cache);
    session.feed(first);
    watched.feed(first);
    Nothing nothing;
    const DeviceRecordings before = device_recordings();
    EXPECT_EQ(
        first_difference(logits_of(session, rest, nullptr), logits_of(watched, rest, &nothing)),
        steps)
        << decoder.name;
    const DeviceRecordings after = device_recordings();
    EXPECT_EQ(after.repeated - before.repeated, steps - 1) << decoder.name;  // all but the first
    EXPECT_LE(after.recorded - before.recorded, 3U) << decoder.name;
    EXPECT_GE(after.recorded - before.recorded, 2U) << decoder.name;
  }
}

TEST(RecordedSteps, GoOnAfterACutAndAfterOthers) {
  const Transformer transformer = placed(rotary());
  const auto tokens = random_tokens(40, 61, 2);
  const std::span<const std::int32_t> all = tokens;
  Session session(transformer), watched(transformer);
  Nothing nothing;
  for (Session* each : {&session, &watched}) {
    Probe* const probe = each == &session ? nullptr : &nothing;
    each->feed(all.first(4));
    logits_of(*each, all.subspan(4, 6), probe);
    each->truncate(7);
    logits_of(*each, all.subspan(10, 5), probe);
    each->feed(all.subspan(15, 3));
  }
  // Steps of both by turns, of which one is recorded.
  for (std::size_t i = 18; i < 30; ++i) {
    const auto logits = session.step(tokens[i]);
    const std::vector<float> found(logits.begin(), logits.end());
    EXPECT_EQ(found, logits_of(watched, all.subspan(i, 1), &nothing).front()) << i;
  }
}

TEST(RecordedSteps, OfABatchHaveTheBitsOfOthers) {
  const auto tokens = random_tokens(400, 61, 3);
  for (const Decoder& decoder : decoders()) {
    const Transformer transformer = placed(decoder.stack);
    BatchSession session(transformer, 150, decoder.cache);
    BatchSession watched(transformer, 150, decoder.cache);
    Nothing nothing;
    std::vector<float> next(61);
    std::size_t at = 0;
    std::vector<std::int64_t> sequences;
    for (const std::size_t length : {3U, 9U, 120U}) {
      for (BatchSession* each : {&session, &watched}) {
        const std::int64_t sequence = each->begin(std::span(tokens).subspan(at, length), next);
        if (each == &session) sequences.push_back(sequence);
      }
      at += length;
    }
    const DeviceRecordings before = device_recordings();
    for (int step = 0; step < 20; ++step) {
      if (step == 13) {  // one ends
        session.end(sequences[1]);
        watched.end(sequences[1]);
        sequences.erase(sequences.begin() + 1);
      }
      std::vector<BatchSession::Step> steps;
      for (const std::int64_t sequence : sequences) steps.push_back({sequence, tokens[at++]});
      const auto found = session.step(steps).span();
      EXPECT_TRUE(std::ranges::equal(found, watched.step(steps, &nothing).span()))
          << decoder.name << ", step " << step;
    }
    EXPECT_EQ(device_recordings().repeated - before.repeated, 18U) << decoder.name;
  }
}

// A step of a batch is one of decoding, which multiplies integers even where prompts do not.
TEST(RecordedSteps, OfABatchMultiplyIntegersAsThoseOfOne) {
  Transformer transformer = random_transformer(learned());
  transformer.parameters().prepare(kernels::WeightFormat::int8);
  transformer.place(open_device("cuda"));
  const auto tokens = random_tokens(10, 61, 6);
  kernels::refuse_integers_for_long_rows();
  Session session(transformer);
  BatchSession batch(transformer, 150);
  std::vector<float> next(61);
  session.feed(std::span(tokens).first(3));
  const std::int64_t sequence = batch.begin(std::span(tokens).first(3), next);
  for (std::size_t i = 3; i < 10; ++i) {
    const BatchSession::Step step{sequence, tokens[i]};
    EXPECT_TRUE(std::ranges::equal(batch.step({&step, 1}).span(), session.step(tokens[i]))) << i;
  }
  kernels::allow_integers_for_long_rows();
}

// While another thread records, steps are computed launch by launch.
TEST(RecordedSteps, DoNotWaitForOtherRecordings) {
  const Transformer transformer = placed(learned());
  const auto tokens = random_tokens(12, 61, 7);
  const auto first = std::span(tokens).first(3), rest = std::span(tokens).subspan(3);
  Session session(transformer), watched(transformer);
  session.feed(first);
  watched.feed(first);
  std::latch has_begun(1), may_end(1);
  std::thread other([&] {
    const auto recording = DeviceRecording::begin();
    has_begun.count_down();
    may_end.wait();
  });
  has_begun.wait();
  Nothing nothing;
  const DeviceRecordings before = device_recordings();
  const auto found = logits_of(session, rest.first(5), nullptr);
  EXPECT_EQ(device_recordings().recorded, before.recorded);
  may_end.count_down();
  other.join();
  EXPECT_EQ(found, logits_of(watched, rest.first(5), &nothing));
  EXPECT_EQ(logits_of(session, rest.subspan(5), nullptr),
            logits_of(watched, rest.subspan(5), &nothing));
  EXPECT_EQ(device_recordings().recorded, before.recorded + 1);
}

TEST(RecordedSteps, AreNotOfWhatIsWatched) {
  const Transformer transformer = placed(learned());
  const auto tokens = random_tokens(10, 61, 4);
  Session session(transformer);
  Nothing nothing;
  const DeviceRecordings before = device_recordings();
  session.feed(std::span(tokens).first(3));
  for (std::size_t i = 3; i < 10; ++i) session.step(tokens[i], &nothing);
  EXPECT_EQ(device_recordings().repeated, before.repeated);
  EXPECT_EQ(device_recordings().recorded, before.recorded);
}

TEST(RecordedSteps, GiveTheirMemoryBack) {
  open_device("cuda");
  const std::size_t used = device_memory().used;
  {
    const Transformer transformer = placed(learned());
    const auto tokens = random_tokens(10, 61, 5);
    for (int i = 0; i < 3; ++i) {
      Session session(transformer);
      session.feed(std::span(tokens).first(3));
      for (std::size_t t = 3; t < 10; ++t) session.step(tokens[t]);
    }
  }
  EXPECT_EQ(device_memory().used, used);
}

}  // namespace
}  // namespace heed
