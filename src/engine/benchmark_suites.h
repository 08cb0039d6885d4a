// What each suite of run_benchmark does.
#pragma once

#include "engine/benchmark.h"

namespace heed {

// 4 sequences of the whole context, one step a repeat.
BenchmarkReport measure_training(const BenchmarkOptions& options);

// One prompt of 512 tokens, or of the whole context where that is shorter.
BenchmarkReport measure_prompt(const BenchmarkOptions& options);

// 128 tokens behind `context` (0) others, or as many as there is room for.
BenchmarkReport measure_decoding(const BenchmarkOptions& options);

// 4,096 positions of the config's heads.
BenchmarkReport measure_attention(const BenchmarkOptions& options);

BenchmarkReport measure_tokenizer(const BenchmarkOptions& options);

}  // namespace heed
