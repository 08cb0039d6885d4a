// Searches of trained toys against those that tests/golden/make_search_goldens.py wrote: greedy,
// with four beams, and over every output.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "formats/model_files.h"
#include "generate/beam_search.h"

namespace heed {
namespace {

struct SearchGolden {
  Transformer model;
  Json decoding;

  explicit SearchGolden(const std::string& name)
      : model(load_transformer(StacksWanted::two, directory(name))),
        decoding(parse_json(read_text_file(directory(name) / "decoding.json"), name)) {}

  static std::filesystem::path directory(const std::string& name) {
    return std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/pairs" / name;
  }
};

void expect_listed(const std::vector<TokenHypothesis>& found, const Json& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i]["tokens"].get<std::vector<std::int32_t>>()) << i;
    // logits of f32 in both programs, and sums of at most five of them
    EXPECT_NEAR(found[i].log_probability, expected[i]["log_probability"].get<double>(), 2e-5);
    EXPECT_NEAR(found[i].score, expected[i]["score"].get<double>(), 2e-5);
    EXPECT_TRUE(found[i].finished);
  }
}

class BeamGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(BeamGolden, SearchesAreThoseOfPyTorch) {
  const SearchGolden golden(GetParam());
  const auto longest = golden.decoding["longest"].get<std::int64_t>();
  const auto beams = golden.decoding["beams"].get<std::int64_t>();
  ASSERT_GE(golden.decoding["sources"].size(), 3U);
  for (const Json& source : golden.decoding["sources"]) {
    const auto tokens = source["source"].get<std::vector<std::int32_t>>();
    const std::vector<std::int64_t> row_starts{0, std::ssize(tokens)};
    const TokenRows rows{tokens, row_starts};
    const auto greedy = greedy_search(golden.model, rows, {.max_length = longest}).front();
    EXPECT_EQ(greedy.tokens, source["greedy"].get<std::vector<std::int32_t>>());
    for (const Json& search : source["searches"]) {
      BeamOptions options{.beams = beams,
                          .length_penalty = search["length_penalty"].get<double>(),
                          .n_best = beams,
                          .max_length = longest};
      expect_listed(beam_search(golden.model, rows, options).front(), search["beam"]);
      options.beams = 1024;  // more than there are outputs of so few tokens
      options.n_best = std::ssize(search["exhaustive"]);
      expect_listed(beam_search(golden.model, rows, options).front(), search["exhaustive"]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, BeamGolden,
                         ::testing::Values("marian_beams", "bart_beams", "t5_beams"));

}  // namespace
}  // namespace heed
