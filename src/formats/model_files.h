// A model as a directory in Hugging Face's layout, config.json and model.safetensors (or shards of
// it) in any format of format.h, or as a GGUF file (formats/gguf_files.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tokenizer_config.h"
#include "formats/config_file.h"
#include "formats/gguf_files.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"

namespace heed {

inline constexpr const char* weights_file_name = "model.safetensors";

// The directory of a model, given the directory itself or a safetensors file (or the index of its
// shards) in it; a GGUF file, which is a whole model, itself. Throws Error{not_found} where the
// path or config.json is missing, and Error{unsupported} for another kind of file.
std::filesystem::path model_directory(const std::filesystem::path& directory_or_file);

// What begins and ends texts is read as formats/text_ends.h says. Tensor names may carry or lack
// the prefix of their format; f32, f16 and bf16 are read. Throws Error{not_found} for missing files
// and Error{corrupt_data} where the tensors contradict the config: one is missing, unexpected, or
// of another shape. A model that was saved quantised is prepared in that format
// (Parameters::prepare); its parameters are the dequantised matrices. Throws Error{unsupported} for
// a model of another number of stacks than is wanted, before its weights are read.
enum class StacksWanted { one, two, any };
Transformer load_transformer(StacksWanted stacks, const std::filesystem::path& directory_or_file);
// The same of a GGUF file that was opened. Matrices in blocks stay so (model/block_weights.h).
Transformer load_transformer(StacksWanted stacks, const GgufModel& opened);

// What a model's config.json, or the metadata of its GGUF file, describes.
Architecture read_architecture(const std::filesystem::path& directory_or_file);
// Whether there is a model there of an encoder and a decoder. Throws as parse_json does.
bool is_encoder_decoder_directory(const std::filesystem::path& directory_or_file);

// The same from the contents of both files in memory, borrowed for the call.
struct ModelBytes {
  std::string name;  // for messages
  std::string_view config;
  std::span<const std::byte> weights;
};
Transformer load_transformer(StacksWanted stacks, const ModelBytes& files);

// The tokenizer of a model, of its directory or inside its GGUF file; null where it has none.
std::unique_ptr<Tokenizer> find_tokenizer(const std::filesystem::path& directory_or_file);
// The same. Throws Error{not_found} where the model has none.
std::unique_ptr<Tokenizer> require_tokenizer(const std::filesystem::path& directory_or_file);
TranslationTokenizers require_translation_tokenizers(
    const std::filesystem::path& directory_or_file);
// What tokenizer_config.json says, or the same keys of a GGUF file.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory_or_file);

// Writes both files and those of its source, in the layout that `transformers` loads, as
// written_config() says. Files of companion_file_names() that the source does not have are removed,
// if it has any. A GPT-2 without biases is written with zeros for them, and marked in config.json.
// Throws Error{unsupported} where no format expresses the model, and Error{invalid_argument},
// before anything is written, for a weight that is not finite in the format, naming its tensor.
//
// With a format other than f32, the matrices of linear layers are quantised to it: bf16 as tensors
// of BF16, integers as src/formats/integer_weights.h describes; config.json names the format under
// the key `heed`. Embedding tables (also one tied to the unembedding), norms and biases stay f32,
// but where `embedding` says otherwise: for the token embedding, which is stored in the format, and
// the position embedding, stored in bf16. Loaded again, the model computes, to the bit, what it
// would if it were prepared in that format; with `f32` arithmetic, what the rounded numbers give in
// f32.
//
// All files are written under temporary names before the first is renamed, so that a full disk
// leaves the old model. A crash between two renames leaves the new weights with unchanged
// companions or, where one has changed, a directory without config.json: never a mixture of two
// models.
struct SavedAs {
  enum class Embedding { f32, rounded };
  enum class Arithmetic { as_stored, f32 };

  SavedAs(kernels::WeightFormat weight_format = kernels::WeightFormat::f32)
      : format(weight_format) {}

  kernels::WeightFormat format;
  Embedding embedding = Embedding::f32;
  Arithmetic arithmetic = Arithmetic::as_stored;
};
void save_transformer(const Transformer& model, const std::filesystem::path& directory,
                      const SourceFiles& source = {}, const SavedAs& as = {});

// Reads the parameters as saving in f32 does, and writes nothing: of a model that several processes
// hold in parts (ParameterSchedule), while one of them saves it.
void read_weights(const Transformer& model, const SourceFiles& source = {});

}  // namespace heed
