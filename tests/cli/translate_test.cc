// heed translate, with a small translator of random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "engine/embedded_files.h"
#include "support/small_translator_files.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;
using testing::TemporaryDirectory;

// Made once for the program's life.
std::string with_translator() {
  static const TemporaryDirectory directory;
  static const bool written = [] {
    testing::write_small_translator(directory / "small");
    return true;
  }();
  EXPECT_TRUE(written);
  return "-m " + (directory / "small").string() + " -t 1 ";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TranslateCommand, TranslatesALineEach) {
  const std::string call = "translate " + with_translator() + "--beams 2 -n 8 ";
  const Outcome first = run_heed(call + "'the dog sees'");
  ASSERT_EQ(first.status, 0) << first.err;
  const Outcome second = run_heed(call + "'a bird'");
  const Outcome both = run_heed(call, "printf 'the dog sees\\n\\na bird\\r\\n' |");
  ASSERT_EQ(both.status, 0) << both.err;
  // A blank line stays one, and lines keep their order.
  EXPECT_EQ(both.out, first.out + "\n" + second.out);
  EXPECT_EQ(run_heed(call + "-", "printf 'a bird' |").out, second.out);

  const TemporaryDirectory directory;
  const std::string file = (directory / "source.txt").string();
  write_text_file(file, "the dog sees\n\na bird\n");
  EXPECT_EQ(run_heed(call + file).out, both.out);
  EXPECT_EQ(run_heed(call + "-f " + file).out, both.out);
  const std::string out = (directory / "target.txt").string();
  EXPECT_EQ(run_heed(call + "-f " + file + " -o " + out).out, "");
  EXPECT_EQ(read_text_file(out), both.out);
}

// The encoder reads 32 tokens.
TEST(TranslateCommand, CropsOrSplitsLongLines) {
  const std::string call = "translate " + with_translator() + "--beams 2 -n 8 ";
  std::string sentences, words;
  for (int i = 0; i < 12; ++i) sentences += std::string(i > 0 ? " " : "") + "the dog sees the cat.";
  for (int i = 0; i < 60; ++i) words += std::string(i > 0 ? " " : "") + "bird";
  const std::string input = "printf 'a bird\\n" + sentences + "\\n\\n" + words + "\\n' |";
  const Outcome refused = run_heed(call, input);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("line 2 has"));
  EXPECT_EQ(refused.out, "");

  const Outcome split = run_heed(call + "--long-lines split", input);
  ASSERT_EQ(split.status, 0) << split.err;
  EXPECT_EQ(lines_of(split.out).size(), 4U);  // a line each
  EXPECT_THAT(split.err, HasSubstr("2 lines have more than the 32 tokens that the encoder reads"));
  EXPECT_THAT(split.err, HasSubstr("were split: 2, 4"));
  const auto translations = [&](const char* how) {  // beside a note on standard error
    const Outcome outcome = run_heed(call + "--long-lines " + how + " --json", input);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out)["translations"];
  };
  const Json parts = translations("split");
  const auto said = [](const Json& part) {
    auto text = part["hypotheses"][0]["text"].get<std::string>();
    std::ranges::replace_if(
        text, [](char letter) { return letter == '\n' || letter == '\r'; }, ' ');
    return text;
  };
  std::string joined[4], translated;
  for (const Json& part : parts) {
    const auto source = part["source"].get<std::string>();
    std::string& line = joined[part["line"].get<std::size_t>() - 1];
    line += (line.empty() || source.empty() ? "" : " ") + source;
    if (part["line"] == 2) {
      EXPECT_TRUE(source.ends_with("cat.")) << source;
      translated += (part["part"] == 1 ? "" : " ") + said(part);
      // What is translated is what the part alone gives.
      EXPECT_EQ(run_heed(call + "'" + source + "'").out, said(part) + "\n");
    }
  }
  EXPECT_EQ(joined[1], sentences);
  EXPECT_EQ(joined[3], words);
  EXPECT_EQ(lines_of(split.out)[1], translated);

  const Json cropped = translations("crop");
  ASSERT_EQ(cropped.size(), 4U);
  EXPECT_FALSE(cropped[0].contains("cropped"));
  EXPECT_EQ(cropped[1]["cropped"], true);
  for (const std::size_t line : {1U, 3U}) {
    const auto source = cropped[line]["source"].get<std::string>();
    EXPECT_TRUE((line == 1 ? sentences : words).starts_with(source + " ")) << source;
    EXPECT_GT(source.size(), 20U);
  }
  EXPECT_THAT(run_heed(call + "--long-lines crop", input).err, HasSubstr("were cropped: 2, 4"));
  // A word without spaces is cut between characters.
  const Outcome word = run_heed(call + "--long-lines split \"$(printf 'ö%.0s' $(seq 100))\"");
  EXPECT_EQ(word.status, 0) << word.err;
  EXPECT_EQ(run_heed(call + "--long-lines split --best 2", input).status, 2);
  EXPECT_EQ(run_heed(call + "--long-lines half", input).status, 2);
}

TEST(TranslateCommand, ReadsFilesOfOtherSystems) {
  const TemporaryDirectory directory;
  const std::string call = "translate " + with_translator() + "--beams 2 -n 8 ";
  const std::string file = (directory / "source.txt").string();
  write_text_file(file, "\xEF\xBB\xBFthe dog sees\r\na bird\r\n");
  EXPECT_EQ(run_heed(call + file).out, run_heed(call, "printf 'the dog sees\\na bird\\n' |").out);
}

TEST(TranslateCommand, ListsTheBestWithTheirScores) {
  const std::string call = "translate " + with_translator() + "--beams 3 -n 6 ";
  const Outcome listed = run_heed(call + "--best 3", "printf 'the dog\\n\\na bird\\n' |");
  ASSERT_EQ(listed.status, 0) << listed.err;
  const auto lines = lines_of(listed.out);
  ASSERT_EQ(lines.size(), 6U);
  double before = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t tab = lines[i].find('\t'), second = lines[i].find('\t', tab + 1);
    EXPECT_EQ(lines[i].substr(0, tab), i < 3 ? "1" : "3");  // of the line
    const double score = std::stod(lines[i].substr(tab + 1, second - tab - 1));
    if (i % 3 != 0) {
      EXPECT_LE(score, before);
    }
    before = score;
  }
  const Json document = json_of(call + "--best 3 --json", "printf 'the dog\\n\\na bird\\n' |");
  ASSERT_EQ(document["translations"].size(), 3U);
  EXPECT_EQ(document["translations"][1]["hypotheses"].size(), 0U);
  EXPECT_TRUE(document["translations"][2]["source"] == "a bird");
  const Json& best = document["translations"][2]["hypotheses"][0];
  EXPECT_EQ(best["text"].get<std::string>(), lines[3].substr(lines[3].rfind('\t') + 1));
  EXPECT_NEAR(best["score"].get<double>(),
              best["log_probability"].get<double>() / static_cast<double>(best["tokens"].size()),
              1e-9);
}

// Of a line of UTF-8.
std::ptrdiff_t letters_of(const std::string& line) {
  return std::ranges::count_if(line, [](char byte) { return (byte & 0xC0) != 0x80; });
}

TEST(TranslateCommand, DrawsTheSearchAsATree) {
  const std::string call = "translate " + with_translator() + "--beams 3 -n 6 'the dog sees' ";
  const Json listed = json_of(call + "--best 3 --json")["translations"][0]["hypotheses"];
  const Json tree = json_of(call + "--tree --json");
  EXPECT_TRUE(tree["source"] == "the dog sees");
  ASSERT_EQ(tree["hypotheses"].size(), listed.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(tree["hypotheses"][i]["tokens"], listed[i]["tokens"]);
    EXPECT_EQ(tree["hypotheses"][i]["score"], listed[i]["score"]);
    const Json& last = tree["nodes"][tree["hypotheses"][i]["node"].get<std::size_t>()];
    EXPECT_EQ(last["sum"], listed[i]["log_probability"]);
  }
  for (const int width : {44, 80, 120}) {
    const std::string columns = "LC_ALL=C.UTF-8 COLUMNS=" + std::to_string(width) + " ";
    const Outcome drawn = run_heed(call + "--tree", columns);
    ASSERT_EQ(drawn.status, 0) << drawn.err;
    for (const char* part : {"Beam search", "3 beams", "the dog sees", "●", "score"}) {
      EXPECT_THAT(drawn.out, HasSubstr(part));
    }
    for (const std::string& line : lines_of(drawn.out)) {
      EXPECT_LE(letters_of(line), width) << line;
    }
  }
  const Outcome plain = run_heed(call + "--tree", "LC_ALL=POSIX");
  EXPECT_EQ(plain.out.find("●"), std::string::npos);
  EXPECT_THAT(plain.out, HasSubstr("*"));
}

// Its lines, without digits and without what has hardly any probability: other instruction sets
// round both otherwise.
std::vector<std::string> likely_lines(const std::string& tree) {
  std::vector<std::string> lines = lines_of(tree);
  std::erase_if(lines, [](const std::string& line) {
    return line.empty() || line.find("<.1 %") != line.npos;
  });
  for (std::string& line : lines) {
    std::ranges::replace_if(
        line, [](unsigned char c) { return std::isdigit(c) != 0; }, '#');
  }
  return lines;
}

TEST(TranslateCommand, DrawsTheTreeOfItsDocumentation) {
  if (!translator_files()) GTEST_SKIP() << "this build carries no translator";
  const std::string documentation =
      read_text_file(std::filesystem::path(HEED_SOURCE_DIR) / "docs/translation.md");
  const std::string prompt = "$ heed ";
  const std::size_t call = documentation.find(prompt + "translate --tree") + prompt.size();
  ASSERT_GE(call, prompt.size());
  const std::size_t begin = documentation.find('\n', call) + 1;
  const std::string said = documentation.substr(begin, documentation.find("```", begin) - begin);
  const Outcome drawn =
      run_heed(documentation.substr(call, begin - 1 - call), "LC_ALL=C.UTF-8 COLUMNS=80");
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  std::vector<std::string> lines = likely_lines(drawn.out);
  const std::vector<std::string> expected = likely_lines(said);
  ASSERT_GE(lines.size(), expected.size());
  EXPECT_GE(expected.size(), 12U);
  lines.resize(expected.size());  // a legend follows
  EXPECT_EQ(lines, expected);
}

TEST(TranslateCommand, TakesEveryTypeOfWeightsAndCache) {
  for (const char* dtype : {"f32", "bf16", "int8", "int4"}) {
    for (const char* cache : {"f32", "bf16", "int8"}) {
      const Outcome outcome = run_heed("translate 'the dog' -n 4 --dtype " + std::string(dtype) +
                                       " --cache-type " + cache + " " + with_translator());
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_EQ(lines_of(outcome.out).size(), 1U);
    }
  }
}

TEST(TranslateCommand, MistakesAreNamed) {
  const auto expect = [](const std::string& call, int status, const std::string& message,
                         const std::string& before = "") {
    const Outcome outcome = run_heed(call, before);
    EXPECT_EQ(outcome.status, status) << call;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(message)) << call;
    EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
  };
  const std::string call = "translate " + with_translator();
  expect(call, 2, "line 2 is not UTF-8", "printf 'a\\n\\377\\n' |");
  expect(call, 2, "line 3 has", "printf 'a\\n\\n%0200d\\n' 0 |");
  expect(call + "''", 2, "the text is empty");
  expect(call + "a --best 3 --beams 2", 2, "--best 3");
  expect(call + "a --beams 0", 2, "--beams");
  expect(call + "a -n 33", 2, "the maximum length is 33");
  expect(call + "a --length-penalty nan", 2, "length penalty");
  expect(call + "a --cache-type f16", 2, "f16");
  expect(call + "a -f b", 2, "not both");
  expect(call + "--tree", 2, "there are 2 lines", "printf 'a\\nb\\n' |");
  expect(call + "a --tree --best 2", 2, "--best");
  expect(call + "'' --tree", 2, "the text is empty");
  expect("translate a -m starter", 1, "heed generate -m starter");
  expect("translate a -m /nowhere", 1, "/nowhere");
  expect("translate a " + testing::with_model(), 1, "has no encoder, so it does not translate");
  // and the other way round
  for (const char* command :
       {"generate -p a", "predict a", "eval --tokens 1,2", "chat", "heads --text /dev/null"}) {
    expect(std::string(command) + " " + with_translator(), 1, "heed translate -m",
           "printf 'a\\n' |");
  }
}

// heed carries a translator of the microworld's sentences.
TEST(TranslateCommand, NeedsNoModel) {
  const Outcome outcome = run_heed("translate 'The dog sleeps.' -t 1");
  if (!translator_files()) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("no model 'translator'"));
    return;
  }
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Der Hund schläft.\n");
  EXPECT_EQ(run_heed("translate 'The dog sleeps.' -t 1 -m translator").out, outcome.out);
  const Json pair = json_of("attend 'The dog sleeps.' --target 'Der Hund schläft.' --json --top 1");
  EXPECT_TRUE(pair["model"] == "translator");
  const Json trace = json_of(
      "trace 'The dog sleeps.' --target 'Der Hund schläft.' --points cross.pattern1 --json");
  EXPECT_TRUE(trace["model"] == "translator");
}

TEST(TranslateCommand, WithoutLinesPrintsNothing) {
  const Outcome outcome = run_heed("translate " + with_translator(), "printf '' |");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace heed
