// safetensors and shard indices from any bytes. What is accepted is read in full, so that a lie in
// the header becomes an access outside the buffer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "allowed_errors.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"
#include "tensor/tensor.h"

namespace {

void read_everything(const heed::SafetensorsFile& file) {
  for (const heed::TensorEntry& entry : file.tensors()) {
    if (file.find(entry.name) != &entry) std::abort();
    heed::Tensor<float> out(entry.shape);
    heed::fuzz::allow_errors({heed::ErrorCode::unsupported}, [&] {
      heed::read_as_f32(entry, out);
      if (entry.shape.rank() == 2) {
        heed::Tensor<float> turned(heed::Shape{entry.shape[1], entry.shape[0]});
        heed::read_transposed_as_f32(entry, turned);
      }
    });
  }
}

void parse(std::span<const std::byte> bytes) {
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data, heed::ErrorCode::unsupported},
                           [&] { read_everything(heed::SafetensorsFile::parse(bytes, "input")); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  parse(bytes);

  // The same bytes as a header whose stated length is right, with 64 bytes of data after it, so
  // that the search gets past the first check.
  const std::uint64_t length = size;
  std::string framed(sizeof(length), '\0');
  std::memcpy(framed.data(), &length, sizeof(length));
  framed.append(reinterpret_cast<const char*>(data), size).append(64, '\x3c');
  parse(std::as_bytes(std::span(framed)));

  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data}, [&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [tensor, file] : heed::parse_shard_index(text, "index")) {
      if (file.find('/') != std::string::npos || file == "..") std::abort();
    }
  });
  return 0;
}
