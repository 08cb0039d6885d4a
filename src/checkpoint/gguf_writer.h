// Writes GGUF files, version 3.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_blocks.h"
#include "tensor/shape.h"

namespace heed {

// Keys and values in the order in which they are added.
class GgufMetadata {
 public:
  void add(std::string_view key, std::uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) = delete;  // would be a boolean
  void add(std::string_view key, std::span<const std::string> values);
  void add(std::string_view key, std::span<const float> values);
  void add(std::string_view key, std::span<const std::int32_t> values);
  void add(std::string_view key, std::span<const std::uint8_t> values);
  void add(const GgufMetadata& others);

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_key(std::string_view key, GgufType type);
  void add_array(std::string_view key, GgufType element, std::size_t count);

  std::uint64_t count_ = 0;
  std::string bytes_;
};

// A tensor to be written, whose `produce` passes all of its blocks to the sink, in order.
struct OutgoingBlocks {
  std::string name;
  BlockType type = BlockType::f32;
  Shape shape;  // outermost first
  std::function<void(const ByteSink&)> produce;
};

// What a file begins with: all but the data of its tensors.
std::string gguf_header(const GgufMetadata& metadata, std::span<const OutgoingBlocks> tensors);

// Writes to a file that the caller commits.
void write_gguf(AtomicFile& file, const GgufMetadata& metadata,
                std::span<const OutgoingBlocks> tensors);

}  // namespace heed
