#include "tokenizer/protobuf_fields.h"

#include "base/error.h"

namespace heed {

std::uint64_t ProtobufFields::read_varint() {
  const std::size_t begin = position_;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    require(position_ < message_.size(), ErrorCode::corrupt_data,
            "{}: the number at byte {} is cut off at byte {}", source_, begin, position_);
    const auto byte = static_cast<unsigned char>(message_[position_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail(ErrorCode::corrupt_data, "{}: the number at byte {} has more than 64 bits", source_, begin);
}

std::string_view ProtobufFields::read_bytes(std::uint64_t size) {
  require(size <= message_.size() - position_, ErrorCode::corrupt_data,
          "{}: a field at byte {} has {} bytes; {} are left", source_, position_, size,
          message_.size() - position_);
  const std::string_view bytes = message_.substr(position_, size);
  position_ += bytes.size();
  return bytes;
}

std::uint64_t ProtobufFields::read_fixed(std::size_t size) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char byte : read_bytes(size)) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return value;
}

bool ProtobufFields::next(ProtobufField& field) {
  if (position_ == message_.size()) return false;
  const std::size_t begin = position_;
  const std::uint64_t key = read_varint();
  constexpr std::uint64_t last_number = (1u << 29) - 1;
  require(key >> 3 >= 1 && key >> 3 <= last_number, ErrorCode::corrupt_data,
          "{}: field {} at byte {}; expected 1 to {}", source_, key >> 3, begin, last_number);
  field = {.number = static_cast<std::uint32_t>(key >> 3), .type = WireType(key & 7)};
  switch (field.type) {
    case WireType::varint: field.integer = read_varint(); return true;
    case WireType::fixed64: field.integer = read_fixed(8); return true;
    case WireType::fixed32: field.integer = read_fixed(4); return true;
    case WireType::bytes: field.bytes = read_bytes(read_varint()); return true;
  }
  fail(ErrorCode::corrupt_data, "{}: field {} at byte {} is of type {}; expected 0, 1, 2 or 5",
       source_, field.number, begin, key & 7);
}

}  // namespace heed
