#include "cli/other_program.h"

#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "cli/interrupt.h"

namespace heed::cli {
namespace {

constexpr std::size_t most_output = 1 << 20;  // bytes; of longer ones, the end is read

bool is_digit(char c) { return '0' <= c && c <= '9'; }

// Digits with an optional fraction and exponent. Nothing where there is none.
std::optional<double> last_number(std::string_view text) {
  std::optional<double> last;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (!is_digit(*at) || error != std::errc()) {
      ++at;
      continue;
    }
    last = number;
    at = after;
  }
  return last;
}

}  // namespace

double tokens_per_second_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  require(pipe != nullptr, ErrorCode::input_output, "cannot start the shell for '{}'", command);
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) {
    output.append(piece.data(), size);
    if (output.size() > 2 * most_output) output.erase(0, output.size() - most_output);
  }
  const int status = ::pclose(pipe);
  require(!stop_requested(interrupt_flag()), ErrorCode::interrupted,
          "the benchmark was interrupted");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, ErrorCode::invalid_argument,
          "the other program failed: '{}' ended with {} {}", command,
          WIFEXITED(status) ? "status" : "signal",
          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  const std::optional<double> rate = last_number(output);
  require(rate.has_value() && *rate > 0 && std::isfinite(*rate), ErrorCode::invalid_argument,
          "the last number that '{}' prints has to be its tokens a second; it printed {}", command,
          rate ? fmt::format("{}", *rate) : "none");
  return *rate;
}

}  // namespace heed::cli
