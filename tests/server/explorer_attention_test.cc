// What the page sees of attention is what `heed attend` prints.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/views/report_json.h"
#include "microscope/traces/capture.h"
#include "server/explorer_support.h"

namespace heed::server {
namespace {

using testing::starter_explorer;
using testing::TestExplorer;

class ExplorerAttention : public ::testing::Test {
 protected:
  static constexpr const char* sentence =
      "In the morning she and the painter walked through a garden full of little hills of earth. "
      "Worms hid under the leaves. What she remembered best was the mole";

  TestExplorer& explorer_ = starter_explorer();
  std::string id_ = explorer_.trace(sentence);
  std::vector<std::int32_t> tokens_ = explorer_.model().encode(sentence);
  std::int64_t positions_ = std::ssize(tokens_);
  const StackSpecification& config_ = explorer_.model().transformer.specification();

  std::string at(const std::string& rest) const { return "/api/traces/" + id_ + rest; }
};

TEST_F(ExplorerAttention, EqualsThePatternThatIsPrinted) {
  const Capture capture = trace_patterns(explorer_.model().transformer, tokens_);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    for (std::int64_t head = 0; head < config_.heads(); ++head) {
      const auto seen = explorer_.array(at(fmt::format("/attention/self/{}/{}", layer, head)));
      ASSERT_EQ(seen.shape, (std::vector<std::int64_t>{positions_, positions_}));
      const View<const float> pattern = capture.at({PointKind::pattern, layer}).view()[0][head];
      for (std::int64_t i = 0; i < pattern.size(); ++i) {
        ASSERT_NEAR(seen.values[i], pattern.span()[i], 1e-6) << layer << "." << head;
      }
    }
  }
}

TEST_F(ExplorerAttention, WalksExactlyAsPrinted) {
  const Transformer& transformer = explorer_.model().transformer;
  const std::vector<std::string> bytes = explorer_.model().token_bytes(tokens_);
  const std::vector<TextWord> words = words_of(bytes);
  const TextWord& word = find_word(words, "mole");
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const Capture capture = trace(transformer, tokens_, word_walk_points(config_, layer));
    for (std::int64_t head = 0; head < config_.heads(); ++head) {
      const OrderedJson printed =
          word_walk_json(bytes, &word, walk_word(transformer, capture, layer, head, word.last()));
      EXPECT_EQ(explorer_.get(at(
                    fmt::format("/walk?layer={}&head={}&position={}", layer, head, word.last()))),
                Json::parse(json_text(printed)));
    }
  }
}

TEST_F(ExplorerAttention, RowsColumnsAndTilesAreOfTheSamePlane) {
  const auto plane = explorer_.array(at("/attention/self/2/5"));
  const auto row = explorer_.array(at("/attention/self/2/5/rows/20"));
  const auto column = explorer_.array(at("/attention/self/2/5/columns/7"));
  const auto tile = explorer_.array(at("/attention/self/2/5/tiles/0/0/0"));
  ASSERT_EQ(row.shape, std::vector<std::int64_t>{positions_});
  ASSERT_EQ(tile.shape, plane.shape);
  for (std::int64_t i = 0; i < positions_; ++i) {
    EXPECT_NEAR(row.values[i], plane.values[20 * positions_ + i], 1e-7);
    EXPECT_NEAR(column.values[i], plane.values[i * positions_ + 7], 1e-7);
  }
  for (std::size_t i = 0; i < plane.values.size(); ++i) {
    EXPECT_NEAR(tile.values[i], plane.values[i], 1e-7);
  }
  const Json top = explorer_.get(at("/attention/self/2/5/rows/20?top=3"));
  ASSERT_EQ(top["positions"].size(), 3);
  EXPECT_EQ(top["positions"][0]["weight"].get<float>(), *std::ranges::max_element(row.values));
}

TEST_F(ExplorerAttention, PoolsByMeanAndMax) {
  const auto plane = explorer_.array(at("/attention/self/1/1"));
  for (const char* pooling : {"mean", "max"}) {
    const auto pooled =
        explorer_.array(at(std::string("/attention/self/1/1?pool=4&pooling=") + pooling));
    const std::int64_t side = (positions_ + 3) / 4;
    ASSERT_EQ(pooled.shape, (std::vector<std::int64_t>{side, side}));
    double sum = 0, largest = 0;
    for (std::int64_t t = 4; t < 8; ++t) {
      for (std::int64_t s = 0; s < 4; ++s) {
        sum += plane.values[t * positions_ + s];
        largest = std::max<double>(largest, plane.values[t * positions_ + s]);
      }
    }
    EXPECT_NEAR(pooled.values[side], std::string(pooling) == "max" ? largest : sum / 16, 1e-6);
  }
}

TEST_F(ExplorerAttention, ThumbnailsAreEveryHeadMadeSmall) {
  const auto all = explorer_.array(at("/thumbnails?size=16"));
  const std::int64_t side = all.shape[2];
  EXPECT_LE(side, 16);
  ASSERT_EQ(all.shape, (std::vector<std::int64_t>{config_.layers, config_.heads(), side, side}));
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    for (std::int64_t head = 0; head < config_.heads(); ++head) {
      const auto one =
          explorer_.array(at(fmt::format("/attention/self/{}/{}?pooling=max&pool=2", layer, head)));
      ASSERT_EQ(one.shape[0], side);
      const std::int64_t first = (layer * config_.heads() + head) * side * side;
      for (std::int64_t i = 0; i < side * side; ++i) {
        ASSERT_EQ(all.values[first + i], one.values[i]) << layer << "." << head;
      }
    }
  }
}

TEST_F(ExplorerAttention, ArraysComeInEveryFormat) {
  const std::string target = at("/attention/self/0/0/rows/3");
  const Reply binary = explorer_.send("GET", target);
  EXPECT_EQ(binary.content_type, "application/octet-stream");
  EXPECT_EQ(binary.body.size(), positions_ * sizeof(float));
  EXPECT_NE(std::ranges::find(
                binary.headers,
                std::pair<std::string, std::string>{"X-Heed-Shape", std::to_string(positions_)}),
            binary.headers.end());
  const Reply numpy = explorer_.send("GET", target + "?format=npy");
  EXPECT_TRUE(numpy.body.starts_with("\x93NUMPY"));
  EXPECT_EQ(numpy.body.substr(numpy.body.size() - binary.body.size()), binary.body);
  EXPECT_EQ((numpy.body.size() - binary.body.size()) % 64, 0);
  const Reply csv = explorer_.send("GET", target + "?format=csv");
  EXPECT_EQ(std::ranges::count(csv.body, ','), positions_ - 1);
  EXPECT_NE(explorer_.refusal("GET", target + "?format=xml", 400).find("xml"), std::string::npos);
}

TEST_F(ExplorerAttention, PointsAreThoseOfHeedTrace) {
  for (const Point& point : all_points(config_)) {
    const auto seen = explorer_.array(at("/arrays/" + point_name(point)));
    const Capture capture = trace(explorer_.model().transformer, tokens_, {point});
    const Tensor<float>& expected = capture.at(point);
    ASSERT_EQ(std::ssize(seen.values), expected.size()) << point_name(point);
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(seen.values[i], expected[i]) << point_name(point) << " " << i;
    }
  }
  const auto part = explorer_.array(at("/arrays/q2?positions=3,-1&heads=0,2"));
  EXPECT_EQ(part.shape, (std::vector<std::int64_t>{1, 2, 2, 32}));
}

}  // namespace
}  // namespace heed::server
