// heed chat: from a pipe, and as a person uses it, in a terminal.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "cli/run_heed.h"
#include "support/chat_model.h"
#include "support/child.h"

namespace heed::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Room for a reply that is still being written when it is stopped.
const std::string& chat_model() {
  static const ScratchDirectory directory;
  static const bool written = (write_chat_model(directory.path(), 8192), true);
  (void)written;
  static const std::string path = directory.path().string();
  return path;
}

// A program in a terminal of its own, which ends with the object.
class InTerminal {
 public:
  explicit InTerminal(const std::vector<std::string>& arguments) {
    std::vector<char*> argv{const_cast<char*>("heed")};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    child_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      ::execv(HEED_BINARY, argv.data());
      ::_exit(127);
    }
  }
  ~InTerminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(terminal_);
  }
  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  void type(const std::string& text) const {
    EXPECT_EQ(::write(terminal_, text.data(), text.size()), std::ssize(text));
  }

  // Reads until `text` was printed after what was read before, for a minute at most.
  bool reads(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
      const std::size_t found = screen_.find(text, seen_);
      if (found != std::string::npos) {
        seen_ = found + text.size();
        return true;
      }
      if (!read_some()) return false;
    }
    return false;
  }

  int exit_status() {
    while (read_some()) {
    }
    const int status = status_of(child_);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const std::string& screen() const { return screen_; }

 private:
  bool read_some() {
    pollfd output{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&output, 1, 60'000) <= 0) return false;
    char bytes[4096];
    const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
    if (count <= 0) return false;  // the program has closed the terminal
    screen_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  pid_t child_ = 0;
  int terminal_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;
};

TEST(ChatCommand, AnswersEachLineOfAPipe) {
  const std::string call = "chat --greedy -n 6 -t 1 -m " + chat_model();
  const Outcome one = run_heed(call, "printf 'Who came?\\n' |");
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.err, "");
  EXPECT_TRUE(one.out.ends_with('\n'));
  EXPECT_THAT(one.out, Not(HasSubstr("> ")));
  const Outcome two = run_heed(call, "printf 'Who came?\\n \\nAnd then?' |");
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_TRUE(two.out.starts_with(one.out)) << "blank lines are no messages";
  EXPECT_GT(two.out.size(), one.out.size());
  const Outcome second_alone = run_heed(call, "printf 'And then?\\n' |");
  EXPECT_NE(two.out, one.out + second_alone.out) << "the first turn is part of the second";
  EXPECT_NE(run_heed(call + " --system 'Be brief.'", "printf 'Who came?\\n' |").out, one.out);
  EXPECT_EQ(run_heed(call, "printf '' |").out, "");
}

TEST(ChatCommand, IsRefusedWithoutATemplate) {
  for (const std::string& model : {testing::model_directory().string(), std::string("starter")}) {
    const Outcome outcome = run_heed("chat -m " + model, "echo Hi |");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("no chat template"));
    EXPECT_THAT(outcome.err, HasSubstr("heed generate -m " + model));
  }
}

// A template's own bytes, in a message of the program, do not reach the terminal as they are.
TEST(ChatCommand, MessagesShowControlCharactersEscaped) {
  const ScratchDirectory directory;
  write_chat_model(directory.path());
  const std::string source =
      "{{ raise_exception('a\x1b]0;title\x07\x1b[2J\\\\ \xC2\x9B\xE2\x80\xAE z\n\n') }}";
  write_text_file(directory.path() / "chat_template.jinja", source);
  const Outcome outcome = run_heed("chat -m " + directory.path().string(), "echo Hi |");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("a\\x1B]0;title\\x07\\x1B[2J\\ \\u{9B}\\u{202E} z\\n\\n\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
  // The words of a call and the log, too.
  EXPECT_THAT(run_heed("chat -m \"$(printf 'no\\033[2Jmodel')\"", "echo Hi |").err,
              HasSubstr("no\\x1B[2Jmodel"));
}

// A terminal obeys control characters, a pipe does not: what a text holds is escaped for the one
// and stays as it is for the other.
TEST(Terminals, GetTextsWithoutControlCharacters) {
  const std::string text = "a\x1b[2Jb\xC2\x9B\xE2\x80\xAE\x07\xff",
                    shown = "a\\x1B[2Jb\\u{9B}\\u{202E}\\x07\\xFF";
  const std::string model = testing::model_directory().string();
  InTerminal generate(
      {"generate", "-p", text, "-n", "0", "-t", "1", "--color", "never", "-m", model});
  EXPECT_EQ(generate.exit_status(), 0) << generate.screen();
  EXPECT_EQ(generate.screen(), shown + "\r\n");
  const std::string call = " -m " + model;
  EXPECT_EQ(run_heed("generate -n 0 -t 1 -p \"$(printf '" + text + "')\"" + call).out, text + "\n");

  std::string ids = run_heed("tokenize" + call, "printf '" + text + "' |").out;
  ids.pop_back();
  InTerminal decode({"tokenize", "--decode", ids, "-m", model});
  EXPECT_EQ(decode.exit_status(), 0);
  EXPECT_EQ(decode.screen(), shown + "\r\n");
  EXPECT_EQ(run_heed("tokenize --decode " + ids + call).out, text);
}

TEST(ChatCommand, RefusesWhatIsWrong) {
  const std::string call = "chat -m " + chat_model();
  for (const auto& [options, message] :
       std::vector<std::pair<std::string, std::string>>{{" --temp -1", "--temp"},
                                                        {" -c 1", "--context"},
                                                        {" -c 9000", "8192"},
                                                        {" -n -1", "--max-tokens"},
                                                        {" --cache-type f8", "f8"},
                                                        {" --dtype f8", "f8"}}) {
    const Outcome outcome = run_heed(call + options, "echo Hi |");
    EXPECT_EQ(outcome.status, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  std::string long_message;
  for (int i = 0; i < 100; ++i) long_message += "mole ";
  const Outcome outcome = run_heed(call + " -c 64", "echo '" + long_message + "' |");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no room for a reply"));
}

TEST(ChatCommand, LeavesOutOldTurns) {
  const Outcome outcome =
      run_heed("chat --greedy -n 8 -c 64 -t 1 -m " + chat_model(),
               "for i in 1 2 3 4 5 6; do echo 'Who came to the garden?'; done |");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("left out"));
}

TEST(ChatCommand, TalksInATerminal) {
  InTerminal chat({"chat", "--greedy", "-t", "1", "--color", "never", "-m", chat_model()});
  ASSERT_TRUE(chat.reads("> ")) << chat.screen();
  chat.type("Who came?\n");
  ASSERT_TRUE(chat.reads("Who came?\r\n"));  // the echo
  ASSERT_TRUE(chat.reads(" ")) << chat.screen();
  chat.type("\x03");  // Ctrl-C, within a reply of up to 8,192 tokens
  ASSERT_TRUE(chat.reads("\r\n\r\n> ")) << chat.screen();
  chat.type("mole ");
  chat.type(std::string(20, 'x') + "\n");
  ASSERT_TRUE(chat.reads("x\r\n"));
  ASSERT_TRUE(chat.reads(" ")) << chat.screen();
  chat.type("\x03");
  ASSERT_TRUE(chat.reads("\r\n\r\n> ")) << chat.screen();
  chat.type("\x04");  // Ctrl-D
  EXPECT_EQ(chat.exit_status(), 0) << chat.screen();
}

TEST(ChatCommand, ALongMessageDoesNotEndTheConversationOfAPerson) {
  InTerminal chat({"chat", "--greedy", "-n", "4", "-c", "64", "-t", "1", "--color", "never", "-m",
                   chat_model()});
  ASSERT_TRUE(chat.reads("> "));
  std::string long_message;
  for (int i = 0; i < 100; ++i) long_message += "mole ";
  chat.type(long_message + "\n");
  ASSERT_TRUE(chat.reads("no room for a reply")) << chat.screen();
  ASSERT_TRUE(chat.reads("> ")) << chat.screen();
  chat.type("Hi\n");
  ASSERT_TRUE(chat.reads("\r\n\r\n> ")) << chat.screen();
  chat.type("\x04");
  EXPECT_EQ(chat.exit_status(), 0);
}

TEST(ChatCommand, AnInterruptAtThePromptEndsIt) {
  InTerminal chat({"chat", "-t", "1", "-m", chat_model()});
  ASSERT_TRUE(chat.reads("> "));
  chat.type("\x03");
  EXPECT_EQ(chat.exit_status(), 130);
}

TEST(ChatCommand, ShowsItsHelp) {
  EXPECT_THAT(run_heed("--help").out, HasSubstr("chat"));
  const Outcome help = run_heed("chat --help", "COLUMNS=80");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--system TEXT"));
  EXPECT_THAT(help.out, HasSubstr("Ctrl-C stops a reply"));
}

}  // namespace
}  // namespace heed::testing
