// The option_table of sampling options: their names, ranges and help, and the one reader of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "heed/sampling.h"

namespace heed {
namespace {

constexpr std::array<std::string_view, sampling_stage_count> stage_names{
    "model", "penalties", "top-n-sigma", "top-k", "top-p", "min-p", "temperature"};

constexpr double max_int32 = std::numeric_limits<std::int32_t>::max();

using Options = SamplingOptions;
using Stage = SamplingStage;

// clang-format off
constexpr SamplingOption option_table[] = {
    {&Options::temperature, "temperature", "--temp", Stage::temperature, 0, 100, 1,
     "Divide logits by X; 0 is greedy", {"Temperature", 0, 2, 0.05, "greedy"}},
    {&Options::top_n_sigma, "top_n_sigma", "", Stage::top_n_sigma, -1, 100, 0,
     "Keep logits within X standard deviations of the largest; 0 or -1 keeps all",
     {"Top-n-sigma", 0, 5, 0.1, "all"}},
    {&Options::top_k, "top_k", "", Stage::top_k, -1, max_int32, 0,
     "Keep the N most likely tokens; 0 or -1 keeps all", {"Top-k", 0, 100, 1, "all"}},
    {&Options::top_p, "top_p", "", Stage::top_p, 0, 1, 1,
     "Keep the most likely tokens up to probability X; 1 keeps all", {"Top-p", 0.05, 1, 0.01}},
    {&Options::min_p, "min_p", "", Stage::min_p, 0, 1, 0,
     "Keep tokens above X times the largest probability; 0 keeps all", {"Min-p", 0, 0.5, 0.005}},
    {&Options::repeat_penalty, "repeat_penalty", "", Stage::penalties, 0.01, 100, 1,
     "Penalise recent tokens by X; 1 is off", {"Repeat penalty", 1, 2, 0.01}},
    {&Options::repeat_last_n, "repeat_last_n", "", Stage::penalties, -1, max_int32, 64,
     "Penalise the last N tokens; -1 is all"},
    {&Options::presence_penalty, "presence_penalty", "", Stage::penalties, -2, 2, 0,
     "Subtract X from logits of recent tokens", {"Presence penalty", -2, 2, 0.05}},
    {&Options::frequency_penalty, "frequency_penalty", "", Stage::penalties, -2, 2, 0,
     "Subtract X for each occurrence of a recent token", {"Frequency penalty", -2, 2, 0.05}},
    {&Options::seed, "seed", "-s", Stage::temperature, 0,
     static_cast<double>(std::numeric_limits<std::uint64_t>::max()), 0, "Seed the sampling"},
};
// clang-format on

// Whether the whole text is a number of the option's type and range, which then is in `value`.
template <class Number>
bool parse_option(const SamplingOption& option, std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  const auto number = static_cast<double>(value);
  return error == std::errc{} && next == end && number >= option.min && number <= option.max;
}

}  // namespace

std::span<const SamplingOption> sampling_options() { return option_table; }

std::string_view sampling_stage_name(SamplingStage stage) {
  return stage_names[static_cast<std::size_t>(stage)];
}

bool is_active(SamplingStage stage, const SamplingOptions& options) {
  const SamplingOptions off = SamplingOptions::unmodified();
  return std::ranges::any_of(option_table, [&](const SamplingOption& option) {
    return option.stage == stage && !option.is_seed() && option.text(options) != option.text(off);
  });
}

SamplingOptions SamplingOptions::unmodified() {
  SamplingOptions options;
  for (const SamplingOption& option : option_table) {
    option.read(options, fmt::format("{}", option.unmodified));
  }
  return options;
}

void SamplingOptions::validate() const {
  SamplingOptions read;
  for (const SamplingOption& option : option_table) {
    const std::string problem = option.read(read, option.text(*this));
    require(problem.empty(), ErrorCode::invalid_argument, "{} {}", option.name, problem);
  }
}

std::string SamplingOption::flags() const {
  std::string hyphenated = std::string("--") + name;
  std::ranges::replace(hyphenated, '_', '-');
  return *flag == 0 ? hyphenated : fmt::format("{},{}", flag, hyphenated);
}

std::string SamplingOption::range() const {
  if (is_seed()) return "a whole number from 0 to 18446744073709551615";
  return fmt::format("a {}number from {} to {}", is_whole() ? "whole " : "", min, max);
}

std::string SamplingOption::text(const SamplingOptions& options) const {
  return std::visit([&](auto value) { return fmt::format("{}", options.*value); }, member);
}

std::string SamplingOption::read(SamplingOptions& options, std::string_view given) const {
  return std::visit(
      [&](auto read_member) {
        auto value = options.*read_member;
        if (!parse_option(*this, given, value)) {
          return fmt::format("must be {}, not {}", range(),
                             given.empty() ? "''" : given.substr(0, 40));
        }
        options.*read_member = value;
        return std::string();
      },
      member);
}

}  // namespace heed
