// How fast this machine and this build do what heed is for, beside what the machine could do at
// best: its ceilings are measured first, in the same process, by plain loops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "kernels/machine_peak.h"
#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"

namespace heed {

enum class BenchmarkSuite {
  peak,       // the ceilings themselves
  train,      // a training step: forward, backward and AdamW
  prompt,     // reading a prompt into an empty cache, and the logits of what follows
  decode,     // token after token, each reading the cache of those before
  attention,  // causal attention alone, forward and backward
  tokenizer,  // text to tokens, in one thread and in all
};

std::string_view benchmark_suite_name(BenchmarkSuite suite);  // "peak", "train", ...

struct BenchmarkOptions {
  BenchmarkSuite suite = BenchmarkSuite::peak;
  std::string config = "gpt2";  // preset, config.json or model directory: random weights
  std::string model;            // directory or "starter": its own weights, or its tokenizer
  std::string text_file;        // for the tokenizer; empty: stories of the microworld
  kernels::WeightFormat dtype = kernels::WeightFormat::f32;
  kernels::CacheType cache_type = kernels::CacheType::f32;  // of prompts and decoding
  std::optional<std::int64_t> batch;                        // B; default: 4 in training, else 1
  // T; default: the suite says. A config whose context is shorter is given a longer one.
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> count;  // how often a repeat does the work: steps, prompts, tokens
  std::optional<int> repeats;         // medians are over so many
  bool all_logits = false;            // of prompts: of every position, not of the last alone
  ProgressCallback progress = nullptr;
  StopFlag stop = nullptr;
};

// A piece of work, done `repeats` times.
struct BenchmarkRow {
  std::string name;  // "step", "prompt", "forward", ...
  kernels::WeightFormat dtype{};
  int threads = 1;
  std::vector<double> seconds;             // of each repeat
  double tokens = 0;                       // of one repeat; 0: not about tokens
  double flops = 0;                        // of one repeat, counted; 0: not counted
  double bytes = 0;                        // of one repeat, counted
  std::optional<kernels::PeakLoop> limit;  // the loop that no such work can be faster than
  std::int64_t peak_resident_bytes = 0;

  double median_seconds() const;
  double least_seconds() const;
  double most_seconds() const;
  double per_second(double amount) const { return amount / median_seconds(); }
};

struct BenchmarkCeiling {
  kernels::PeakLoop loop;
  kernels::PeakMeasurement measurement;
};

struct BenchmarkReport {
  BenchmarkSuite suite{};
  std::string model;                  // what was measured: name of the config, model or vocabulary
  std::int64_t parameters = 0;        // of the model; 0: none
  std::optional<std::int64_t> batch;  // as used
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> count;
  std::optional<kernels::CacheType> cache_type;  // none: nothing was cached
  std::string instruction_set;
  std::vector<BenchmarkCeiling> ceilings;  // those that this machine has
  std::vector<BenchmarkRow> rows;

  const BenchmarkCeiling* ceiling(kernels::PeakLoop loop) const;  // null when not measured

  // The row's rate over that of its limit; nothing without a limit.
  std::optional<double> of_peak(const BenchmarkRow& row) const;
  // Its operations over those of the loop of bf16 dot products, where its limit is another unit
  // for bf16.
  std::optional<double> of_dot_products(const BenchmarkRow& row) const;
};

// The loop that products in `dtype` are held against: the best unit that heed uses for them. All
// shortened formats are multiplied as bf16.
kernels::PeakLoop product_limit(kernels::WeightFormat dtype);

// Throws Error{interrupted} on request, Error{unsupported} for a dtype that the suite does not run
// in, Error{invalid_argument} for sizes that the model does not have room for, and
// Error{out_of_memory} for models that this machine cannot hold.
BenchmarkReport run_benchmark(const BenchmarkOptions& options);

}  // namespace heed
