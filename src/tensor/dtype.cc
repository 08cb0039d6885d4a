#include "tensor/dtype.h"

#include <bit>
#include <cmath>

#include "base/error.h"

namespace heed {

std::size_t dtype_size(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 1;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
  }
  fail(ErrorCode::internal, "unknown dtype {}", static_cast<int>(type));
}

std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::f64: return "F64";
    case DType::i8: return "I8";
    case DType::u8: return "U8";
    case DType::i16: return "I16";
    case DType::u16: return "U16";
    case DType::i32: return "I32";
    case DType::u32: return "U32";
    case DType::i64: return "I64";
    case DType::u64: return "U64";
    case DType::boolean: return "BOOL";
  }
  fail(ErrorCode::internal, "unknown dtype {}", static_cast<int>(type));
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t rebased = exponent == 31 ? 255U : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (rebased << 23) | (fraction << 13));
}

std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {  // not a number
    half = 0x7E00U;
  } else if (magnitude >= 0x477FF000U) {  // 65520 and more
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: multiples of 2^-24
    half = static_cast<std::uint32_t>(
        std::lrint(std::bit_cast<float>(magnitude) * 0x1.0p24F));  // ties to even
  } else {
    half = (magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace heed
