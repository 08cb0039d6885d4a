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

// Which ids the special tokens have: those behind all others, as in GPT-2, or 0, 1, 2, ...
enum class SpecialTokenIds { last, first };

// All other ids are assigned in GPT-2's order: the 256 bytes in the order of their letters, then
// merges in the order in which they are learned.
struct BytePairTrainingOptions {
  std::int32_t vocabulary_size = 50257;  // in all; fewer if the texts do not yield more
  // Removed from the texts before words are counted.
  std::vector<std::string> special_tokens = {std::string(end_of_text_name)};
  std::int64_t min_frequency = 2;  // pairs that occur less often are not merged
  SpecialTokenIds special_ids = SpecialTokenIds::last;
  // Special tokens that encode() puts around a text on request.
  std::vector<std::string> before_text = {};
  std::vector<std::string> after_text = {};
};

// The result depends on texts and options only, not on the number of threads. Throws
// Error{invalid_argument} for invalid options and Error{interrupted} on request.
std::unique_ptr<BytePairTokenizer> train_byte_pair_tokenizer(
    std::span<const std::string_view> texts, const BytePairTrainingOptions& options = {},
    const ProgressCallback& progress = {}, StopFlag stop = nullptr);

// The same from files, each one text. Throws Error{invalid_argument} if all are empty.
std::unique_ptr<BytePairTokenizer> train_byte_pair_tokenizer(
    std::span<const std::filesystem::path> files, const BytePairTrainingOptions& options = {},
    const ProgressCallback& progress = {}, StopFlag stop = nullptr);

}  // namespace heed
