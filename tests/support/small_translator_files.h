// The small translator as a directory.
#pragma once

#include <filesystem>

#include "formats/model_files.h"
#include "support/small_translator.h"

namespace heed::testing {

inline void write_small_translator(const std::filesystem::path& directory) {
  const TranslationTokenizers tokenizers = small_joint_vocabulary();
  std::vector<CompanionFile> files;
  for (const TokenizerFile& file : tokenizers.source->files()) {
    files.push_back({file.name, file.content});
  }
  save_transformer(small_translator(tokenizers), directory, files);
}

}  // namespace heed::testing
