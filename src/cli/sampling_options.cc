#include "cli/sampling_options.h"

namespace heed::cli {
namespace {

void add_sampling_option(Command command, const SamplingOption& option, SamplingOptions& options) {
  const auto problem = [&option](const std::string& text) {
    SamplingOptions ignored;
    return option.read(ignored, text);
  };
  const auto set = [&option, &options](const std::string& text) { option.read(options, text); };
  command.add_option_function<std::string>(option.flags(), set, option.help)
      ->check(problem)
      ->default_str(option.text(options))
      ->type_name(option.is_whole() ? "N" : "X")
      ->group("Sampling");
}

}  // namespace

void add_sampling_options(Command command, SamplingOptions& options) {
  for (const SamplingOption& option : sampling_options()) {
    if (!option.is_seed()) add_sampling_option(command, option, options);
  }
  // Read after --temp, in whatever order they are given.
  command
      .add_flag_function(
          "--greedy", [&options] { options.temperature = 0; },
          "Always choose the most likely token")
      ->group("Sampling");
}

void add_sampling_seed_option(Command command, SamplingOptions& options) {
  for (const SamplingOption& option : sampling_options()) {
    if (option.is_seed()) add_sampling_option(command, option, options);
  }
}

}  // namespace heed::cli
