#include "cli/run_heed.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "support/child.h"
#include "support/small_model.h"

namespace heed::testing {
namespace {

// Of a command in a process group of its own, so that all of it is killed if it does not end.
int status_of_shell(const std::string& command) {
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::setpgid(0, 0);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::setpgid(shell, shell);
  return status_of(shell, nullptr, -shell);
}

}  // namespace

Outcome run_heed(const std::string& arguments, const std::string& before) {
  const ScratchDirectory directory;
  const std::string out = (directory.path() / "out").string();
  const std::string err = (directory.path() / "err").string();
  // Parentheses: a pipe in `before` feeds heed, whose output alone goes to the files.
  const std::string command = "( " + before + " \"" HEED_BINARY "\" " + arguments + " ) >" + out +
                              " 2>" + err +
                              (before.find('|') == std::string::npos ? " </dev/null" : "");
  const int status = status_of_shell(command);
  Outcome outcome{.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128,
                  .out = read_text_file(out),
                  .err = read_text_file(err)};
  return outcome;
}

Json json_of(const std::string& arguments, const std::string& before) {
  const Outcome outcome = run_heed(arguments, before);
  EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "") << arguments;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 1) << arguments;
  return parse_json(outcome.out, arguments);
}

const std::filesystem::path& model_directory() {
  static const ScratchDirectory directory;
  static const bool written = (write_small_model(directory.path()), true);
  (void)written;
  return directory.path();
}

std::string with_model() { return "-m " + model_directory().string() + " -t 1 "; }

Json ids_of(const Json& tokens) {
  Json ids = Json::array();
  for (const Json& token : tokens) ids.push_back(token.at("id"));
  return ids;
}

}  // namespace heed::testing
