// Lists, texts and values as words of a call: one way to give each, and no other is misunderstood.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::ids_of;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;
using testing::with_model;

void expect_refused(const std::string& arguments, const std::string& message,
                    const std::string& before = "") {
  const Outcome outcome = run_heed(arguments, before);
  EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
}

// Every list option, with two items that it takes.
struct ListOption {
  std::string command;  // with a text
  std::string option;
  std::string first;
  std::string second;
  bool shows = true;  // whether the document differs by it
};

const std::vector<ListOption>& list_options() {
  static const std::vector<ListOption> options{
      {"trace 'a mole dug' --json", "--points", "q0", "k1"},
      {"trace 'a mole dug' --points q --json", "--layers", "0", "1"},
      {"trace 'a mole dug' --points q --json", "--heads", "0", "2"},
      {"trace 'a mole dug' --points q --json", "--positions", "0", "1"},
      {"heads 'a mole dug' --json", "--statistics", "first", "self", false},
      {"predict 'a mole dug' --json", "--ablate", "L0H0", "L1H2"},
      {"predict 'a mole dug' --json", "--mean", "L0H0", "L1H2"},
      {"predict 'a mole dug' --json", "--scale", "L0H0=2", "L1H2=0.5"},
      {"lens 'a mole dug' --json", "--cut", "L0H0:2>1,1>0", "L1H2:2>0"},
      {"predict 'a mole dug' --json --freeze-text 'the queen sat'", "--freeze", "L0H0", "L1H2"},
      {"predict 'a mole dug' --json --replace-text 'a blue hare'", "--replace", "L0@1", "L0@2"},
      {"generate -n 3 -p 'a mole' --json", "--ablate", "L0H0", "L1H2", false},
  };
  return options;
}

TEST(Lists, TakeCommasOrARepeatedOptionAlike) {
  for (const ListOption& option : list_options()) {
    const std::string call = option.command + " " + with_model() + option.option + " ";
    const auto result = [](const std::string& arguments) {
      Json document = json_of(arguments);
      document.erase("prompt_seconds");
      document.erase("generate_seconds");
      return document;
    };
    const Json repeated =
        result(call + "'" + option.first + "' " + option.option + " '" + option.second + "'");
    EXPECT_EQ(result(call + "'" + option.first + "," + option.second + "'"), repeated)
        << option.command << option.option;
    if (!option.shows) continue;
    EXPECT_NE(result(call + "'" + option.first + "'"), repeated) << option.command << option.option;
  }
}

TEST(Lists, RefuseEmptyItemsAndEmptyLists) {
  for (const ListOption& option : list_options()) {
    const std::string call = option.command + " " + with_model() + option.option;
    for (const std::string& list :
         {option.first + ",," + option.second, "," + option.first, option.first + ","}) {
      expect_refused(call + "='" + list + "'", "");
    }
    expect_refused(call + " ''", "takes a value, not ''");
  }
  for (const char* ids : {"1,,2", ",1", "1,", ",", "1 2"}) {
    expect_refused("predict --tokens '" + std::string(ids) + "' " + with_model(), ids);
    expect_refused("tokenize --decode '" + std::string(ids) + "'", ids);
  }
}

TEST(Lists, SwallowNoWords) {
  for (const ListOption& option : list_options()) {
    const std::string call =
        " " + with_model() + option.option + " '" + option.first + "' '" + option.second + "'";
    expect_refused(option.command + call, "");
  }
  // Without a text of its own the word would be the text.
  const std::string pipe = "echo 'a mole dug' |";
  expect_refused("trace --points q0 k1 " + with_model(), "write --points q0,k1 if", pipe);
  expect_refused("trace --points=q0 k1 " + with_model(), "write --points q0,k1 if", pipe);
  expect_refused("predict --ablate L0H0 L1H2 " + with_model(), "--ablate L0H0,L1H2", pipe);
  expect_refused("heads --statistics first self " + with_model(), "--statistics first,self", pipe);
  expect_refused("predict --tokens 5 17 " + with_model(), "--tokens 5,17");
  expect_refused("tokenize --decode 5 17", "--decode 5,17");
  expect_refused("generate -p x --stop a b " + with_model(), "'b'");
  expect_refused("bench decode -c 3 200", "'200'");
  expect_refused("bench decode --config gpt2 gpt2-medium", "'gpt2-medium'");
}

TEST(Lists, ATextBehindOneIsAText) {
  const Json first = json_of("trace 'a mole dug' --points q0 --json " + with_model());
  EXPECT_EQ(json_of("trace --points q0 'a mole dug' --json " + with_model()), first);
}

TEST(Lists, OfFilesTakeWhatAShellExpands) {
  const testing::TemporaryDirectory directory;
  for (const char* name : {"a.txt", "b.txt"}) {
    write_text_file(directory / name, "the mole dug and the mole dug");
  }
  const std::string out = (directory / "out").string();
  const Outcome outcome = run_heed("tokenizer train --vocabulary-size 260 --data " +
                                   (directory / "").string() + "*.txt -o " + out);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(Texts, AreOneArgument) {
  for (const char* command : {"predict", "attend", "heads", "lens", "tour"}) {
    expect_refused(std::string(command) + " a fluffy mole " + with_model(),
                   "in quotes: 'a fluffy mole'");
  }
  expect_refused("tokenize a fluffy mole", "in quotes: 'a fluffy mole'");
}

TEST(Texts, ComeFromFilesInEveryCommand) {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory / "text.txt").string();
  write_text_file(file, "a mole dug\n");
  for (const std::string command :
       {"predict", "attend", "lens", "tour -n 3", "trace --points q", "tokenize"}) {
    const std::string call = command + " --json " + with_model();
    EXPECT_EQ(json_of(call + "--text " + file), json_of(call + "'a mole dug'")) << command;
    expect_refused(call + "x --text " + file, "");
  }
  const std::string call = "generate --greedy -n 3 --json " + with_model();
  EXPECT_EQ(json_of(call + "--text " + file)["tokens"],
            json_of(call + "-p 'a mole dug'")["tokens"]);
}

TEST(Values, ThatAreOptionsAreRefused) {
  expect_refused("generate -p --json " + with_model(), "--json is an option");
  expect_refused("predict x --out --json " + with_model(), "--out");
  expect_refused("lens x --token --json " + with_model(), "write --token=--json");
  EXPECT_EQ(json_of("generate -p '-nice day' -n 1 --json " + with_model())["tokens"].size(), 1U);
}

TEST(Options, ThatWereRenamedSayTheirNewName) {
  expect_refused("generate --file x " + with_model(), "renamed to --text");
  expect_refused("bench tokenizer --file x", "renamed to --text");
  expect_refused("explain head --layer 0 --head 0 --top 3 " + with_model(), "renamed to --words");
  expect_refused("lens x --top 3 " + with_model(), "--per-cell");
}

TEST(Edits, ThatHitNothingAreRefused) {
  const std::string text = " --tokens 5,17 " + with_model();
  for (const char* edit : {"--ablate L0H0@5", "--ablate L0H0@1-5", "--ablate L0H0@2-",
                           "--scale L1@2=3", "--cut 'L0H0:5>1'", "--mean L0H0@9"}) {
    expect_refused("predict " + std::string(edit) + text, "positions 0 to 1");
    expect_refused("lens " + std::string(edit) + text, "positions 0 to 1");
    expect_refused("heads " + std::string(edit) + text, "positions 0 to 1");
  }
  EXPECT_EQ(run_heed("predict --ablate L0H0@1-" + text).status, 0);
  // Generated tokens have positions, too; the last one is never fed to the model.
  const std::string generate = "generate -n 4 --json --ignore-eos --tokens 5,17 " + with_model();
  EXPECT_EQ(run_heed(generate + "--ablate L0H0@4").status, 0);
  expect_refused(generate + "--ablate L0H0@5", "positions 0 to 4");
  EXPECT_EQ(run_heed(generate + "--ablate L0H0 --edit-from-step 2").status, 0);
  expect_refused(generate + "--ablate L0H0 --edit-from-step 3", "changes nothing");
  expect_refused(generate + "--ablate L0H0@0-1 --edit-from-step 1", "--edit-from-step");
  EXPECT_EQ(run_heed("trace --points q -n 2 --ablate L0H0@3" + text).status, 0);
}

}  // namespace
}  // namespace heed
