// Learns a byte-level byte-pair tokenizer from text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "tokenizer/byte_pair_tokenizer.h"

namespace heed {

// Ids are given in GPT-2's order: 0 to 255 the bytes, in the order of their letters; then the
// merges, as they are learned; last the special tokens, in the order given.
struct BytePairTrainingOptions {
  std::int32_t vocabulary_size = 50257;  // all tokens together; fewer if the texts have no more
  // Cut from the texts before words are counted.
  std::vector<std::string> special_tokens = {std::string(end_of_text_name)};
  std::int64_t min_frequency = 2;  // pairs that occur less often are not merged
};

// The same texts and options give the same tokenizer, whatever the number of threads. The texts are
// only read. Throws Error{invalid_argument} for options that make no sense and Error{interrupted}
// when asked to stop.
std::unique_ptr<BytePairTokenizer> train_byte_pair_tokenizer(
    std::span<const std::string_view> texts, const BytePairTrainingOptions& options = {},
    const ProgressCallback& progress = {}, StopFlag stop = nullptr);

// The same from files, each read as one text. Throws Error{invalid_argument} where all are empty.
std::unique_ptr<BytePairTokenizer> train_byte_pair_tokenizer(
    std::span<const std::filesystem::path> files, const BytePairTrainingOptions& options = {},
    const ProgressCallback& progress = {}, StopFlag stop = nullptr);

}  // namespace heed
