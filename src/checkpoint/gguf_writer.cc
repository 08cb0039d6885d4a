#include "checkpoint/gguf_writer.h"

#include <bit>

#include "base/error.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::size_t alignment = 32;  // of tensors, unless metadata says otherwise

template <class Number>
void append_number(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_text(std::string& bytes, std::string_view text) {
  append_number<std::uint64_t>(bytes, text.size());
  bytes.append(text);
}

template <class Number>
void append_numbers(std::string& bytes, std::span<const Number> numbers) {
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
}

std::uint64_t padded(std::uint64_t size) { return (size + alignment - 1) / alignment * alignment; }

std::uint64_t size_of(const OutgoingBlocks& tensor) {
  const BlockLayout layout = block_layout(tensor.type);
  check(tensor.shape.size() % layout.values == 0, "rows are whole blocks");
  return static_cast<std::uint64_t>(tensor.shape.size() / layout.values * layout.bytes);
}

}  // namespace

void GgufMetadata::add_key(std::string_view key, GgufType type) {
  append_text(bytes_, key);
  append_number(bytes_, static_cast<std::uint32_t>(type));
  ++count_;
}

void GgufMetadata::add_array(std::string_view key, GgufType element, std::size_t count) {
  add_key(key, GgufType::array);
  append_number(bytes_, static_cast<std::uint32_t>(element));
  append_number<std::uint64_t>(bytes_, count);
}

void GgufMetadata::add(std::string_view key, std::uint32_t value) {
  add_key(key, GgufType::u32);
  append_number(bytes_, value);
}

void GgufMetadata::add(std::string_view key, float value) {
  add_key(key, GgufType::f32);
  append_number(bytes_, value);
}

void GgufMetadata::add(std::string_view key, bool value) {
  add_key(key, GgufType::boolean);
  append_number<std::uint8_t>(bytes_, value ? 1 : 0);
}

void GgufMetadata::add(std::string_view key, std::string_view value) {
  add_key(key, GgufType::string);
  append_text(bytes_, value);
}

void GgufMetadata::add(std::string_view key, std::span<const std::string> values) {
  add_array(key, GgufType::string, values.size());
  for (const std::string& value : values) append_text(bytes_, value);
}

void GgufMetadata::add(std::string_view key, std::span<const float> values) {
  add_array(key, GgufType::f32, values.size());
  append_numbers(bytes_, values);
}

void GgufMetadata::add(std::string_view key, std::span<const std::int32_t> values) {
  add_array(key, GgufType::i32, values.size());
  append_numbers(bytes_, values);
}

void GgufMetadata::add(std::string_view key, std::span<const std::uint8_t> values) {
  add_array(key, GgufType::u8, values.size());
  append_numbers(bytes_, values);
}

void GgufMetadata::add(const GgufMetadata& others) {
  count_ += others.count_;
  bytes_ += others.bytes_;
}

std::string gguf_header(const GgufMetadata& metadata, std::span<const OutgoingBlocks> tensors) {
  std::string bytes = "GGUF";
  append_number<std::uint32_t>(bytes, 3);
  append_number<std::uint64_t>(bytes, tensors.size());
  append_number<std::uint64_t>(bytes, metadata.count());
  bytes += metadata.bytes();
  std::uint64_t offset = 0;
  for (const OutgoingBlocks& tensor : tensors) {
    append_text(bytes, tensor.name);
    append_number(bytes, static_cast<std::uint32_t>(tensor.shape.rank()));
    for (int i = tensor.shape.rank() - 1; i >= 0; --i) {
      append_number(bytes, static_cast<std::uint64_t>(tensor.shape[i]));
    }
    append_number(bytes, static_cast<std::uint32_t>(tensor.type));
    append_number(bytes, offset);
    offset = padded(offset + size_of(tensor));
  }
  bytes.resize(padded(bytes.size()), '\0');
  return bytes;
}

void write_gguf(AtomicFile& file, const GgufMetadata& metadata,
                std::span<const OutgoingBlocks> tensors) {
  file.write(gguf_header(metadata, tensors));
  const std::string zeros(alignment, '\0');
  for (const OutgoingBlocks& tensor : tensors) {
    std::uint64_t written = 0;
    tensor.produce([&](std::span<const std::byte> piece) {
      file.write(piece.data(), piece.size());
      written += piece.size();
    });
    const std::uint64_t size = size_of(tensor);
    check(written == size, "a tensor hands over the bytes of its shape");
    file.write(zeros.data(), padded(size) - size);
  }
}

}  // namespace heed
