#include "generate/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/expect_error.h"
#include "generate/random_transformer.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::full_logits;
using testing::random_tokens;
using testing::random_transformer;
using testing::relative_error;
using testing::small_config;

constexpr double tolerance = 1e-5;

std::span<const float> row(const Tensor<float>& logits, std::int64_t position) {
  return logits.view()[position].span();
}

TEST(Session, DecodingWithTheCacheEqualsReadingEverythingAtOnce) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(24, 61, 1);
  const Tensor<float> expected = full_logits(transformer, tokens);
  Session session(transformer);
  double worst = 0;
  for (std::int64_t t = 0; t < 24; ++t) {
    const auto logits = session.feed(std::span(tokens).subspan(static_cast<std::size_t>(t), 1));
    worst = std::max(worst, relative_error(logits, row(expected, t)));
    EXPECT_EQ(session.length(), t + 1);
  }
  EXPECT_LE(worst, tolerance);
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", worst));
}

TEST(Session, PrefillInPiecesEqualsPrefillInOnePass) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(20, 61, 2);
  const Tensor<float> expected = full_logits(transformer, tokens);
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 19U, 20U}) {
    Session session(transformer);
    std::span<const float> logits;
    for (std::size_t begin = 0; begin < tokens.size(); begin += piece) {
      logits =
          session.feed(std::span(tokens).subspan(begin, std::min(piece, tokens.size() - begin)));
    }
    EXPECT_LE(relative_error(logits, row(expected, 19)), tolerance) << "pieces of " << piece;
    EXPECT_THAT(session.tokens(), ::testing::ElementsAreArray(tokens));
  }
}

TEST(Session, GivesTheLogitsOfAllPositionsOnRequest) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(12, 61, 3);
  const Tensor<float> expected = full_logits(transformer, tokens);
  Session session(transformer);
  session.feed(std::span(tokens).first(5));
  const Tensor<float> logits = session.feed_for_all_positions(std::span(tokens).subspan(5));
  ASSERT_EQ(logits.shape(), (Shape{7, 61}));
  for (std::int64_t t = 0; t < 7; ++t) {
    EXPECT_LE(relative_error(row(logits, t), row(expected, t + 5)), tolerance);
  }
}

TEST(Session, GoesOnFromWhereItWasCut) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(10, 61, 4);
  const auto other = random_tokens(10, 61, 5);
  Session session(transformer);
  session.feed(tokens);
  session.truncate(4);
  EXPECT_EQ(session.length(), 4);
  EXPECT_EQ(session.room(), 20);
  auto mixed = std::vector(tokens.begin(), tokens.begin() + 4);
  mixed.insert(mixed.end(), other.begin(), other.end());
  const auto logits = session.feed(other);
  EXPECT_LE(relative_error(logits, row(full_logits(transformer, mixed), 13)), tolerance);
  session.reset();
  EXPECT_LE(relative_error(session.feed(other), row(full_logits(transformer, other), 9)),
            tolerance);
}

// Error bounds of quantised caches: a key or value has an error of at most half a step, 2⁻⁹ of
// itself in bf16 and 1/254 of the largest of its row in int8, and the output of a layer about as
// much; three layers of this model, far from linear, more than triple it.
constexpr struct {
  CacheType type;
  double tolerance;
} quantised_caches[] = {{CacheType::bf16, 0x1p-6}, {CacheType::int8, 1.0 / 32}};

TEST(Session, QuantisedCachesChangeLittle) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(24, 61, 1);
  const Tensor<float> expected = full_logits(transformer, tokens);
  for (const auto& [type, tolerance_of_type] : quantised_caches) {
    SCOPED_TRACE(kernels::cache_type_name(type));
    for (const std::size_t piece : {1U, 2U, 7U, 24U}) {
      Session session(transformer, 24, type);
      std::span<const float> logits;
      for (std::size_t begin = 0; begin < tokens.size(); begin += piece) {
        logits =
            session.feed(std::span(tokens).subspan(begin, std::min(piece, tokens.size() - begin)));
      }
      const double error = relative_error(logits, row(expected, 23));
      EXPECT_LE(error, tolerance_of_type) << "pieces of " << piece;
      EXPECT_GT(error, 1e-5) << "the cache is not quantised";
    }
  }
}

TEST(Session, QuantisedCachesContinueAfterTruncation) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(10, 61, 4);
  const auto other = random_tokens(9, 61, 5);
  for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
    Session cut(transformer, 24, type), fresh(transformer, 24, type);
    cut.feed(tokens);
    cut.truncate(4);
    fresh.feed(std::span(tokens).first(4));
    // Reading ten rows and four rounds their sums alike, row by row.
    const auto wanted = fresh.feed(other);
    EXPECT_LE(relative_error(cut.feed(other), wanted), 1e-3);
  }
}

// Prompts that are refused integers are computed in f32, whatever the length of the part that is
// read; steps of decoding are not.
TEST(Session, PromptsOfOneTokenAreRefusedIntegersToo) {
  const auto tokens = random_tokens(6, 61, 8);
  for (const auto format : {kernels::WeightFormat::int8, kernels::WeightFormat::int4}) {
    SCOPED_TRACE(kernels::weight_format_name(format));
    Transformer quantised = random_transformer(small_config());
    quantised.parameters().prepare(format);
    kernels::refuse_integers_for_long_rows();
    const Tensor<float> expected = full_logits(quantised, tokens);
    const auto error_of = [&](std::size_t length, const auto& read_last) {
      Session session(quantised);
      if (length > 1) session.feed(std::span(tokens).first(length - 1));
      return relative_error(read_last(session, tokens[length - 1]),
                            row(expected, static_cast<std::int64_t>(length) - 1));
    };
    const auto fed = [](Session& session, std::int32_t token) { return session.feed({&token, 1}); };
    const auto step = [](Session& session, std::int32_t token) { return session.step(token); };
    const Tensor<float> without_cache = full_logits(quantised, std::span(tokens).first(1));
    const double alone = error_of(1, fed), last = error_of(6, fed), drawn = error_of(6, step);
    kernels::allow_integers_for_long_rows();
    EXPECT_LE(relative_error(without_cache.span(), row(expected, 0)), tolerance);
    EXPECT_LE(alone, tolerance);
    EXPECT_LE(last, tolerance) << "the last token of a prompt, computed alone";
    EXPECT_GT(drawn, 10 * tolerance) << "a step of decoding is not in integers";
    EXPECT_GT(error_of(1, fed), 10 * tolerance) << "integers are allowed";
  }
}

TEST(Session, RefusesWhatItCannotReadAndStaysAsItWas) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(20, 61, 6);
  Session session(transformer);
  session.feed(tokens);
  const auto refuse = [&](std::vector<std::int32_t> bad, const char* part) {
    expect_error(
        ErrorCode::invalid_argument, [&] { session.feed(bad); }, part);
    expect_error(
        ErrorCode::invalid_argument, [&] { session.feed_for_all_positions(bad); }, part);
    EXPECT_EQ(session.length(), 20);
  };
  refuse({}, "at least one token");
  refuse({3, 61}, "token id 61 at position 21 is outside the model's vocabulary of 61");
  refuse({-1}, "token id -1 at position 20");
  refuse({1, 2, 3, 4, 5}, "5 tokens after 20 in the cache exceed the context of 24");
  expect_error(
      ErrorCode::invalid_argument, [&] { session.truncate(21); }, "cannot be truncated to 21");
  expect_error(
      ErrorCode::invalid_argument, [&] { Session(transformer, 25); }, "1 to 24");
  expect_error(
      ErrorCode::invalid_argument, [&] { Session(transformer, 0); }, "1 to 24");
  session.feed(random_tokens(4, 61, 7));
  EXPECT_EQ(session.room(), 0);
}

// Counts what it is shown.
class CountingProbe : public Probe {
 public:
  bool wants(const Point&) const override { return true; }
  void observe(const Point& point, View<const float> values) override {
    ++observed;
    if (point.kind == PointKind::pattern) pattern_shape = values.shape();
  }

  int observed = 0;
  Shape pattern_shape;
};

// Sums the pattern's rows, and remembers what it saw of them.
class PatternProbe : public Probe {
 public:
  bool wants(const Point& point) const override { return point.kind == PointKind::pattern; }
  void observe(const Point& point, View<const float> values) override {
    if (point.kind != PointKind::pattern) return;
    double sum = 0;
    for (const float weight : values.span()) sum += weight;
    rows_off = std::max(rows_off, std::abs(sum / static_cast<double>(values.size() / 6) - 1));
    ++seen;
  }

  int seen = 0;
  double rows_off = 0;
};

TEST(Session, ShowsThePatternOverAQuantisedCache) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(6, 61, 8);
  for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
    Session session(transformer, 24, type), unseen(transformer, 24, type);
    PatternProbe probe;
    session.feed(std::span(tokens).first(5));
    unseen.feed(std::span(tokens).first(5));
    const auto logits = session.feed(std::span(tokens).last(1), &probe);
    EXPECT_THAT(logits, ::testing::ElementsAreArray(unseen.feed(std::span(tokens).last(1))));
    EXPECT_EQ(probe.seen, 3);
    EXPECT_LE(probe.rows_off, tolerance);  // the pattern belongs to what forward attended to
  }
}

TEST(Session, ShowsAPassToItsProbeOnly) {
  const Transformer transformer = random_transformer(small_config());
  const auto tokens = random_tokens(6, 61, 8);
  CountingProbe probe;
  Session session(transformer);
  session.feed(std::span(tokens).first(5));
  session.feed(std::span(tokens).last(1), &probe);
  EXPECT_EQ(probe.observed, static_cast<int>(all_points(3).size()));
  EXPECT_EQ(probe.pattern_shape, (Shape{1, 4, 1, 6}));
}

}  // namespace
}  // namespace heed
