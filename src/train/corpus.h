// The text of a run and its tokenizer.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/character_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "train/token_data.h"
#include "train/trainer.h"

namespace heed {

// The files of a request, mapped, and split into training and validation text.
class Corpus {
 public:
  // Throws Error{not_found} for a missing file, Error{invalid_argument} where there is no text
  // to train on, or none in a validation file that was named.
  explicit Corpus(const TrainRequest& request);

  const Texts& training() const { return split_.training; }
  const Texts& validation() const { return split_.validation; }  // empty: none

  // Leaves out of the validation text what has no token in a vocabulary that was learned from the
  // training text, and says so; empty where there is nothing of the kind.
  std::string drop_unknown(const CharacterTokenizer& learned);

 private:
  std::vector<MappedFile> files_;
  SplitTexts split_;
  std::deque<std::string> known_;  // does not move what views point to
};

// The tokenizer of settings.tokenizer: learned from the training text ("char", "bpe") or loaded.
std::unique_ptr<Tokenizer> choose_tokenizer(const TrainSettings& settings, const Corpus& corpus,
                                            const ProgressCallback& progress, StopFlag stop);

}  // namespace heed
