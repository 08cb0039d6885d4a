#include "comm/exchange_queue.h"

#include <algorithm>

#include "base/error.h"
#include "base/threads.h"

namespace heed {
namespace {

// Of a piece, in all members: small enough that several are under way in little memory, large
// enough that each takes much longer than it takes to begin.
constexpr std::size_t piece_bytes = std::size_t{1} << 22;
constexpr std::size_t max_under_way = 8;
// Offsets are ints.
constexpr std::size_t max_bytes = std::size_t{1} << 30;

void to_bf16(std::span<const float> from, std::uint16_t* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = f32_to_bf16(from[i]);
}

int as_int(std::size_t bytes) { return static_cast<int>(bytes); }

}  // namespace

class ExchangeQueue::Pending final : public Exchange {
 public:
  explicit Pending(std::span<std::byte> copied) : bytes(copied) {}
  Pending(std::span<float> summed, Wire terms)
      : bytes(std::as_writable_bytes(summed)), is_sum(true), wire(terms) {}

  bool is_done() const override { return pieces == 0; }
  std::size_t element_bytes() const { return is_sum ? sizeof(float) : 1; }
  std::size_t wire_bytes() const { return !is_sum ? 1 : wire == Wire::bf16 ? 2 : sizeof(float); }
  std::span<float> values() const {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  const std::span<std::byte> bytes;
  const bool is_sum = false;
  const Wire wire = Wire::f32;
  std::size_t pieces = 0;  // that are left
};

std::shared_ptr<const Exchange> ExchangeQueue::gather(std::span<std::byte> bytes,
                                                      PartStarts starts) {
  return queue(std::make_shared<Pending>(bytes), starts);
}

std::shared_ptr<const Exchange> ExchangeQueue::add_up(std::span<float> values, PartStarts starts,
                                                      Wire wire) {
  return queue(std::make_shared<Pending>(values, wire), starts);
}

std::shared_ptr<const Exchange> ExchangeQueue::queue(const std::shared_ptr<Pending>& exchange,
                                                     PartStarts starts) {
  const auto members = static_cast<std::size_t>(size_);
  const std::size_t element = exchange->element_bytes();
  check(starts.size() == members + 1 && starts.front() == 0 &&
            starts.back() * element == exchange->bytes.size() && std::ranges::is_sorted(starts),
        "parts of a group are a part for each member, and make up the whole");
  check(exchange->bytes.size() <= max_bytes, "a group moves at most a GiB at once");
  std::size_t longest = 0;
  for (std::size_t r = 0; r < members; ++r) longest = std::max(longest, starts[r + 1] - starts[r]);
  const std::size_t step =
      std::max<std::size_t>(piece_bytes / exchange->wire_bytes() / members / 64 * 64, 64);
  for (std::size_t at = 0; at < longest; at += step) {
    Piece piece{.of = exchange};
    for (std::size_t r = 0; r < members; ++r) {
      const std::size_t begin = std::min(starts[r] + at, starts[r + 1]);
      piece.begins.push_back(begin);
      piece.sizes.push_back(std::min(begin + step, starts[r + 1]) - begin);
    }
    waiting_.push_back(std::move(piece));
    ++exchange->pieces;
  }
  progress();
  return exchange;
}

void ExchangeQueue::progress() {
  for (std::size_t i = 0; i < under_way_.size();) {
    const int state = transport_.test(under_way_[i].request);
    require(state >= 0, ErrorCode::input_output, "process {} could not reach the others: {}", rank_,
            transport_.error());
    if (state == 0) {
      ++i;
      continue;
    }
    finish(under_way_[i]);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (!waiting_.empty() && under_way_.size() < max_under_way) {
    under_way_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    begin(under_way_.back());
  }
}

void ExchangeQueue::begin(Piece& piece) {
  piece.request = piece.of->is_sum ? begin_sum(piece) : begin_gather(piece);
  require(piece.request != nullptr, ErrorCode::input_output,
          "process {} could not reach the others: {}", rank_, transport_.error());
}

void* ExchangeQueue::begin_gather(Piece& piece) {
  std::vector<int> sizes, offsets;
  for (std::size_t r = 0; r < piece.sizes.size(); ++r) {
    sizes.push_back(as_int(piece.sizes[r]));
    offsets.push_back(as_int(piece.begins[r]));
  }
  return transport_.begin_gather(lane_, piece.of->bytes.data(), sizes.data(), offsets.data());
}

// Every member gets the others' terms of its own piece.
void* ExchangeQueue::begin_sum(Piece& piece) {
  const auto own = static_cast<std::size_t>(rank_);
  const std::size_t term = piece.of->wire_bytes();
  const bool rounds = piece.of->wire == Wire::bf16;
  std::vector<int> sent_sizes, sent_offsets, received_sizes, received_offsets;
  std::size_t sent = 0, received = 0;
  for (std::size_t r = 0; r < piece.sizes.size(); ++r) {
    const std::size_t to = r == own ? 0 : piece.sizes[r] * term;
    const std::size_t from = r == own ? 0 : piece.sizes[own] * term;
    sent_sizes.push_back(as_int(to));
    sent_offsets.push_back(as_int(rounds ? sent : piece.begins[r] * sizeof(float)));
    received_sizes.push_back(as_int(from));
    received_offsets.push_back(as_int(received));
    sent += to;
    received += from;
  }
  piece.received = buffer(received);
  const void* source = piece.of->bytes.data();
  if (rounds) {
    piece.sent = buffer(sent);
    for (std::size_t r = 0; r < piece.sizes.size(); ++r) {
      if (r == own) continue;
      to_bf16(piece.of->values().subspan(piece.begins[r], piece.sizes[r]),
              reinterpret_cast<std::uint16_t*>(piece.sent.data() + sent_offsets[r]));
    }
    source = piece.sent.data();
  }
  return transport_.begin_exchange(lane_, source, sent_sizes.data(), sent_offsets.data(),
                                   piece.received.data(), received_sizes.data(),
                                   received_offsets.data());
}

template <class Term>
void ExchangeQueue::add_received(const std::byte* received, std::span<float> sums) const {
  const auto members = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  std::vector<const Term*> terms(members, nullptr);
  for (std::size_t r = 0, at = 0; r < members; ++r) {
    if (r != own) terms[r] = reinterpret_cast<const Term*>(received) + sums.size() * at++;
  }
  parallel_ranges(
      static_cast<std::int64_t>(sums.size()), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
        std::vector<const Term*> from = terms;
        for (const Term*& each : from) each = each != nullptr ? each + begin : nullptr;
        add_terms(from.data(), members, static_cast<std::size_t>(end - begin), sums.data() + begin);
      });
}

void ExchangeQueue::finish(Piece& piece) {
  Pending& exchange = *piece.of;
  if (exchange.is_sum) {
    const auto own = static_cast<std::size_t>(rank_);
    const std::span<float> sums = exchange.values().subspan(piece.begins[own], piece.sizes[own]);
    if (exchange.wire == Wire::bf16) {
      add_received<std::uint16_t>(piece.received.data(), sums);
    } else {
      add_received<float>(piece.received.data(), sums);
    }
    keep(std::move(piece.sent));
    keep(std::move(piece.received));
  }
  --exchange.pieces;
}

std::vector<std::byte> ExchangeQueue::buffer(std::size_t bytes) {
  std::vector<std::byte> found;
  if (!spare_.empty()) {
    found = std::move(spare_.back());
    spare_.pop_back();
  }
  found.resize(bytes);
  return found;
}

void ExchangeQueue::keep(std::vector<std::byte>&& buffer) {
  if (buffer.capacity() > 0) spare_.push_back(std::move(buffer));
}

}  // namespace heed
