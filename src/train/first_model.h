// The model that a run trains, before its first step.
#pragma once

#include <filesystem>

#include "formats/model_files.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace heed {

// The model of request.from. Throws Error{unsupported} for quantised weights, Error{conflict} for a
// model of another shape than the settings', Error{corrupt_data} for one whose tokenizer has more
// tokens than it.
Transformer model_to_fine_tune(const TrainRequest& request, const TrainSettings& settings,
                               const Tokenizer& tokenizer);

// Task and shape of the model in a directory, without dropout: what fine-tuning keeps.
void set_fine_tuned_model(const std::filesystem::path& from, TrainSettings& settings);

// What the directories of a run's models hold beside the weights: what the directory `of` holds, of
// a model that is trained further; else the files of the tokenizer.
SourceFiles run_files(const std::filesystem::path& of, const Tokenizer& tokenizer);

std::vector<CompanionFile> tokenizer_companions(const Tokenizer& tokenizer);

// Throws Error{unsupported} for a shape that no file format can hold, of translators naming the
// settings that make it so. A run would find out at its first checkpoint.
void require_writable_shape(const TrainSettings& settings);

// The same of a model that is fine-tuned, whose shape its directory `from` holds already, and whose
// rates of dropout are the run's.
void require_writable_dropout(const Architecture& architecture, const std::filesystem::path& from);

}  // namespace heed
