#include "tokenizer/joint_vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {

std::unique_ptr<BytePairTokenizer> learn_joint_vocabulary(std::span<const std::string_view> texts,
                                                          const JointVocabularyOptions& options,
                                                          const ProgressCallback& progress,
                                                          StopFlag stop) {
  require(std::ranges::any_of(texts, [](std::string_view text) { return !text.empty(); }),
          ErrorCode::invalid_argument, "{} empty texts to learn a joint vocabulary from",
          texts.size());
  BytePairTrainingOptions training{.vocabulary_size = options.vocabulary_size,
                                   .special_tokens = {},
                                   .min_frequency = options.min_frequency,
                                   .special_ids = SpecialTokenIds::first,
                                   .after_text = {"</s>"}};
  training.special_tokens.assign(std::begin(joint_special_tokens), std::end(joint_special_tokens));
  training.special_tokens.insert(training.special_tokens.end(), options.special_tokens.begin(),
                                 options.special_tokens.end());
  return train_byte_pair_tokenizer(texts, training, progress, stop);
}

std::unique_ptr<BytePairTokenizer> learn_joint_vocabulary(
    std::span<const std::filesystem::path> files, const JointVocabularyOptions& options,
    const ProgressCallback& progress, StopFlag stop) {
  std::vector<MappedFile> mapped;
  std::vector<std::string_view> texts;
  for (const std::filesystem::path& file : files) {
    texts.push_back(mapped.emplace_back(file).text());
  }
  return learn_joint_vocabulary(texts, options, progress, stop);
}

}  // namespace heed
