#include "model/block_weights.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/elements.h"
#include "tensor/pages.h"

namespace heed {
namespace {

using kernels::WeightFormat;

struct TypeOfBlocks {
  BlockType type;
  WeightFormat format;
};
constexpr TypeOfBlocks types_of_blocks[] = {
    {BlockType::q8_0, WeightFormat::q8_0}, {BlockType::q4_0, WeightFormat::q4_0},
    {BlockType::q4_1, WeightFormat::q4_1}, {BlockType::q5_0, WeightFormat::q5_0},
    {BlockType::q5_1, WeightFormat::q5_1}, {BlockType::q2_k, WeightFormat::q2_k},
    {BlockType::q3_k, WeightFormat::q3_k}, {BlockType::q4_k, WeightFormat::q4_k},
    {BlockType::q5_k, WeightFormat::q5_k}, {BlockType::q6_k, WeightFormat::q6_k}};

}  // namespace

std::optional<WeightFormat> find_weight_format(BlockType type) {
  const auto* const found = std::ranges::find(types_of_blocks, type, &TypeOfBlocks::type);
  if (found == std::end(types_of_blocks)) return std::nullopt;
  return found->format;
}

BlockTable::BlockTable(const BlockRows& rows, std::shared_ptr<const void> file)
    : rows_(rows), file_(std::move(file)) {
  const BlockLayout layout = block_layout(rows.type);
  check(rows.shape[1] % layout.values == 0 &&
            std::ssize(rows.bytes) == rows.shape.size() / layout.values * layout.bytes,
        "whole blocks of every row");
}

void BlockTable::read_rows(std::span<const std::int32_t> numbers, View<float> rows) const {
  if (weight_ != nullptr) {
    for (std::int64_t row = 0; row < std::ssize(numbers); ++row) {
      const std::vector<float> read = weight_->restored_row(numbers[static_cast<std::size_t>(row)]);
      kernels::copy({read.data(), Shape{std::ssize(read)}}, rows[row]);
    }
    return;
  }
  require_shape(rows, {std::ssize(numbers), rows_.shape[1]}, "rows");
  const BlockLayout layout = block_layout(rows_.type);
  const auto row_bytes = static_cast<std::size_t>(rows_.shape[1] / layout.values * layout.bytes);
  for (std::int64_t row = 0; row < std::ssize(numbers); ++row) {
    const auto number = static_cast<std::size_t>(numbers[static_cast<std::size_t>(row)]);
    unpack_blocks(rows_.type, rows_.bytes.subspan(number * row_bytes, row_bytes), rows[row].span());
  }
}

void BlockTable::restore(View<float> all) const {
  if (weight_ != nullptr) return kernels::copy(weight_->restored().view(), all);
  const BlockLayout layout = block_layout(rows_.type);
  const std::int64_t row_bytes = rows_.shape[1] / layout.values * layout.bytes;
  parallel_ranges(rows_.shape[0], 16, [&](std::int64_t begin, std::int64_t end) {
    unpack_blocks(rows_.type,
                  rows_.bytes.subspan(static_cast<std::size_t>(begin * row_bytes),
                                      static_cast<std::size_t>((end - begin) * row_bytes)),
                  all.slice(0, begin, end).span());
  });
}

void TokenRowsRead::require_tokens(std::span<const std::int32_t> tokens, std::int64_t vocabulary) {
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < vocabulary, ErrorCode::invalid_argument,
            "token {} is outside the vocabulary of {}", token, vocabulary);
  }
}

void TokenRowsRead::number_rows(const Shape& shape) {
  numbers_ = Tensor<std::int32_t>(shape);
  std::int32_t next = 0;
  for (std::int32_t& number : numbers_.span()) number = next++;
}

void BlockWeights::add(const ParameterId& id, kernels::PreparedWeight multiplied) {
  Held& held = held_.emplace_back();
  held.id = id;
  held.multiplied = std::move(multiplied);
  held.table.emplace(*held.multiplied);
}

void BlockWeights::add(const ParameterId& id, BlockTable table) {
  Held& held = held_.emplace_back();
  held.id = id;
  held.table = std::move(table);
}

const BlockWeights::Held* BlockWeights::find(const ParameterId& id) const {
  const auto found = std::ranges::find(held_, id, &Held::id);
  return found == held_.end() ? nullptr : &*found;
}

kernels::PreparedWeight* BlockWeights::multiplied(const ParameterId& id) {
  const auto found = std::ranges::find(held_, id, &Held::id);
  return found == held_.end() || !found->multiplied ? nullptr : &*found->multiplied;
}

const BlockTable* BlockWeights::table(const ParameterId& id) const {
  const Held* const held = find(id);
  return held == nullptr ? nullptr : &*held->table;
}

void BlockWeights::read(const ParameterId& id, View<float> matrix) const {
  const Held* const held = find(id);
  check(held != nullptr, "a matrix of blocks");
  held->table->restore(matrix);
}

void BlockWeights::restore(const ParameterId& id, View<float> place) const {
  const Held* const held = find(id);
  if (held == nullptr) return;
  const std::lock_guard lock(*restoring_);
  if (held->is_restored) return;
  commit_pages_of(place);
  read(id, place);
  held->is_restored = true;
}

bool BlockWeights::is_restored(const ParameterId& id) const {
  const Held* const held = find(id);
  if (held == nullptr) return false;
  const std::lock_guard lock(*restoring_);
  return held->is_restored;
}

WeightFormat BlockWeights::most_common_format() const {
  std::map<WeightFormat, std::int64_t> weights{{WeightFormat::f32, 0}};
  for (const Held& held : held_) {
    if (!held.multiplied) continue;
    for (const kernels::PreparedWeight::Part& part : held.multiplied->parts()) {
      weights[part.format] += part.panels * held.multiplied->inputs();
    }
  }
  auto most = weights.begin();
  for (auto each = most; each != weights.end(); ++each) {
    if (each->second > most->second) most = each;
  }
  return most->first;
}

std::int64_t BlockWeights::bytes() const {
  std::int64_t sum = 0;
  for (const Held& held : held_) sum += held.multiplied ? held.multiplied->bytes() : 0;
  return sum;
}

}  // namespace heed
