// How the next token is sampled: the options, and the table that every interface reads them by.
//
// Steps follow each other in the order of SamplingStage, as in llama.cpp. Filters use logits before
// the temperature, so a high temperature does not readmit unlikely tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace heed {

struct SamplingOptions {
  double temperature = 0.8;  // divides the logits; 0: greedy
  // Keep logits within n standard deviations of the largest (Tang et al. 2024), whatever the
  // temperature; 0 or -1: all.
  double top_n_sigma = 0.0;
  std::int64_t top_k = 40;          // keep the k most likely tokens; 0 or -1: all
  double top_p = 0.95;              // keep the fewest tokens with total probability p; 1: all
  double min_p = 0.05;              // keep tokens with at least this share of the highest; 0: all
  double repeat_penalty = 1.0;      // logits of recent tokens: divided if positive, else multiplied
  std::int64_t repeat_last_n = 64;  // tokens that penalties consider; -1: all, 0: none
  double presence_penalty = 0.0;    // subtracted once from the logit of a recent token
  double frequency_penalty = 0.0;   // subtracted for each occurrence of it
  std::uint64_t seed = 0;

  // The most likely token, the lowest id among equals.
  bool is_greedy() const { return temperature == 0.0; }

  // Throws Error{invalid_argument} naming the first option that is out of range.
  void validate() const;

  // The model's own distribution: nothing is penalised, removed or divided.
  static SamplingOptions unmodified();
};

enum class SamplingStage { model, penalties, top_n_sigma, top_k, top_p, min_p, temperature };
inline constexpr std::size_t sampling_stage_count =
    static_cast<std::size_t>(SamplingStage::temperature) + 1;

// "model", "penalties", "top-n-sigma", "top-k", "top-p", "min-p", "temperature"; valid for the
// program's lifetime.
std::string_view sampling_stage_name(SamplingStage stage);

// Whether an option of `stage` changes anything.
bool is_active(SamplingStage stage, const SamplingOptions& options);

// A row of the table: command line, HTTP, OpenAPI, Python, documentation and page follow from it.
// Defaults are those of SamplingOptions.
struct SamplingOption {
  using Member = std::variant<double SamplingOptions::*, std::int64_t SamplingOptions::*,
                              std::uint64_t SamplingOptions::*>;

  // A slider of the page; without a label there is none.
  struct Control {
    const char* label = nullptr;
    double min = 0;
    double max = 0;
    double step = 0;
    const char* at_zero = "";  // what 0 means: "greedy"
  };

  Member member;
  const char* name;  // in JSON, Python and C++: "top_k"; on the command line --top-k
  const char* flag;  // beside it on the command line, such as "-s"; or empty
  SamplingStage stage;
  double min;
  double max;         // that of the type for the seed
  double unmodified;  // the value that changes nothing
  const char* help;   // X: the number; N: the whole number
  Control control{};

  bool is_whole() const { return member.index() != 0; }
  bool is_seed() const { return member.index() == 2; }

  std::string flags() const;  // "--top-k", "-s,--seed"
  std::string range() const;  // "a number from 0 to 100"

  // The value, with the fewest digits that read back as the same number.
  std::string text(const SamplingOptions& options) const;

  // Reads a value. Returns what is wrong with it, such as "must be a number from 0 to 100, not x",
  // and leaves the options as they are, or nothing.
  std::string read(SamplingOptions& options, std::string_view text) const;
};

// In the order of the documentation; valid for the program's lifetime.
std::span<const SamplingOption> sampling_options();

}  // namespace heed
