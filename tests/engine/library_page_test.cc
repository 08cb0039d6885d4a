// The output of the program in docs/library.md: the figures that it shows are those of the embedded
// model.
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "engine/embedded_files.h"
#include "heed/heed.h"

namespace heed {
namespace {

// Other instruction sets round differently.
constexpr double tolerance = 1e-3;

// The lines of the block after "It prints:".
std::vector<std::string> printed_lines() {
  const std::string page =
      read_text_file(std::filesystem::path(HEED_SOURCE_DIR) / "docs" / "library.md");
  std::istringstream text(page.substr(page.find("It prints:")));
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(text, line) && line != "```") continue;
  while (std::getline(text, line) && line != "```") lines.push_back(line);
  return lines;
}

double last_number(const std::string& line) {
  return std::stod(line.substr(line.find_last_of(' ') + 1));
}

TEST(LibraryPage, ShowsWhatItsProgramPrints) {
  if (!starter_files()) GTEST_SKIP() << "this build carries no starter model";
  const std::vector<std::string> lines = printed_lines();
  ASSERT_EQ(lines.size(), 6U);
  const Model model = Model::load("starter");
  const std::vector<std::int32_t> tokens = model.encode("Once upon a time, a sleek blue hare");

  const auto predicted = model.predict(tokens, {}, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(lines[i].starts_with(predicted[i].text + " ")) << lines[i];
    EXPECT_NEAR(last_number(lines[i]), predicted[i].probability, tolerance);
  }

  const Model::Attention attention = model.attention(tokens);
  EXPECT_TRUE(lines[3].starts_with("in layer 4, head 3, it attends to" +
                                   model.decode({&tokens[6], 1}) + " with weight "))
      << lines[3];
  EXPECT_NEAR(last_number(lines[3]), attention.weight(4, 3, attention.tokens - 1, 6), tolerance);

  const Trace trace = model.trace(tokens, {.points = {"resid_post5"}, .positions = {-1}});
  EXPECT_NEAR(last_number(lines[4]), trace.arrays.front().values.front(), 10 * tolerance);

  const std::string shown = lines[5].substr(0, lines[5].find("…"));
  std::string generated;
  model.generate("Once upon a time", {.max_new_tokens = 40}, [&](std::string_view text) {
    generated += text;
    return true;
  });
  EXPECT_TRUE(generated.starts_with(shown)) << generated;
}

}  // namespace
}  // namespace heed
