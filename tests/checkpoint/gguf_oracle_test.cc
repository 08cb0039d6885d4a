// What tests/checkpoint/oracle compares with another reader of the format: all numbers of a file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "checkpoint/gguf.h"

namespace heed {
namespace {

TEST(GgufOracle, UnpacksAFile) {
  const char* const path = std::getenv("HEED_GGUF_FILE");
  const char* const out = std::getenv("HEED_GGUF_NUMBERS");
  if (path == nullptr || out == nullptr) GTEST_SKIP() << "run by tests/checkpoint/oracle/run.sh";
  const GgufFile file = GgufFile::open(path);
  AtomicFile numbers_file(out);
  for (const GgufTensor& tensor : file.tensors()) {
    std::vector<float> numbers(static_cast<std::size_t>(tensor.shape.size()));
    unpack_blocks(tensor.type, tensor.bytes, numbers);
    numbers_file.write(numbers.data(), numbers.size() * sizeof(float));
  }
  numbers_file.commit();
}

}  // namespace
}  // namespace heed
