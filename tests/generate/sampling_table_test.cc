#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "heed/sampling.h"

namespace heed {
namespace {

TEST(SamplingTable, NamesEveryOptionOnceWithADefaultInItsRange) {
  std::set<std::string_view> names;
  for (const SamplingOption& option : sampling_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    SamplingOptions read = SamplingOptions::unmodified();
    EXPECT_EQ(option.read(read, option.text({})), "") << option.name;
    EXPECT_EQ(option.text(read), option.text({})) << option.name;
    EXPECT_NE(std::string_view(option.help), "") << option.name;
  }
  SamplingOptions().validate();
  SamplingOptions::unmodified().validate();
}

TEST(SamplingTable, ReadsNumbersOfTheOptionsTypeAndRangeAlone) {
  for (const SamplingOption& option : sampling_options()) {
    for (const std::string& wrong :
         {std::string(), std::string("hot"), std::string("1 "), std::string("nan"),
          std::string("1e400"), std::string("true"), fmt::format("{}", option.min - 1),
          fmt::format("{}", option.max + 1)}) {
      if (option.is_seed() && wrong == fmt::format("{}", option.max + 1)) continue;
      SamplingOptions options;
      EXPECT_NE(option.read(options, wrong), "") << option.name << " " << wrong;
      EXPECT_EQ(option.text(options), option.text({})) << option.name << " " << wrong;
    }
    SamplingOptions options;
    EXPECT_EQ(option.read(options, "0.5").empty(), !option.is_whole()) << option.name;
  }
  SamplingOptions options;
  EXPECT_EQ(sampling_options().front().read(options, "x"), "must be a number from 0 to 100, not x");
}

TEST(SamplingTable, KnowsWhichStagesChangeSomething) {
  const SamplingOptions off = SamplingOptions::unmodified();
  for (std::size_t i = 0; i < sampling_stage_count; ++i) {
    EXPECT_FALSE(is_active(static_cast<SamplingStage>(i), off)) << i;
  }
  for (const SamplingOption& option : sampling_options()) {
    if (option.is_seed()) continue;
    SamplingOptions options = off;
    ASSERT_EQ(option.read(options, "1"), "") << option.name;
    EXPECT_EQ(is_active(option.stage, options), option.unmodified != 1) << option.name;
  }
}

// The table as Markdown, which pages have between two comments.
std::string documented_table() {
  std::string text =
      "| option | command line | default | range | |\n| --- | --- | --- | --- | --- |\n";
  for (const SamplingOption& option : sampling_options()) {
    std::string flags = option.flags();
    if (const std::size_t comma = flags.find(','); comma != std::string::npos) {
      flags.replace(comma, 1, "`, `");
    }
    const std::string range =
        option.is_seed() ? "64 bits" : fmt::format("{} to {}", option.min, option.max);
    text += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", option.name, flags, option.text({}),
                        range, option.help);
  }
  return text;
}

TEST(SamplingTable, IsTheTableOfTheDocumentation) {
  for (const char* const page : {"command_line.md", "server.md", "python.md"}) {
    const std::string text = read_text_file(std::filesystem::path(HEED_SOURCE_DIR) / "docs" / page);
    EXPECT_NE(text.find("\n" + documented_table()), std::string::npos) << page << " should have\n"
                                                                       << documented_table();
  }
}

}  // namespace
}  // namespace heed
