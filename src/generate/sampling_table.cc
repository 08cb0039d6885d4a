// The table of sampling options: their names, ranges and help, and the one reader of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "heed/sampling.h"

namespace heed {
namespace {

using enum SamplingStage;

constexpr std::array<std::string_view, sampling_stage_count> stage_names{
    "model", "penalties", "top-n-sigma", "top-k", "top-p", "min-p", "temperature"};

constexpr double max_count = std::numeric_limits<std::int32_t>::max();

constexpr SamplingOption table[] = {
    {.member = &SamplingOptions::temperature,
     .name = "temperature",
     .flag = "--temp",
     .stage = temperature,
     .max = 100,
     .unmodified = 1,
     .help = "Divide logits by X; 0 is greedy",
     .control = {"Temperature", 0, 2, 0.05, "greedy"}},
    {.member = &SamplingOptions::top_n_sigma,
     .name = "top_n_sigma",
     .stage = top_n_sigma,
     .min = -1,
     .max = 100,
     .help = "Keep logits within X standard deviations of the largest; 0 or -1 keeps all",
     .control = {"Top-n-sigma", 0, 5, 0.1, "all"}},
    {.member = &SamplingOptions::top_k,
     .name = "top_k",
     .stage = top_k,
     .min = -1,
     .max = max_count,
     .help = "Keep the N most likely tokens; 0 or -1 keeps all",
     .control = {"Top-k", 0, 100, 1, "all"}},
    {.member = &SamplingOptions::top_p,
     .name = "top_p",
     .stage = top_p,
     .max = 1,
     .unmodified = 1,
     .help = "Keep the most likely tokens up to probability X; 1 keeps all",
     .control = {"Top-p", 0.05, 1, 0.01}},
    {.member = &SamplingOptions::min_p,
     .name = "min_p",
     .stage = min_p,
     .max = 1,
     .help = "Keep tokens above X times the largest probability; 0 keeps all",
     .control = {"Min-p", 0, 0.5, 0.005}},
    {.member = &SamplingOptions::repeat_penalty,
     .name = "repeat_penalty",
     .stage = penalties,
     .min = 0.01,
     .max = 100,
     .unmodified = 1,
     .help = "Penalise recent tokens by X; 1 is off",
     .control = {"Repeat penalty", 1, 2, 0.01}},
    {.member = &SamplingOptions::repeat_last_n,
     .name = "repeat_last_n",
     .stage = penalties,
     .min = -1,
     .max = max_count,
     .unmodified = 64,
     .help = "Penalise the last N tokens; -1 is all"},
    {.member = &SamplingOptions::presence_penalty,
     .name = "presence_penalty",
     .stage = penalties,
     .min = -2,
     .max = 2,
     .help = "Subtract X from logits of recent tokens",
     .control = {"Presence penalty", -2, 2, 0.05}},
    {.member = &SamplingOptions::frequency_penalty,
     .name = "frequency_penalty",
     .stage = penalties,
     .min = -2,
     .max = 2,
     .help = "Subtract X for each occurrence of a recent token",
     .control = {"Frequency penalty", -2, 2, 0.05}},
    {.member = &SamplingOptions::seed,
     .name = "seed",
     .flag = "-s",
     .max = static_cast<double>(std::numeric_limits<std::uint64_t>::max()),
     .help = "Seed the sampling"},
};

template <class Number>
std::string range_text(const SamplingOption& option) {
  if constexpr (std::is_unsigned_v<Number>) {
    return fmt::format("a whole number from 0 to {}", std::numeric_limits<Number>::max());
  }
  return fmt::format("a {}number from {} to {}", option.is_whole() ? "whole " : "", option.min,
                     option.max);
}

// Whether the whole text is a number of the option's type and range, which then is in `value`.
template <class Number>
bool parse(const SamplingOption& option, std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || next != end) return false;
  if constexpr (std::is_unsigned_v<Number>) return true;
  const auto number = static_cast<double>(value);
  return number >= option.min && number <= option.max;
}

template <class Visit>
decltype(auto) visit(const SamplingOption& option, Visit&& use) {
  return std::visit(std::forward<Visit>(use), option.member);
}

}  // namespace

std::span<const SamplingOption> sampling_options() { return table; }

std::string_view sampling_stage_name(SamplingStage stage) {
  return stage_names[static_cast<std::size_t>(stage)];
}

bool is_active(SamplingStage stage, const SamplingOptions& options) {
  const SamplingOptions off = SamplingOptions::unmodified();
  return std::ranges::any_of(table, [&](const SamplingOption& option) {
    if (option.stage != stage || option.is_seed()) return false;
    return visit(option, [&](auto member) { return options.*member != off.*member; });
  });
}

SamplingOptions SamplingOptions::unmodified() {
  SamplingOptions options;
  for (const SamplingOption& option : table) {
    visit(option, [&](auto member) {
      options.*member = static_cast<std::decay_t<decltype(options.*member)>>(option.unmodified);
    });
  }
  return options;
}

void SamplingOptions::validate() const {
  SamplingOptions read;
  for (const SamplingOption& option : table) {
    const std::string problem = option.read(read, option.text(*this));
    require(problem.empty(), ErrorCode::invalid_argument, "{} {}", option.name, problem);
  }
}

std::string SamplingOption::flags() const {
  std::string hyphenated = std::string("--") + name;
  std::ranges::replace(hyphenated, '_', '-');
  return flag == nullptr ? hyphenated : fmt::format("{},{}", flag, hyphenated);
}

std::string SamplingOption::range() const {
  return visit(*this, [&](auto value) {
    return range_text<std::decay_t<decltype(std::declval<SamplingOptions>().*value)>>(*this);
  });
}

std::string SamplingOption::text(const SamplingOptions& options) const {
  return visit(*this, [&](auto value) { return fmt::format("{}", options.*value); });
}

std::string SamplingOption::read(SamplingOptions& options, std::string_view given) const {
  return visit(*this, [&](auto member_of) {
    auto value = options.*member_of;
    if (!parse(*this, given, value)) {
      return fmt::format("must be {}, not {}", range(), given.empty() ? "''" : given);
    }
    options.*member_of = value;
    return std::string();
  });
}

}  // namespace heed
