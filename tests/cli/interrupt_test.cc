// A single signal ends every command soon, with status 130, and leaves nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "cli/run_heed.h"
#include "support/child.h"
#include "support/process.h"
#include "support/small_model.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;
using testing::run_heed;

// `heed ARGUMENTS`, without output. It is killed with the object.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments) {
    child_ = ::fork();
    if (child_ != 0) return;
    std::vector<char*> argv{const_cast<char*>("heed")};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) == nullptr ||
        std::freopen("/dev/null", "w", stderr) == nullptr) {
      ::_exit(126);
    }
    ::execv(HEED_BINARY, argv.data());
    ::_exit(127);
  }
  ~Running() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void send(int signal) const { ::kill(child_, signal); }

  // Seconds that the processors worked for it so far; negative once it has ended.
  double processor_seconds() const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/stat");
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string state, skipped;
    fields >> state;
    if (state.empty() || state == "Z") return -1;
    for (int i = 0; i < 10; ++i) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  // The status as waitpid() gives it.
  int wait() {
    const int status = testing::status_of(child_, &usage_);
    child_ = 0;
    return status;
  }
  double all_processor_seconds() const {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage_.ru_utime) + seconds(usage_.ru_stime);
  }

 private:
  pid_t child_ = 0;
  rusage usage_{};
};

// 16 MB of words that hardly repeat.
fs::path long_text(const fs::path& directory) {
  RandomStream random(3, 0);
  std::string text;
  while (text.size() < (16U << 20U)) {
    for (std::uint64_t letters = 2 + random.below(9); letters > 0; --letters) {
      text += static_cast<char>('a' + random.below(26));
    }
    text += ' ';
  }
  write_text_file(directory / "text", text);
  return directory / "text";
}

// Each of these works for at least ten times as long as it is left alone.
TEST(Interrupts, EndLongWorkSoon) {
  const testing::ScratchDirectory directory;
  const std::string text = long_text(directory.path()).string();
  const std::string out = (directory.path() / "tokenizer").string();
  const std::vector<std::vector<std::string>> calls{
      {"generate", "-p", "One day", "-n", "1000000", "--shift", "--ignore-eos"},
      {"tokenize", "-f", text},
      {"lens", "One day a mole met a hare. The hare was glad and went home with the mole.",
       "--attribute", ".", "--by", "input", "--steps", "1000"},
      {"induction", "-n", "100000"},
      {"tokenizer", "train", "--data", text, "--out", out, "--vocabulary-size", "30000"}};
  constexpr double left_alone = 0.15;  // seconds of work: well after the program's start
  for (const auto& call : calls) {
    for (const int signal : {SIGINT, SIGTERM}) {
      SCOPED_TRACE(call.front() + (signal == SIGINT ? " SIGINT" : " SIGTERM"));
      Running program(call);
      double worked = 0;
      const bool has_worked = testing::becomes_true([&] {
        worked = program.processor_seconds();
        return worked < 0 || worked >= left_alone;
      });
      ASSERT_TRUE(has_worked) << "it waits";
      ASSERT_GT(worked, 0) << "it ended by itself";
      program.send(signal);
      const int status = program.wait();
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 130);
      if (!testing::is_sanitized) {
        EXPECT_LT(program.all_processor_seconds() - worked, 1.5);
      }
      EXPECT_FALSE(fs::exists(out)) << "half a tokenizer";
    }
  }
}

bool has_partial_files(const fs::path& directory) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  return !error && std::any_of(begin(entry), end(entry), [](const auto& file) {
    return file.path().string().find(".partial-") != std::string::npos;
  });
}

// Stops `heed convert` while it writes `out`, anew until it is met there, and sends the signal.
void interrupt_a_conversion(const fs::path& out, int signal) {
  // Beside other work, the moment is often missed.
  const auto deadline = std::chrono::steady_clock::now() + testing::max_wait;
  while (std::chrono::steady_clock::now() < deadline) {
    Running program({"convert", "starter", "--dtype", "f32", "--force", "--out", out.string()});
    ASSERT_TRUE(testing::becomes_true(
        [&] { return program.processor_seconds() < 0 || has_partial_files(out); },
        std::chrono::microseconds(50)));
    program.send(SIGSTOP);
    ::usleep(1000);
    const bool is_met = program.processor_seconds() >= 0 && has_partial_files(out);
    if (is_met) program.send(signal);
    program.send(SIGCONT);
    const int status = program.wait();
    if (is_met && signal == SIGKILL && WIFSIGNALED(status)) return;
    if (is_met && WIFEXITED(status) && WEXITSTATUS(status) == 130) return;
    fs::remove_all(out);
  }
  FAIL() << "no conversion was met while it wrote";
}

TEST(Interrupts, LeaveNoPartOfAConversion) {
  const testing::ScratchDirectory directory;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const fs::path out = directory.path() / std::to_string(signal) / "model";
    interrupt_a_conversion(out, signal);
    EXPECT_FALSE(has_partial_files(out)) << signal;
  }
}

TEST(Interrupts, AKilledConversionDoesNotConfuseTheNext) {
  const testing::ScratchDirectory directory;
  const fs::path out = directory.path() / "model";
  interrupt_a_conversion(out, SIGKILL);
  ASSERT_TRUE(has_partial_files(out));
  const Outcome next = run_heed("convert starter --dtype f32 --force --out " + out.string());
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_FALSE(has_partial_files(out));
  EXPECT_EQ(run_heed("generate -p One -n 4 --greedy -t 1 -m " + out.string()).out,
            run_heed("generate -p One -n 4 --greedy -t 1").out);
}

}  // namespace
}  // namespace heed
