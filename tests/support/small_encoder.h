// An encoder of the goldens (BERT, 67 tokens, a context of 40), with words for it.
#pragma once

#include <filesystem>

#include "base/files.h"

namespace heed::testing {

inline void write_small_encoder(const std::filesystem::path& directory) {
  const std::filesystem::path golden = HEED_SOURCE_DIR "/tests/golden/pairs/bert";
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy(golden / file, directory / file);
  }
  write_text_file(directory / "vocab.txt",
                  "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\n##s\n");
}

}  // namespace heed::testing
