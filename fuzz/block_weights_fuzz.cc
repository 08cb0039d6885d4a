// Weights of any bytes as GGUF's blocks: prepared, they are those that the blocks unpack to, to the
// bit, or they are refused.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "allowed_errors.h"
#include "base/error.h"
#include "checkpoint/weight_blocks.h"
#include "kernels/prepared_weight.h"

namespace {

using heed::BlockType;
using heed::kernels::BlockMatrix;
using heed::kernels::WeightFormat;

constexpr std::array<std::pair<WeightFormat, BlockType>, 10> types = {{
    {WeightFormat::q8_0, BlockType::q8_0},
    {WeightFormat::q4_0, BlockType::q4_0},
    {WeightFormat::q4_1, BlockType::q4_1},
    {WeightFormat::q5_0, BlockType::q5_0},
    {WeightFormat::q5_1, BlockType::q5_1},
    {WeightFormat::q2_k, BlockType::q2_k},
    {WeightFormat::q3_k, BlockType::q3_k},
    {WeightFormat::q4_k, BlockType::q4_k},
    {WeightFormat::q5_k, BlockType::q5_k},
    {WeightFormat::q6_k, BlockType::q6_k},
}};

void prepare(const BlockMatrix& matrix, BlockType type) {
  std::vector<float> expected(static_cast<std::size_t>(matrix.shape.size()));
  heed::unpack_blocks(type, matrix.blocks, expected);
  const heed::kernels::PreparedWeight weight(matrix);
  const heed::Tensor<float> restored = weight.restored();
  if (std::memcmp(restored.data(), expected.data(), expected.size() * sizeof(float)) != 0) {
    std::abort();
  }
}

}  // namespace

// The first byte chooses the type, the second the outputs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::pair<WeightFormat, BlockType>& chosen = types[data[0] % types.size()];
  const WeightFormat format = chosen.first;
  const std::int64_t outputs = 1 + data[1] % 70;
  const std::span<const std::byte> blocks =
      std::as_bytes(std::span<const std::uint8_t>(data, size).subspan(2));
  const heed::kernels::BlockSize block = heed::kernels::block_size(format);
  const std::int64_t of_a_row = static_cast<std::int64_t>(blocks.size()) / block.bytes / outputs;
  const auto whole = static_cast<std::size_t>(of_a_row * outputs * block.bytes);
  if (of_a_row == 0) return 0;
  // all bytes, which may not be whole blocks, then those that are
  for (const std::size_t bytes : {blocks.size(), whole}) {
    heed::fuzz::allow_errors({heed::ErrorCode::invalid_argument}, [&] {
      const BlockMatrix matrix{.blocks = blocks.first(bytes),
                               .shape = {outputs, of_a_row * block.values},
                               .format = format};
      prepare(matrix, chosen.second);
    });
  }
  return 0;
}
