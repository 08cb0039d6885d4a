// The suites of run_benchmark().
#pragma once

#include "engine/benchmark.h"

namespace heed {

// 4 sequences of the whole context, one step per repeat.
BenchmarkReport measure_training(const BenchmarkOptions& options);

// One prompt of 512 tokens, or of the whole context if it is shorter.
BenchmarkReport measure_prompt(const BenchmarkOptions& options);

// 128 tokens after `context` (0) cached ones, or as many as fit the context.
BenchmarkReport measure_decoding(const BenchmarkOptions& options);

// 4,096 positions of the config's heads.
BenchmarkReport measure_attention(const BenchmarkOptions& options);

BenchmarkReport measure_tokenizer(const BenchmarkOptions& options);

// 128 pairs of 16 tokens each.
BenchmarkReport measure_translator(const BenchmarkOptions& options);

}  // namespace heed
