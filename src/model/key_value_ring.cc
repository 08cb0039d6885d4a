#include "model/key_value_ring.h"

#include "base/error.h"
#include "kernels/elements.h"

namespace heed {
namespace {

// The chunks of `place` of sequences (B, T), as (2·B, c).
Tensor<std::int32_t> chunks_of(View<const std::int32_t> sequences, const RingPlace& place) {
  const std::int64_t batch = sequences.extent(0), length = place.chunk_length();
  Tensor<std::int32_t> chunks(Shape{RingPlace::chunks * batch, length});
  for (std::int64_t chunk = 0; chunk < RingPlace::chunks; ++chunk) {
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t first = place.start(place.member, chunk);
      kernels::copy(sequences[b].slice(0, first, first + length), chunks.view()[chunk * batch + b]);
    }
  }
  return chunks;
}

}  // namespace

std::int64_t KeyValueRing::bytes_needed(const StackSpecification& stack, std::int64_t batch,
                                        const RingPlace& place) {
  if (place.members == 1) return 0;
  const AttentionSpecification& attention = stack.block.attention;
  const std::int64_t rows = batch * place.chunk_length();  // of one chunk
  const std::int64_t memories = 4 * 2 * RingPlace::chunks * attention.key_value_width();
  const std::int64_t of_pairs =
      attention.query_width() + attention.query_heads + 2 * attention.key_value_width();
  return rows * (memories + of_pairs) * static_cast<std::int64_t>(sizeof(float));
}

PassShape::PassShape(std::int64_t sequences, std::int64_t length, const KeyValueRing* ring)
    : batch(ring != nullptr ? RingPlace::chunks * sequences : sequences),
      positions(ring != nullptr ? ring->place().chunk_length() : length) {}

PassRows::PassRows(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                   const KeyValueRing* ring)
    : sequences_(tokens.extent(0), tokens.extent(1)), tokens_(tokens), targets_(targets) {
  require_shape(targets, tokens.shape(), "targets");
  if (ring == nullptr) return;
  const RingPlace& place = ring->place();
  require_shape(tokens, {tokens.extent(0), place.positions}, "tokens of a ring");
  chunks_[0] = chunks_of(tokens, place);
  chunks_[1] = chunks_of(targets, place);
  tokens_ = chunks_[0];
  targets_ = chunks_[1];
  std::vector<std::int64_t> first_positions;
  for (std::int64_t chunk = 0; chunk < RingPlace::chunks; ++chunk) {
    first_positions.insert(first_positions.end(), static_cast<std::size_t>(tokens.extent(0)),
                           place.start(place.member, chunk));
  }
  sequences_ = Sequences::from_positions(first_positions, place.chunk_length());
}

}  // namespace heed
