// Exchanges of one lane of a transport, in pieces: a few are under way at a time, in the order in
// which they were asked for, so that the memory for what arrives is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/bf16.h"
#include "comm/group.h"
#include "comm/transport.h"

namespace heed {

class ExchangeQueue {
 public:
  ExchangeQueue(const HeedTransport& transport, int lane, int rank, int size)
      : transport_(transport), lane_(lane), rank_(rank), size_(size) {}

  std::shared_ptr<const Exchange> gather(std::span<std::byte> bytes, PartStarts starts);
  std::shared_ptr<const Exchange> add_up(std::span<float> values, PartStarts starts, Wire wire);

  // Finishes what has arrived, and begins what there is room for. Throws Error{input_output} where
  // the transport failed.
  void progress();
  bool is_idle() const { return under_way_.empty(); }

 private:
  class Pending;
  // A piece of every member's part, in elements from the beginning of the whole.
  struct Piece {
    std::shared_ptr<Pending> of;
    std::vector<std::size_t> begins;
    std::vector<std::size_t> sizes;
    void* request = nullptr;
    std::vector<std::byte> sent;      // where terms are rounded
    std::vector<std::byte> received;  // the others' terms
  };

  std::shared_ptr<const Exchange> queue(const std::shared_ptr<Pending>& exchange,
                                        PartStarts starts);
  void begin(Piece& piece);
  void* begin_gather(Piece& piece);
  void* begin_sum(Piece& piece);
  void finish(Piece& piece);
  // `sums` become those over all members, in the order of their ranks.
  template <class Term>
  void add_received(const std::byte* received, std::span<float> sums) const;
  std::vector<std::byte> buffer(std::size_t bytes);
  void keep(std::vector<std::byte>&& buffer);

  const HeedTransport& transport_;
  int lane_;
  int rank_;
  int size_;
  std::deque<Piece> waiting_;
  std::vector<Piece> under_way_;
  std::vector<std::vector<std::byte>> spare_;
};

// Terms of sums in half of their bytes.
inline float widened(std::uint16_t bf16) { return bf16_to_f32(bf16); }
inline float widened(float value) { return value; }

// sums[i] = terms[0][i] + terms[1][i] + … in this order, where sums holds the terms of one of the
// members, whose own pointer is null.
template <class Term>
void add_terms(const Term* const* terms, std::size_t members, std::size_t count, float* sums) {
  constexpr std::size_t most = 1024;
  float total[most];
  const auto begin_with = [&](const auto* from, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) total[i] = widened(from[i]);
  };
  const auto add = [&](const auto* from, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) total[i] += widened(from[i]);
  };
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t size = count - begin < most ? count - begin : most;
    for (std::size_t r = 0; r < members; ++r) {
      const auto of_member = [&](const auto& take) {
        if (terms[r] != nullptr) return take(terms[r] + begin, size);
        take(sums + begin, size);
      };
      if (r == 0) {
        of_member(begin_with);
      } else {
        of_member(add);
      }
    }
    for (std::size_t i = 0; i < size; ++i) sums[begin + i] = total[i];
  }
}

}  // namespace heed
