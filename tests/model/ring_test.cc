// Sequences that several members share: losses and gradients of all members together are those of
// whole sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/expect_error.h"
#include "base/threads.h"
#include "comm/local_group.h"
#include "model/comparison.h"
#include "model/transformer.h"

namespace heed {
namespace {

using testing::as_members;
using testing::relative_error;

class LocalRing final : public KeyValueRing {
 public:
  LocalRing(Group& group, std::int64_t whole)
      : KeyValueRing({group.rank(), group.size(), whole}), group_(group) {}

  void begin(std::span<const float> sent, std::span<float> received) override {
    const int members = place().members, member = place().member;
    under_way_.push_back(group_.begin_shift({.sent = std::as_bytes(sent),
                                             .to = (member + 1) % members,
                                             .received = std::as_writable_bytes(received),
                                             .from = (member + members - 1) % members}));
  }
  void advance() override { group_.progress(); }
  void finish() override {
    group_.wait(*under_way_.front());
    under_way_.pop_front();
  }
  double sum(double value) override { return value; }

 private:
  Group& group_;
  std::deque<std::shared_ptr<const Exchange>> under_way_;
};

TEST(RingPlace, EveryPositionHasOneMember) {
  for (const int members : {1, 2, 3, 5}) {
    const std::int64_t whole = std::int64_t{2} * members * 7;
    std::vector<int> of(static_cast<std::size_t>(whole));
    for (int member = 0; member < members; ++member) {
      const RingPlace place{member, members, whole};
      for (const std::int64_t chunk : {0, 1}) {
        for (std::int64_t t = 0; t < place.chunk_length(); ++t) {
          ++of[static_cast<std::size_t>(place.start(member, chunk) + t)];
        }
      }
    }
    EXPECT_TRUE(std::ranges::all_of(of, [](int count) { return count == 1; })) << members;
  }
}

// Pairs of a query of `place` and a visible key of member `source`.
std::int64_t visible_pairs(const RingPlace& place, int source) {
  std::int64_t pairs = 0;
  for (const std::int64_t query : {0, 1}) {
    for (const std::int64_t key : {0, 1}) {
      for (std::int64_t t = 0; t < place.chunk_length(); ++t) {
        const std::int64_t seen =
            place.start(place.member, query) + t - place.start(source, key) + 1;
        pairs += std::clamp<std::int64_t>(seen, 0, place.chunk_length());
      }
    }
  }
  return pairs;
}

TEST(RingPlace, MembersHaveEqualWorkInEveryTurn) {
  const int members = 4;
  for (int turn = 0; turn < members; ++turn) {
    std::int64_t least = std::int64_t{1} << 60, most = 0;
    for (int member = 0; member < members; ++member) {
      const RingPlace place{member, members, 800};
      const std::int64_t pairs = visible_pairs(place, place.source(turn));
      least = std::min(least, pairs);
      most = std::max(most, pairs);
    }
    EXPECT_EQ(least, most) << "turn " << turn;
  }
}

struct OneThread {
  OneThread() { set_thread_count(1); }
  ~OneThread() { set_thread_count(before); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

  int before = thread_count();
};

struct Result {
  LossSum loss;
  std::vector<float> gradients;
};

struct Problem {
  StackSpecification config;
  std::int64_t batch;
  kernels::Precision precision = kernels::Precision::f32;
  Keep keep = Keep::every_block;

  Tensor<std::int32_t> tokens(std::int64_t step) const {
    Tensor<std::int32_t> tokens(Shape{batch, config.context});
    for (std::int64_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::int32_t>(i * step % config.vocabulary_size);
    }
    return tokens;
  }

  // Of a member of `ring`, or of whole sequences.
  Result run(KeyValueRing* ring) const {
    Transformer transformer({.stacks = {config}});
    transformer.parameters().initialize(2);
    for (float& value : transformer.parameters().all()) value *= 2;  // gains as well
    transformer.parameters().set_precision(precision);
    const PassShape shape(batch, config.context, ring);
    TrainingBuffers buffers(config, shape.batch, shape.positions, keep);
    Gradients gradients({.stacks = {config}});
    const Tensor<std::int32_t> inputs = tokens(7);
    Tensor<std::int32_t> targets = tokens(5);
    targets[3] = kernels::ignored_target;
    const LossSum loss = transformer.loss_and_gradients(
        inputs, targets,
        {.scale = 0.5F,
         .dropout = {.active = true, .seed = 3, .pass = 4, .first_sequence = 5},
         .ring = ring},
        buffers, gradients);
    return {loss, {gradients.all().begin(), gradients.all().end()}};
  }

  // Summed over `members`, in their order, of one thread each.
  Result run_in_ring(int members) const {
    const OneThread one_thread;
    std::vector<Result> results(static_cast<std::size_t>(members));
    as_members(members, [&](Group& group) {
      LocalRing ring(group, config.context);
      results[static_cast<std::size_t>(group.rank())] = run(&ring);
    });
    Result all = std::move(results.front());
    for (std::size_t r = 1; r < results.size(); ++r) {
      all.loss += results[r].loss;
      for (std::size_t i = 0; i < all.gradients.size(); ++i) {
        all.gradients[i] += results[r].gradients[i];
      }
    }
    return all;
  }
};

// GPT-2's block with dropout; two layers, so that gradients come back through attention.
StackSpecification with_learned_positions(std::int64_t context) {
  StackSpecification config = make_gpt_config(2, 4, 32, context, 61);
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0.2F;
  return config;
}

StackSpecification with_rotary_positions(std::int64_t context) {
  StackSpecification config = make_gpt_config(2, 4, 32, context, 61);
  AttentionSpecification& attention = config.block.attention;
  attention.positions = PositionKind::rotary;
  attention.key_value_heads = 2;
  attention.query_key_norm = true;
  return config;
}

StackSpecification with_windows(std::int64_t context, std::vector<std::int64_t> windows) {
  StackSpecification config = with_rotary_positions(context);
  config.block.attention.mask = {.kind = MaskKind::banded, .windows = std::move(windows)};
  config.attention_dropout = 0.2F;
  return config;
}

StackSpecification that_sees_both_sides(std::int64_t context) {
  StackSpecification config = with_learned_positions(context);
  config.block.attention.mask = {.kind = MaskKind::full};
  config.role = StackRole::encoder;
  return config;
}

// Sums are split at other places. A score of magnitude M carries a few roundings of M, so that
// attention over S positions errs by (8 + 2·M + √S/4)·u, with u = 2^-24, and its gradients by four
// times that. Where queries and keys of D = 8 are normalised, with gains of 2, M = 4·√D = 11; √S/4
// is at most 7.
constexpr double tolerance = 4 * (8 + 2 * 11 + 7) / static_cast<double>(1 << 24);

void expect_same(const Problem& problem, int members, double most) {
  const Result whole = problem.run(nullptr), parts = problem.run_in_ring(members);
  EXPECT_EQ(parts.loss.count, whole.loss.count);
  EXPECT_NEAR(parts.loss.sum, whole.loss.sum, most * whole.loss.sum);
  EXPECT_LE(relative_error(parts.gradients, whole.gradients), most);
  const Result again = problem.run_in_ring(members);
  EXPECT_EQ(again.loss.sum, parts.loss.sum);
  EXPECT_EQ(relative_error(again.gradients, parts.gradients), 0.0);
}

TEST(Ring, MembersComputeWhatOneDoes) {
  for (const int members : {1, 2, 3, 4}) {
    SCOPED_TRACE(members);
    expect_same({with_learned_positions(48), 3}, members, tolerance);
    expect_same({with_rotary_positions(72), 2}, members, tolerance);
    expect_same({that_sees_both_sides(48), 2}, members, tolerance);
  }
}

// Chunks of several blocks of queries.
TEST(Ring, LongChunksAreAttendedToInBlocks) {
  expect_same({with_learned_positions(560), 1}, 2, tolerance);
  expect_same({with_rotary_positions(780), 1}, 3, tolerance);
}

// Windows inside of a chunk, over several, and over all; with rows that see nothing of a chunk.
TEST(Ring, WindowsReachAcrossMembers) {
  for (const int members : {2, 3}) {
    SCOPED_TRACE(members);
    expect_same({with_windows(48, {5, 30}), 2}, members, tolerance);
    expect_same({with_windows(600, {130, 600}), 1}, members, tolerance);
  }
}

TEST(Ring, BlocksMayBeRecomputed) {
  const Problem kept{with_learned_positions(48), 2};
  Problem recomputed = kept;
  recomputed.keep = Keep::residuals;
  const Result one = kept.run_in_ring(3), other = recomputed.run_in_ring(3);
  EXPECT_EQ(one.loss.sum, other.loss.sum);
  EXPECT_EQ(relative_error(other.gradients, one.gradients), 0.0);
}

// In bf16 a weight of attention is rounded relative to the largest of its row so far, which depends
// on where the memory is cut: one rounding of 2^-9 of each weight.
TEST(Ring, Bf16DiffersByTheRoundingOfWeights) {
  expect_same({with_learned_positions(560), 1, kernels::Precision::bf16}, 2, 4.0 / (1 << 9));
}

TEST(Ring, LossesOfEvaluationsAddUp) {
  const Problem problem{with_learned_positions(48), 2};
  Transformer transformer({.stacks = {problem.config}});
  transformer.parameters().initialize(2);
  const Tensor<std::int32_t> tokens = problem.tokens(7), targets = problem.tokens(5);
  EvaluationBuffers whole(problem.config, 2, 48);
  const LossSum expected = transformer.loss(tokens, targets, whole);
  std::vector<LossSum> losses(3);
  as_members(3, [&](Group& group) {
    LocalRing ring(group, 48);
    const PassShape shape(2, 48, &ring);
    EvaluationBuffers buffers(problem.config, shape.batch, shape.positions);
    losses[static_cast<std::size_t>(group.rank())] =
        transformer.loss(tokens, targets, buffers, nullptr, &ring);
  });
  const LossSum all = std::accumulate(losses.begin(), losses.end(), LossSum{},
                                      [](LossSum sum, const LossSum& one) { return sum += one; });
  EXPECT_EQ(all.count, expected.count);
  EXPECT_NEAR(all.sum, expected.sum, tolerance * expected.sum);
}

TEST(Ring, TakesSequencesOfItsLength) {
  const Problem problem{with_learned_positions(48), 2};
  as_members(1, [&](Group& group) {
    LocalRing ring(group, 24);
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { problem.run(&ring); },
        "tokens of a ring has shape (2, 48), expected (2, 24)");
  });
}

}  // namespace
}  // namespace heed
