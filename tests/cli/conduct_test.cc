// How the program behaves towards shells, terminals and mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <sstream>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "base/utf8.h"
#include "cli/run_heed.h"
#include "support/small_encoder.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::run_heed;
using ::testing::StartsWith;
using testing::with_model;

struct Mistake {
  std::string arguments;
  int status;
  std::string message;  // part of it
};

TEST(Mistakes, GiveOneClearLine) {
  const std::string model = with_model();
  const std::string directory = testing::model_directory().string();
  const std::vector<Mistake> mistakes{
      {"", 2, "--help"},
      {"nonsense", 2, "nonsense"},
      {"predict --nonsense x " + model, 2, "nonsense"},
      {"predict x -m /nowhere", 1, "/nowhere"},
      {"predict x -m /nowhere/model.safetensors", 1, "/nowhere"},
      {"predict x -m " + directory + "/tokenizer.json", 1, "expected a directory"},
      {"predict x --full " + model, 2, "--json"},
      {"eval --per-token --tokens 5,6 " + model, 2, "--json"},
      {"eval " + model, 2, "--tokens"},
      {"eval --text x --tokens 5,6 " + model, 2, "--tokens"},
      {"predict '' " + model, 2, "empty"},
      {"predict --tokens 5,x " + model, 2, "5,x"},
      {"predict --tokens 5,-1 " + model, 2, "5,-1"},
      {"predict --tokens 99999 " + model, 2, "99999"},
      {"predict --tokens 99999999999999 " + model, 2, "99999999999999"},
      {"predict --tokens 5 text " + model, 2, "'text' after --tokens 5"},
      {"predict 'a text' --tokens 5 " + model, 2, "not both"},
      {"predict x --temp -1 " + model, 2, "--temp"},
      {"predict x --top 0 " + model, 2, "--top"},
      {"predict x -t 0 " + model, 2, "--threads"},
      {"attend x --layer 2 --head 0 " + model, 2, "layers 0 to 1"},
      {"attend x --layer 0 --head 3 " + model, 2, "heads 0 to 2"},
      {"attend x --layer 0 " + model, 2, "--head"},
      {"attend 'a mole' --word bank " + model, 1, "a, mole"},
      {"attend 'a mole' --word mole --occurrence 2 " + model, 1, "occurrence 2"},
      {"attend x --occurrence 2 " + model, 2, "--word"},
      {"generate -p x -f y " + model, 2, "once"},
      {"generate -f /nowhere " + model, 1, "/nowhere"},
      {"generate -p x --top-p 2 " + model, 2, "top"},
      {"generate -p x -n -1 " + model, 2, "at least 0, not '-1'"},
      {"generate -p x -s -5 " + model, 2, "from 0 to 18446744073709551615, not -5"},
      {"eval --tokens 5,6 --stride 0 " + model, 2, "at least 1, not '0'"},
      {"params nonsense", 1, "gpt2"},
      {"params /", 1, "config.json"},
      {"plan", 2, "config"},
      {"plan nonsense --flops 1G --read 1GB", 1, "gpt2"},
      {"plan gpt2 --nodes 0", 2, "at least 1, not '0'"},
      {"plan gpt2 --bandwidth fast", 2, "such as 1.25e9, 1.25GB or 10Gbit, not 'fast'"},
      {"plan gpt2 --bandwidth -1Gbit", 2, "not '-1Gbit'"},
      {"plan gpt2 --bandwidth inf", 2, "not 'inf'"},
      {"plan gpt2 --latency 5Gbit", 2, "such as 5e-5, 50us or 1ms, not '5Gbit'"},
      {"plan gpt2 --cores 0 --flops 1G --read 1GB", 2, "cores must be a number above 0"},
      {"plan gpt2 --shard 4", 2, "from 1 to 3, not '4'"},
      {"plan gpt2 --nodes 481 --flops 1G --read 1GB", 2, "cannot share 480 sequences"},
      {"plan gpt2 --tokens 0 --flops 1G --read 1GB", 2, "tokens"},
      {"plan gpt2 --set batch_size", 2, "name=value"},
      {"plan multi30k-en-de --flops 1G --read 1GB", 1, "translators"},
      {"tokenize x --tokenizer /nowhere", 1, "/nowhere"},
      {"tokenizer train --data /nowhere --out /tmp", 1, "/nowhere"},
      {"microworld -n -1", 2, "at least 0, not '-1'"},
      {"microworld -s -1", 2, "at least 0, not '-1'"},
      {"microworld -n 99999999999999999999", 2, "out of range"},
      {"--nonsense", 2, "'--nonsense'"},
      {"explain nonsense", 2, "'nonsense'"},
      {"explain", 2, "composition, head, neuron"},
      {"bench prompt -c x", 2, "a number"},
      {"serve --port 65536", 2, "from 0 to 65535, not '65536'"},
      {"serve --request-time 0", 2, "more than 0, not '0'"},
      {"serve --idle-time 0", 2, "more than 0, not '0'"},
      {"serve --grace-time x", 2, "0 or more, not 'x'"},
      {"serve --api-key ''", 2, "--api-key"},
      {"serve --public-metrics", 2, "--public-metrics needs --api-key"},
      {"serve --alias ''", 2, "--alias"},
      {"serve --chat-template nowhere " + model, 1, "plain, chatml"},
      {"serve --allow-origin example.org", 2, "'example.org'"},
      {"serve --allow-host http://example.org", 2, "'http://example.org'"},
      {"explore --corpus /nowhere " + model, 1, "/nowhere"},
      {"tokenize --decode 5 text", 2, "--decode"},
      {"attend x --top 3 --word x " + model, 2, "--top"},
      {"heads x --measure abs " + model, 2, "--detect"},
      {"heads --text / " + model, 2, "'/' is not a regular file"},
      {"lens x --by head " + model, 2, "--attribute"},
      {"lens x --attribute a --steps 9 " + model, 2, "--by input"},
      {"lens x --residual --no-norm " + model, 2, "--no-norm"},
      {"patch --clean-tokens 5 --corrupted-tokens 5 --metric kl " + model, 2, "the same"},
      {"patch --clean-tokens 5 --corrupted-tokens 6 --metric kl --grid edge " + model, 2, "--head"},
      {"patch --clean-tokens 5 --corrupted-tokens 6 --metric kl --head L0H0 " + model, 2, "edge"},
      {"generate -p x --stop '' " + model, 2, "--stop"},
      {"generate -p x --edit-from-step 2 " + model, 2, "--edit-from-step"},
      {"generate -p '" + std::string(400, ',') + "' " + model, 2, "more than the model's context"},
      {"trace x --points q --out /nowhere/x.npz " + model, 1, "create '/nowhere/x.npz'"},
      {"microworld check --stories 1 " + model, 2, "1 stories"},
      {"induction -n 999999999999 " + model, 2, "from 1 to 100000, not '999999999999'"},
      {"microworld check --stories 9223372036854775807 " + model, 2, "from 1 to 10000000"},
      {"microworld --json --out x", 2, "--truth"},
      {"params ''", 2, "takes a value"},
      {"predict x --top-k 1e3 " + model, 2,
       "--top-k: must be a whole number from -1 to 2147483647, not 1e3"},
      {"predict x --top-k 99999999999999999999 " + model, 2, "whole number from -1 to 2147483647"},
      {"generate -p x --temp 101 " + model, 2, "--temp: must be a number from 0 to 100, not 101"},
      {"chat --presence-penalty 3 " + model, 2, "must be a number from -2 to 2, not 3"},
      {"predict x --f32-products bf16 " + model, 2, "takes f32 or tf32, not 'bf16'"},
      {"predict x --color sometimes " + model, 2, "takes auto, always or never, not 'sometimes'"},
      {"predict x --top 5 --top 6 " + model, 2, "--top is given 2 times"},
      {"predict x -m", 2, "--model takes a value"},
      {"predict x --dtype --json " + model, 2, "--dtype takes a value"},
      {"tokenizer train --data x --out y --vocabulary-size 99999999999", 2, "out of range"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = run_heed(mistake.arguments);
    EXPECT_EQ(outcome.status, mistake.status) << mistake.arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << mistake.arguments;
    EXPECT_THAT(outcome.err, StartsWith("heed: ")) << mistake.arguments;
    EXPECT_THAT(outcome.err, HasSubstr(mistake.message)) << mistake.arguments;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

TEST(Mistakes, ThreadsThatAreNoNumberAreRefused) {
  for (const std::string count : {"abc", "-3", "0", "4x", "5000"}) {
    const Outcome outcome = run_heed("tokenize x", "HEED_THREADS=" + count);
    EXPECT_EQ(outcome.status, 2) << count;
    EXPECT_THAT(outcome.err, HasSubstr("HEED_THREADS")) << count;
    EXPECT_THAT(outcome.err, HasSubstr("'" + count + "'")) << count;
  }
  EXPECT_EQ(run_heed("tokenize x", "HEED_THREADS=2").status, 0);
}

TEST(Mistakes, ProductsThatAreNoneAreRefused) {
  for (const std::string name : {"TF32", "1", "bf16"}) {
    const Outcome outcome = run_heed("tokenize x", "HEED_F32_PRODUCTS=" + name);
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_THAT(outcome.err,
                HasSubstr("HEED_F32_PRODUCTS must be f32 or tf32, not '" + name + "'"));
  }
  EXPECT_EQ(run_heed("tokenize x", "HEED_F32_PRODUCTS=tf32").status, 0);
}

TEST(Mistakes, ATextThatWasBegunEndsItsLine) {
  const testing::ScratchDirectory directory;
  testing::write_small_model(directory.path());
  const auto weights = directory.path() / weights_file_name;
  std::string bytes = read_text_file(weights);
  std::ranges::fill(std::span(bytes).last(bytes.size() / 2), '\xff');  // not a number
  write_text_file(weights, bytes);
  const Outcome outcome = run_heed("generate -p x -m " + directory.path().string());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "x\n");
  EXPECT_THAT(outcome.err, StartsWith("heed: the logit of token"));
}

// CLI11 takes "[…]" apart where a list is expected.
TEST(Mistakes, BracketsBelongToATextAndToStrings) {
  const std::string ids = run_heed("tokenize '[hello]'").out;
  EXPECT_EQ(run_heed("tokenize --decode " + ids.substr(0, ids.size() - 1)).out, "[hello]");
  const Outcome outcome = run_heed("generate -p x -n 2 --stop '[x]' " + with_model());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(Mistakes, NoTextTeachesNoTokenizer) {
  const testing::TemporaryDirectory directory;
  write_text_file(directory / "empty.txt", "");
  const std::string call = "tokenizer train --data '" + (directory / "empty.txt").string() +
                           "' --out '" + (directory / "out").string() + "'";
  const Outcome outcome = run_heed(call);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no text to learn from in"));
  EXPECT_FALSE(std::filesystem::exists(directory / "out"));
}

TEST(Mistakes, AFullDiskIsReported) {
  for (const char* call : {"params gpt2", "train --help", "--help", "--version"}) {
    const Outcome outcome = run_heed(std::string(call) + " > /dev/full");
    EXPECT_EQ(outcome.status, 1) << call;
    EXPECT_THAT(outcome.err, HasSubstr("standard output")) << call;
  }
}

TEST(Mistakes, ADamagedModelIsReported) {
  const testing::ScratchDirectory directory;
  testing::write_small_model(directory.path());
  const auto weights = directory.path() / weights_file_name;
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) / 2);
  const Outcome outcome = run_heed("predict x -m " + directory.path().string());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("model.safetensors"));
}

TEST(Colours, ComeOnlyWhereTheyAreWanted) {
  const std::string call = "predict 'a mole' " + with_model();
  EXPECT_THAT(run_heed(call).out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(run_heed(call + "--color always").out, HasSubstr("\x1b["));
  EXPECT_THAT(run_heed(call + "--color never", "COLORTERM=truecolor").out, Not(HasSubstr("\x1b[")));
  EXPECT_EQ(run_heed(call, "NO_COLOR=1").out, run_heed(call).out);
  EXPECT_THAT(run_heed(call + "--color always", "COLORTERM=truecolor").out, HasSubstr("38;2;"));
  EXPECT_THAT(run_heed(call + "--color always", "COLORTERM=").out, HasSubstr("38;5;"));
}

// Columns of a line, without what colours it; all characters that heed draws with take one.
int columns_of(std::string_view line) {
  int columns = 0;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '\x1b') {
      i = line.find('m', i) + 1;
      continue;
    }
    i += read_utf8(line, i).length;
    ++columns;
  }
  return columns;
}

TEST(Width, EightyColumnsAreEnough) {
  const std::string long_text =
      "'A curious child sat in a chemistry lesson and counted molecules. Soon the mole of gold was "
      "on the table, and the very long number stood on the wall.' ";
  for (const std::string& arguments :
       {"predict " + long_text + with_model(),
        "predict --all-positions " + long_text + with_model(),
        "attend " + long_text + with_model(),
        "attend 'A fluffy mole dug.' " + with_model(),
        "attend --layer 0 --head 1 " + long_text + with_model(),
        "attend --layer 0 --head 1 'A fluffy mole dug.' " + with_model(),
        "attend --word mole " + long_text + with_model(),
        "attend --top 6 " + long_text + with_model(),
        "tour " + long_text + with_model(),
        std::string("params"),
        std::string("params gpt3"),
        std::string("plan gpt2 --nodes 4 --flops 1G --read 1GB"),
        std::string("plan gpt3 --nodes 1536 -b 1536 --shard 3 --exchange during --flops 1G --read "
                    "1GB --price 4 --sequence-parallel 2 --memory 1TB"),
        std::string("params gpt2"),
        "heads --detect induction " + long_text + with_model(),
        "lens --token a " + long_text + with_model(),
        "lens --attribute a --by head " + long_text + with_model(),
        "lens --residual --by head " + long_text + with_model(),
        "trace --points q,resid_post " + long_text + with_model(),
        "explain head --layer 0 --head 1 " + with_model(),
        "explain composition " + with_model(),
        "graph " + long_text + with_model(),
        "induction -n 2 " + with_model(),
        "predict 'a mole' --ablate L0H1 " + with_model(),
        "microworld check --stories 4 " + with_model()}) {
    for (const char* colours : {"--color never", "--color always"}) {
      const Outcome outcome = run_heed(arguments + " " + colours, "COLUMNS=80");
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      std::size_t begin = 0;
      for (std::size_t end = 0; (end = outcome.out.find('\n', begin)) != std::string::npos;
           begin = end + 1) {
        const std::string_view line(outcome.out.data() + begin, end - begin);
        EXPECT_LE(columns_of(line), 80) << arguments << "\n" << line;
      }
    }
  }
}

TEST(Help, FitsTheTerminalAndSaysWhatHoldsWhereAnOptionIsNotGiven) {
  for (const std::string command : {"",
                                    "tour",
                                    "train",
                                    "generate",
                                    "predict",
                                    "attend",
                                    "trace",
                                    "heads",
                                    "lens",
                                    "explain",
                                    "explain composition",
                                    "explain head",
                                    "explain neuron",
                                    "graph",
                                    "patch",
                                    "induction",
                                    "eval",
                                    "params",
                                    "plan",
                                    "tokenize",
                                    "tokenizer",
                                    "tokenizer train",
                                    "microworld",
                                    "microworld check",
                                    "bench",
                                    "bench prompt",
                                    "convert",
                                    "serve",
                                    "explore"}) {
    const int columns = command == "generate" ? 60 : 80;
    const Outcome help = run_heed(command + " --help", "COLUMNS=" + std::to_string(columns));
    EXPECT_EQ(help.status, 0) << command;
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), columns) << command << "\n" << line;
    }
  }
  const std::string help = run_heed("generate --help", "COLUMNS=80").out;
  EXPECT_THAT(help, HasSubstr("-n, --max-tokens N           Generate at most N tokens [128]\n"));
  EXPECT_THAT(run_heed("train --help").out, HasSubstr("Run directory (required)\n"));
  EXPECT_THAT(run_heed("serve --help").out, HasSubstr("HEED_API_KEY"));
  EXPECT_THAT(run_heed("predict --help --color always").out, HasSubstr("\x1b["));
}

TEST(Tour, FitsOnAScreen) {
  const Outcome outcome = run_heed("tour 'A fluffy mole dug in the garden.' " + with_model());
  EXPECT_LT(std::ranges::count(outcome.out, '\n'), 60);
}

TEST(Interrupt, EndsWithItsStatus) {
  const std::string call = "timeout -s INT --preserve-status 0.5";
  const Outcome outcome = run_heed("microworld -n 100000000 > /dev/null", call);
  EXPECT_EQ(outcome.status, 130);
}

// What does not look at the flag is killed after some more seconds, and has another status.
TEST(Interrupt, EndsWorkThatIsLong) {
  const testing::TemporaryDirectory directory;
  const std::string text = (directory / "text.txt").string();
  std::string words;
  while (words.size() < (1 << 20)) words += "the fluffy mole met the queen one evening ";
  std::string many;
  for (int i = 0; i < 64; ++i) many += words;
  write_text_file(text, many);
  for (const std::string& arguments :
       {std::string("induction -n 100000 -m starter"), "tokenize -m starter -f '" + text + "'"}) {
    for (const char* signal : {"INT", "TERM"}) {
      const std::string call = std::string("timeout -k 20 --preserve-status -s ") + signal + " 0.4";
      EXPECT_EQ(run_heed(arguments + " > /dev/null", call).status, 130) << arguments;
    }
  }
}

TEST(Serve, WritesItsLogToStandardError) {
  const std::string call = "timeout -s INT --preserve-status 5";
  const Outcome outcome = run_heed("serve --port 0 " + with_model(), call);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(" is at http://127.0.0.1:"));
}

TEST(Serve, TakesAnEncoderWithoutItsPage) {
  const testing::TemporaryDirectory directory;
  testing::write_small_encoder(directory.path());
  const std::string model = " --port 0 -t 1 -m '" + directory.path().string() + "'";
  const std::string call = "timeout -s INT --preserve-status 5";
  EXPECT_THAT(run_heed("serve" + model, call).err, HasSubstr(" is at http://127.0.0.1:"));
  const Outcome page = run_heed("explore" + model, call);
  EXPECT_EQ(page.status, 1);
  EXPECT_THAT(page.err, HasSubstr("is an encoder, and the page shows models that predict"));
  EXPECT_THAT(page.err, HasSubstr("`heed serve` answers with its embeddings"));
}

}  // namespace
}  // namespace heed
