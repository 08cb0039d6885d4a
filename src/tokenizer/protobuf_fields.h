// Reads the fields of a protocol buffer message, which is a list of numbered values.
#pragma once

#include <cstdint>
#include <string_view>

namespace heed {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtobufField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t integer = 0;  // of varint, fixed64 and fixed32
  std::string_view bytes;     // of bytes: a string or a message
};

class ProtobufFields {
 public:
  // `source` names the message in errors, and both views outlive the reader.
  ProtobufFields(std::string_view message, std::string_view source)
      : message_(message), source_(source) {}

  // False at the end. Throws Error{corrupt_data} naming the offset of what is no field, or of one
  // that is cut off.
  bool next(ProtobufField& field);

 private:
  std::uint64_t read_varint();
  std::string_view read_bytes(std::uint64_t size);
  std::uint64_t read_fixed(std::size_t size);

  std::string_view message_;
  std::string_view source_;
  std::size_t position_ = 0;
};

}  // namespace heed
