// Benchmarks of training, prompts, decoding, translation, attention and tokenizing, relative to the
// machine's peak rates, which are measured in the same process: first, and between the repeats.
#pragma once

#include <cstdint>
#include <functional>
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
  prompt,     // prompt processing: a prompt into an empty cache, and the next token's logits
  decode,     // cached decoding, token by token
  attention,  // causal attention alone, forward and backward
  tokenizer,  // text to tokens, in one thread and in all
  translate,  // an encoder-decoder: a training step on pairs, encoding, greedy and beam decoding
};

std::string_view benchmark_suite_name(BenchmarkSuite suite);  // "peak", "train", ...

struct BenchmarkOptions {
  BenchmarkSuite suite = BenchmarkSuite::peak;
  std::string config = "gpt2";  // preset, config.json or model directory; uses random weights
  std::string model;            // directory or "starter"; uses its weights, or its tokenizer
  std::string text_file;        // for the tokenizer; empty: stories of the microworld
  kernels::WeightFormat dtype = kernels::WeightFormat::f32;
  bool uses_blocks = false;  // of a GGUF file, instead of dtype, for prompts and decoding
  kernels::CacheType cache_type = kernels::CacheType::f32;  // for prompts and decoding
  // B; default: 4 in training, 128 pairs of texts in translation, else 1
  std::optional<std::int64_t> batch;
  // T; the default depends on the suite. Extends the config's context if needed.
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> count;  // steps, prompts or tokens per repeat
  std::optional<int> repeats;         // measurements per row
  std::int64_t beams = 5;             // hypotheses of a source in translation
  bool all_logits = false;  // prompts: compute the logits of every position, not only the last
  // Measures another program at the same work, in tokens a second. Called once before the first
  // row, and after each of its repeats.
  std::function<double()> against = nullptr;
  ProgressCallback progress = nullptr;
  StopFlag stop = nullptr;
};

struct BenchmarkCeiling {
  kernels::PeakLoop loop;
  kernels::PeakMeasurement measurement;
};

// The measurements of one workload.
struct BenchmarkRow {
  std::string name;  // "step", "prompt", "forward", ...
  kernels::WeightFormat dtype{};
  int threads = 1;
  std::vector<double> seconds;             // of each repeat
  double tokens = 0;                       // of one repeat; 0 if there are none
  double flops = 0;                        // of one repeat, counted; 0: not counted
  double bytes = 0;                        // of one repeat, counted
  std::optional<kernels::PeakLoop> limit;  // the peak loop that bounds the workload
  // For work that either its products or its reading may bound: the loop of the products.
  std::optional<kernels::PeakLoop> product_limit{};
  // Runs of the loops that bound the row, each about as long as a repeat (one run of the loop at
  // least, a second at most), after each of the repeats.
  std::vector<BenchmarkCeiling> sustained{};
  std::int64_t peak_resident_bytes = 0;
  std::vector<double> against{};  // tokens a second of the other program, after each repeat

  // This row's tokens a second divided by those, repeat by repeat.
  std::vector<double> times_of_other() const;
  double median_seconds() const;
  double min_seconds() const;
  double max_seconds() const;
  double per_second(double amount) const { return amount / median_seconds(); }
};

// The median; of an even count, the mean of the middle two.
double median(std::vector<double> numbers);

struct BenchmarkReport {
  BenchmarkSuite suite{};
  std::string model;                  // name of the measured config, model or vocabulary
  std::int64_t parameters = 0;        // of the model; 0: none
  std::optional<std::int64_t> batch;  // as used
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> count;
  std::optional<kernels::CacheType> cache_type;  // absent without a cache
  std::string instruction_set;
  std::vector<BenchmarkCeiling> ceilings;  // the loops that this machine supports
  std::vector<BenchmarkRow> rows;

  const BenchmarkCeiling* ceiling(kernels::PeakLoop loop) const;  // null if not measured

  // The row's rate divided by that of a loop; absent where it was not measured.
  std::optional<double> of(const BenchmarkRow& row, kernels::PeakLoop loop) const;
  // The same of its limit; absent without a limit.
  std::optional<double> of_peak(const BenchmarkRow& row) const;
  // The row's rate divided by the best of the loop's runs that took as long as the work: a shared
  // machine does not keep up the rate of its best milliseconds. Absent where none was measured.
  std::optional<double> of_sustained_peak(const BenchmarkRow& row) const;
  // Sets the limit of rows with a product limit: the loop that allows less by the ceilings as
  // measured so far.
  void choose_limits();
  // Its operations divided by those of the loop of bf16 dot products, if its limit is another bf16
  // unit.
  std::optional<double> of_dot_products(const BenchmarkRow& row) const;
};

// The peak loop for products in `dtype`: the fastest unit that heed uses for them. Quantised
// formats are multiplied as bf16, or in f32 where no unit for bf16 is in use.
kernels::PeakLoop product_limit(kernels::WeightFormat dtype);

// Throws Error{interrupted} on request, Error{unsupported} for a dtype that the suite does not
// support, Error{invalid_argument} for sizes that do not fit the model, and Error{out_of_memory}
// for models that do not fit in memory.
BenchmarkReport run_benchmark(const BenchmarkOptions& options);

}  // namespace heed
