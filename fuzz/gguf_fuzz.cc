// GGUF files from any bytes. What is accepted is read in full, so that a lie in the header becomes
// an access outside the buffer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "allowed_errors.h"
#include "base/error.h"
#include "checkpoint/gguf.h"

namespace {

void read_value(const heed::GgufValue& value) {
  if (value.shown(3).size() > 4096) std::abort();
  const auto attempt = [](auto&& read) {
    heed::fuzz::allow_errors({heed::ErrorCode::invalid_argument}, [&] { read(); });
  };
  attempt([&] { value.integer(); });
  attempt([&] { value.number(); });
  attempt([&] { value.boolean(); });
  attempt([&] { value.text(); });
  attempt([&] { value.integers(); });
  attempt([&] { value.numbers(); });
  attempt([&] { value.texts(); });
}

void read_everything(const heed::GgufFile& file) {
  for (const heed::GgufEntry& entry : file.metadata()) {
    if (file.find_value(entry.key) != &entry.value) std::abort();
    read_value(entry.value);
  }
  for (const heed::GgufTensor& tensor : file.tensors()) {
    if (file.find(tensor.name) != &tensor) std::abort();
    std::vector<float> numbers(static_cast<std::size_t>(tensor.shape.size()));
    heed::fuzz::allow_errors({heed::ErrorCode::unsupported},
                             [&] { heed::unpack_blocks(tensor.type, tensor.bytes, numbers); });
  }
}

void parse(std::span<const std::byte> bytes) {
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data, heed::ErrorCode::unsupported},
                           [&] { read_everything(heed::GgufFile::parse(bytes, "input")); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  parse(std::as_bytes(std::span(data, size)));

  // The same bytes after a right beginning, so that the search gets past the first checks: the
  // first byte says how many tensors and entries follow.
  if (size == 0) return 0;
  std::string framed = "GGUF";
  framed.append({3, 0, 0, 0});
  framed.push_back(static_cast<char>(data[0] & 3));
  framed.append(7, '\0');
  framed.push_back(static_cast<char>(data[0] >> 2 & 7));
  framed.append(7, '\0');
  framed.append(reinterpret_cast<const char*>(data + 1), size - 1).append(96, '\x3c');
  parse(std::as_bytes(std::span(framed)));
  return 0;
}
