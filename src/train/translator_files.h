// The models that runs on pairs begin with and write.
#pragma once

#include <filesystem>

#include "model/encoder_decoder.h"
#include "tokenizer/tokenizer.h"
#include "train/settings.h"

namespace heed {

// As settings describe it, with the vocabulary and special tokens of the tokenizer. Throws
// Error{invalid_argument} for a tokenizer that has no token with which a decoder's text can begin.
Architecture translator_architecture(const TrainSettings& settings,
                                     const TranslationTokenizers& tokenizers);

// That of a directory, with the dropout of `settings`. Throws Error{unsupported} for quantised
// weights and Error{corrupt_data} for a tokenizer with more tokens than the model.
EncoderDecoder translator_to_fine_tune(const std::filesystem::path& from,
                                       const TrainSettings& settings,
                                       const TranslationTokenizers& tokenizers);

}  // namespace heed
