// Matrices of a model that stay in the blocks of a file (GGUF), instead of in the arena of
// parameters: products multiply by the blocks, rows of tokens are unpacked one by one. What needs
// such a matrix in f32 has it restored, exactly, when it is first asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "checkpoint/weight_blocks.h"
#include "kernels/operands.h"
#include "kernels/prepared_weight.h"
#include "model/roles.h"
#include "tensor/tensor.h"

namespace heed {

// Rows of blocks (R, I), as a file holds them. Borrowed.
struct BlockRows {
  BlockType type = BlockType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// The format of products with blocks of a type; nothing for single numbers.
std::optional<kernels::WeightFormat> find_weight_format(BlockType type);

// A table (V, C) of which single rows are read.
class BlockTable {
 public:
  // `file` keeps the bytes where they are.
  BlockTable(const BlockRows& rows, std::shared_ptr<const void> file);
  // Of a matrix that products multiply by, too. Borrowed.
  explicit BlockTable(const kernels::PreparedWeight& weight) : weight_(&weight) {}

  // rows (N, C) = those of the numbers (N), each in [0, V)
  void read_rows(std::span<const std::int32_t> numbers, View<float> rows) const;
  void restore(View<float> all) const;

 private:
  BlockRows rows_;
  std::shared_ptr<const void> file_;
  const kernels::PreparedWeight* weight_ = nullptr;  // or this
};

// Rows of a table that a pass reads, where the table is not in memory as a whole: (N, C), numbered
// in the order of its tokens.
class TokenRowsRead {
 public:
  // Makes `input` read rows that fill(tokens (N), rows (N, C)) fills, and that must outlive it.
  // Throws Error{invalid_argument} for a token outside the table.
  template <class Fill>
  void read(kernels::EmbeddingInput<float>& input, const Fill& fill) {
    const std::span<const std::int32_t> tokens = input.tokens.span();
    require_tokens(tokens, input.token_table.extent(0));
    rows_ = Tensor<float>(Shape{std::ssize(tokens), input.token_table.extent(1)});
    fill(tokens, rows_.view());
    number_rows(input.tokens.shape());
    input.tokens = numbers_;
    input.token_table = rows_;
  }
  // The rows of a table in blocks.
  void read(const BlockTable& table, kernels::EmbeddingInput<float>& input) {
    read(input, [&](std::span<const std::int32_t> tokens, View<float> rows) {
      table.read_rows(tokens, rows);
    });
  }

 private:
  static void require_tokens(std::span<const std::int32_t> tokens, std::int64_t vocabulary);
  void number_rows(const Shape& shape);

  Tensor<float> rows_;
  Tensor<std::int32_t> numbers_;
};

class BlockWeights {
 public:
  BlockWeights() = default;
  BlockWeights(BlockWeights&&) noexcept = default;
  BlockWeights& operator=(BlockWeights&&) noexcept = default;

  void add(const ParameterId& id, kernels::PreparedWeight multiplied);
  void add(const ParameterId& id, BlockTable table);

  bool empty() const { return held_.empty(); }
  bool has(const ParameterId& id) const { return find(id) != nullptr; }
  // Null where there is none.
  kernels::PreparedWeight* multiplied(const ParameterId& id);
  const BlockTable* table(const ParameterId& id) const;

  // matrix (O, I) in f32
  void read(const ParameterId& id, View<float> matrix) const;
  // Reads it to its place in an arena of reserved addresses, unless it was before.
  void restore(const ParameterId& id, View<float> place) const;
  bool is_restored(const ParameterId& id) const;

  // The format that most of the weights are multiplied in; f32 where none are.
  kernels::WeightFormat most_common_format() const;
  // Of what is multiplied; tables are read where the file is.
  std::int64_t bytes() const;

 private:
  struct Held {
    ParameterId id;
    std::optional<kernels::PreparedWeight> multiplied;  // none: only read
    std::optional<BlockTable> table;                    // one at least
    mutable bool is_restored = false;
  };
  const Held* find(const ParameterId& id) const;

  std::deque<Held> held_;  // elements stay in place
  std::unique_ptr<std::mutex> restoring_ = std::make_unique<std::mutex>();
};

}  // namespace heed
