#include "cli/whole_number.h"

#include <fmt/format.h>

#include <charconv>

namespace heed::cli {

CLI::Validator at_least(std::uint64_t least) {
  const auto problem = [least](const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, value);
    const bool holds = error == std::errc{} && next == end && value >= least;
    return holds ? std::string()
                 : fmt::format("takes a whole number of at least {}, not '{}'", least, text);
  };
  return CLI::Validator(problem, "");
}

}  // namespace heed::cli
