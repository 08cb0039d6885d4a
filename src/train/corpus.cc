#include "train/corpus.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {

Corpus::Corpus(const TrainRequest& request) {
  require(!request.data.empty(), ErrorCode::invalid_argument,
          "training needs at least one text file (--data)");
  Texts training;
  for (const auto& path : request.data) {
    files_.emplace_back(path);
    training.push_back(files_.back().text());
  }
  if (request.validation.empty()) {
    split_ = split_texts(training, request.settings.validation_fraction);
  } else {
    files_.emplace_back(request.validation);
    require(!files_.back().text().empty(), ErrorCode::invalid_argument,
            "the validation text '{}' is empty", request.validation.string());
    split_ = {.training = training, .validation = {files_.back().text()}};
  }
  const auto has_text = [](const Texts& texts) {
    return std::ranges::any_of(texts, [](std::string_view text) { return !text.empty(); });
  };
  const std::string first = request.data.front().string();
  require(has_text(training), ErrorCode::invalid_argument, "the training data is empty ('{}')",
          first);
  require(has_text(split_.training), ErrorCode::invalid_argument,
          "'{}' is too short to split off {} of it for validation: give more text, or "
          "--validation FILE",
          first, request.settings.validation_fraction);
}

Texts Corpus::all() const {
  Texts texts = split_.training;
  texts.insert(texts.end(), split_.validation.begin(), split_.validation.end());
  return texts;
}

std::unique_ptr<Tokenizer> choose_tokenizer(const TrainSettings& settings, const Corpus& corpus,
                                            const ProgressCallback& progress, StopFlag stop) {
  const Texts texts = corpus.all();
  if (settings.tokenizer == "char") return train_character_tokenizer(texts);
  if (settings.tokenizer != "bpe") return load_tokenizer(settings.tokenizer);
  BytePairTrainingOptions options;
  options.vocabulary_size = static_cast<std::int32_t>(settings.model.vocabulary_size);
  if (settings.task == Task::masked) options.special_tokens.emplace_back("<mask>");
  return train_byte_pair_tokenizer(texts, options, progress, stop);
}

}  // namespace heed
