// Element types of tensors in memory and on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heed {

enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean
};

// Bytes of one element.
std::size_t dtype_size(DType type);

// safetensors' name of a type: "F32", "BF16", "I64", ...
std::string_view dtype_name(DType type);

// IEEE half as a bit pattern.
float f16_to_f32(std::uint16_t bits);
// The nearest one, of two the even one; infinity beyond the largest.
std::uint16_t f32_to_f16(float value);

}  // namespace heed
