// Tokens on disk, in llm.c's format: 256 little-endian int32 (magic 20240520, version, count), then
// the tokens as u16 (version 1) or, for larger vocabularies, u32 (version 7).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/files.h"
#include "train/token_sequence.h"

namespace heed {

// Writes one file atomically.
void write_token_file(const std::filesystem::path& path, std::span<const std::int32_t> tokens,
                      std::int64_t vocabulary_size);

// A mapped file of tokens.
class TokenFile final : public TokenSequence {
 public:
  // Throws Error{corrupt_data} for a wrong magic, version or length.
  explicit TokenFile(const std::filesystem::path& path);

  std::int64_t size() const override { return size_; }
  // Tokens [begin, begin + out.size()).
  void read(std::int64_t begin, std::span<std::int32_t> out) const override;

 private:
  MappedFile file_;
  std::int64_t size_ = 0;
  bool wide_ = false;  // u32
};

}  // namespace heed
