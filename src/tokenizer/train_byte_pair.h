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

// Which ids the special tokens have: those after all others, as in GPT-2, or 0, 1, 2, ...
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

// One vocabulary for the two languages of a translator, learned from texts of both.

// The special tokens of a joint vocabulary; their ids are 0, 1, 2 and 3. Bytes cover every text:
// <unk> is never the result of encode(), but published layouts expect it.
inline constexpr std::string_view joint_special_tokens[] = {"<pad>", "<s>", "</s>", "<unk>"};

struct JointVocabularyOptions {
  std::int32_t vocabulary_size = 8000;  // in all; fewer if the texts do not yield more
  std::int64_t min_frequency = 2;       // pairs that occur less often are not merged
  // Their ids follow those of joint_special_tokens: "<mask>", ">>de<<".
  std::vector<std::string> special_tokens = {};
};

// A byte-level BPE tokenizer, which is saved and loaded as every other one. Its end_of_text() is
// </s>, which EncodeOptions::add_ending puts after a text, its padding() <pad>, and its start()
// <s>. Texts of both languages count alike: give the sides of a corpus as they are. Throws
// Error{invalid_argument} for invalid options and when all texts are empty, and Error{interrupted}
// on request.
std::unique_ptr<BytePairTokenizer> learn_joint_vocabulary(
    std::span<const std::string_view> texts, const JointVocabularyOptions& options = {},
    const ProgressCallback& progress = {}, StopFlag stop = nullptr);

// The same from files, each one text.
std::unique_ptr<BytePairTokenizer> learn_joint_vocabulary(
    std::span<const std::filesystem::path> files, const JointVocabularyOptions& options = {},
    const ProgressCallback& progress = {}, StopFlag stop = nullptr);

}  // namespace heed
