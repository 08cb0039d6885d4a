#include "comm/transport_group.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/threads.h"

namespace heed {
namespace {

// Bytes that are moved at once: requests count in int, and what is received needs memory.
constexpr std::size_t most_bytes = std::size_t{1} << 26;

class TransportGroup final : public Group {
 public:
  explicit TransportGroup(const HeedTransport& transport) : transport_(transport) {
    require(transport.start(&rank_, &size_, &neighbours_) == 0, ErrorCode::input_output,
            "this process could not join the others: {}", transport.error());
  }
  TransportGroup(const TransportGroup&) = delete;
  TransportGroup& operator=(const TransportGroup&) = delete;
  ~TransportGroup() override { transport_.finish(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int neighbours() const override { return neighbours_; }

  void all_gather(std::span<std::byte> bytes, PartStarts starts) override {
    check_parts(bytes.size(), starts);
    in_pieces(starts, 1, [&](const Pieces& pieces) {
      wait(transport_.begin_gather(bytes.data(), pieces.sizes.data(), pieces.offsets.data()));
    });
  }

  void reduce_scatter(std::span<float> values, PartStarts starts) override {
    check_parts(values.size(), starts);
    in_pieces(starts, sizeof(float), [&](const Pieces& pieces) { add_up(values, pieces); });
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    for (std::size_t at = 0; at < bytes.size(); at += most_bytes) {
      const std::size_t count = std::min(most_bytes, bytes.size() - at);
      wait(transport_.begin_broadcast(bytes.data() + at, static_cast<int>(count), root));
    }
  }

  [[noreturn]] void abort(int status) override {
    transport_.abort(status);
    std::_Exit(status);
  }

 private:
  // A piece of every member's part, in bytes from the beginning of the whole.
  struct Pieces {
    std::vector<int> sizes;
    std::vector<int> offsets;
  };

  void check_parts(std::size_t size, PartStarts starts) const {
    check(starts.size() == static_cast<std::size_t>(size_) + 1 && starts.front() == 0 &&
              starts.back() == size && std::ranges::is_sorted(starts),
          "parts of a group are a part for each member, and make up the whole");
  }

  // Calls body for pieces of the parts, of most_bytes in all, until they are done. Offsets of more
  // than an int holds are refused: whoever moves so much does it in buckets.
  template <class Body>
  void in_pieces(PartStarts starts, std::size_t element, Body&& body) {
    const auto members = static_cast<std::size_t>(size_);
    check(starts.back() * element <= std::size_t{1} << 30, "a group moves at most a GiB at once");
    const std::size_t step = std::max<std::size_t>(most_bytes / element / members / 64 * 64, 64);
    std::size_t longest = 0;
    for (std::size_t r = 0; r < members; ++r) {
      longest = std::max(longest, starts[r + 1] - starts[r]);
    }
    for (std::size_t at = 0; at < longest; at += step) {
      Pieces pieces;
      for (std::size_t r = 0; r < members; ++r) {
        const std::size_t begin = std::min(starts[r] + at, starts[r + 1]);
        const std::size_t end = std::min(begin + step, starts[r + 1]);
        pieces.sizes.push_back(static_cast<int>((end - begin) * element));
        pieces.offsets.push_back(static_cast<int>(begin * element));
      }
      body(pieces);
    }
  }

  // This member's piece of `values` becomes its sum over all members.
  void add_up(std::span<float> values, const Pieces& pieces) {
    const auto members = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
    const auto size = static_cast<std::size_t>(pieces.sizes[own]) / sizeof(float);
    received_.resize(members * size);
    const std::vector<int> sizes(members, pieces.sizes[own]);
    std::vector<int> offsets;
    for (std::size_t r = 0; r < members; ++r) {
      offsets.push_back(static_cast<int>(r) * pieces.sizes[own]);
    }
    wait(transport_.begin_exchange(values.data(), pieces.sizes.data(), pieces.offsets.data(),
                                   received_.data(), sizes.data(), offsets.data()));
    float* const to = values.data() + static_cast<std::size_t>(pieces.offsets[own]) / sizeof(float);
    const float* const from = received_.data();
    parallel_ranges(static_cast<std::int64_t>(size), 1 << 14,
                    [&](std::int64_t begin, std::int64_t end) {
                      std::copy(from + begin, from + end, to + begin);
                      for (std::size_t r = 1; r < members; ++r) {
                        const float* const term = from + r * size;
                        for (std::int64_t i = begin; i < end; ++i) to[i] += term[i];
                      }
                    });
  }

  // Others may run on this core meanwhile.
  void wait(void* request) {
    int state = request == nullptr ? -1 : 0;
    while (state == 0) {
      state = transport_.test(request);
      if (state == 0) sched_yield();
    }
    require(state > 0, ErrorCode::input_output, "process {} could not reach the others: {}", rank_,
            transport_.error());
  }

  const HeedTransport& transport_;
  int rank_ = 0;
  int size_ = 1;
  int neighbours_ = 1;
  std::vector<float> received_;
};

}  // namespace

std::unique_ptr<Group> transport_group(const HeedTransport& transport) {
  return std::make_unique<TransportGroup>(transport);
}

}  // namespace heed
