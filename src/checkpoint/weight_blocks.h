// Types of weights as GGUF files store them: single numbers, or blocks of 32 or 256 numbers that
// share scales. The layouts are those of ggml; each row of a tensor holds whole blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace heed {

// The values are the type numbers of the format; those that heed does not read have none.
enum class BlockType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
};

struct BlockLayout {
  std::string_view name;    // as the format writes it: "Q4_K"
  std::int64_t values = 1;  // numbers of a block
  std::int64_t bytes = 0;   // of a block
};

BlockLayout block_layout(BlockType type);

bool holds_weights(BlockType type);  // not integers

// The type of a number in a file; nothing for one that heed does not read.
std::optional<BlockType> find_block_type(std::uint32_t number);

// The format's name of a type number that heed does not read ("IQ2_XS"); empty for a number that no
// release of the format has given out.
std::string_view unread_block_type(std::uint32_t number);

// Values of `out.size()` numbers in whole blocks, exactly as the format defines them: in f32, each
// operation rounded. Throws Error{invalid_argument} for bytes or numbers that are not the same
// whole number of blocks, Error{unsupported} for the integer types.
void unpack_blocks(BlockType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace heed
