// A model as a GGUF file: all that a model directory has, in one file or its parts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"
#include "formats/config_file.h"
#include "formats/format.h"

namespace heed {

// By its name, "NAME.gguf".
bool is_gguf_path(const std::filesystem::path& path);

// "model" of "model.gguf" and of "model-00001-of-00003.gguf".
std::string gguf_model_name(const std::filesystem::path& path);

// A file that was opened, with its description.
struct GgufModel {
  std::string source;  // for messages
  Format format;       // of its tensors
  Json config;         // as config.json would have it
  Architecture architecture;
  std::shared_ptr<const TensorSource> tensors;

  // Its first part, which has the metadata.
  const GgufFile& metadata() const { return tensors->gguf_parts().front(); }
};

// Throws what open_gguf_parts and gguf_config throw. `require_kind` refuses a format before the
// model is described.
GgufModel open_gguf_model(const std::filesystem::path& path,
                          void (*require_kind)(const Format& format,
                                               const std::string& source) = nullptr);

// Its description, tokenizer and chat template as the files of a directory.
SourceFiles read_gguf_source_files(const std::filesystem::path& path);

}  // namespace heed
