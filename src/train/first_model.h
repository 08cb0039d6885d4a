// The model that a run trains, before its first step.
#pragma once

#include "formats/model_files.h"
#include "model/gpt.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace heed {

// The model of request.from. Throws Error{unsupported} for quantised weights, Error{conflict} for a
// model of another shape than the settings', Error{corrupt_data} for one whose tokenizer has more
// tokens than it.
Gpt model_to_fine_tune(const TrainRequest& request, const TrainSettings& settings,
                       const Tokenizer& tokenizer);

// Task and shape of the model in a directory, without dropout: what fine-tuning keeps.
void set_fine_tuned_model(const std::filesystem::path& from, TrainSettings& settings);

// What the directories of a run's models hold beside the weights: what the directory `of` holds, of
// a model that is trained further; else the files of the tokenizer.
SourceFiles run_files(const std::filesystem::path& of, const Tokenizer& tokenizer);

std::vector<CompanionFile> tokenizer_companions(const Tokenizer& tokenizer);

}  // namespace heed
