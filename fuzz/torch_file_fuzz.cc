// PyTorch's checkpoints: archives of any bytes, and pickles of any instructions in a good archive.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "allowed_errors.h"
#include "base/error.h"
#include "checkpoint/torch_bytes.h"
#include "checkpoint/torch_file.h"

namespace {

volatile unsigned char read_sum = 0;

void parse(const std::string& bytes) {
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data, heed::ErrorCode::unsupported}, [&] {
    const heed::TorchFile file = heed::TorchFile::parse(std::as_bytes(std::span(bytes)), "input");
    unsigned char sum = 0;
    for (const heed::TensorEntry& entry : file.tensors()) {
      for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned char>(byte);
    }
    read_sum = sum;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: parse(rest); break;
    case 1: parse(heed::testing::torch_bytes(rest, std::string(24, '\x3f'))); break;
    default: {  // a piece of a good archive replaced
      std::string good =
          heed::testing::torch_bytes(heed::testing::dictionary_of({}), std::string(24, '\x3f'));
      if (rest.size() < 2) break;
      const std::size_t place = (static_cast<unsigned char>(rest[0]) * std::size_t{256} +
                                 static_cast<unsigned char>(rest[1])) %
                                good.size();
      parse(good.replace(place, rest.size() - 2, rest.substr(2)));
    }
  }
  return 0;
}
