// Writes a model in another format of weights.
#pragma once

#include <filesystem>
#include <string>

#include "formats/gguf_save.h"
#include "formats/model_files.h"

namespace heed {

// A directory, a pulled or a built-in model, with its tokenizer and the other files that it is read
// with. Throws what loading and save_transformer() throw, and Error{unsupported} for a model that
// is stored rounded already.
void convert_model(const std::string& model, const std::filesystem::path& out, const SavedAs& as);

// The same as one GGUF file, with the tokenizer and the chat template. Returns what of the model
// the file does not hold, in words; empty: nothing is left out.
std::string convert_to_gguf(const std::string& model, const std::filesystem::path& out,
                            GgufWeights weights);

}  // namespace heed
