#include "tensor/dtype.h"

#include <bit>

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

}  // namespace heed
