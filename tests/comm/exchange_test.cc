// Groups over a transport: of threads that share a board, where requests take a number of looks to
// be done, other ones for every member.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "base/bf16.h"
#include "comm/exchange_queue.h"
#include "comm/transport_group.h"

namespace heed {
namespace {

using Bytes = std::vector<std::byte>;

struct Board {
  std::mutex mutex;
  int size = 0;
  // What member `from` brought to a request, for each member: [lane, number][from][to].
  std::map<std::pair<int, int>, std::map<int, std::vector<Bytes>>> brought;
};

Board board;
std::atomic<int> moves{0};
thread_local int own_rank = 0;
thread_local int begun[HEED_TRANSPORT_LANES] = {};

struct Request {
  int lane;
  int number;
  int looks;
  std::byte* to;
  std::vector<int> sizes;
  std::vector<int> offsets;
};

Bytes part(const void* from, int offset, int size) {
  const auto* const begin = static_cast<const std::byte*>(from) + offset;
  return {begin, begin + size};
}

void* begin(int lane, std::vector<Bytes> parts, void* to, const int* sizes, const int* offsets) {
  const std::scoped_lock lock(board.mutex);
  const int number = begun[lane]++;
  board.brought[{lane, number}][own_rank] = std::move(parts);
  return new Request{lane,
                     number,
                     (own_rank * 7 + number * 5) % 11,
                     static_cast<std::byte*>(to),
                     {sizes, sizes + board.size},
                     {offsets, offsets + board.size}};
}

void* begin_exchange(int lane, const void* sent, const int* sent_sizes, const int* sent_offsets,
                     void* received, const int* sizes, const int* offsets) {
  std::vector<Bytes> parts;
  for (int r = 0; r < board.size; ++r) parts.push_back(part(sent, sent_offsets[r], sent_sizes[r]));
  return begin(lane, std::move(parts), received, sizes, offsets);
}

void* begin_gather(int lane, void* whole, const int* sizes, const int* offsets) {
  const Bytes own = part(whole, offsets[own_rank], sizes[own_rank]);
  return begin(lane, std::vector<Bytes>(static_cast<std::size_t>(board.size), own), whole, sizes,
               offsets);
}

void* begin_broadcast(int, void*, int, int) { return nullptr; }

int test(void* pending) {
  auto* const request = static_cast<Request*>(pending);
  const std::scoped_lock lock(board.mutex);
  const auto& brought = board.brought[{request->lane, request->number}];
  if (--request->looks > 0 || std::ssize(brought) < board.size) return 0;
  for (const auto& [from, parts] : brought) {
    const Bytes& bytes = parts[static_cast<std::size_t>(own_rank)];
    const auto at = static_cast<std::size_t>(from);
    EXPECT_EQ(std::ssize(bytes), request->sizes[at]);
    if (!bytes.empty()) std::memcpy(request->to + request->offsets[at], bytes.data(), bytes.size());
  }
  delete request;
  return 1;
}

const HeedTransport transport{.version = HEED_TRANSPORT_VERSION,
                              .start =
                                  [](int* rank, int* size, int* neighbours) {
                                    *rank = own_rank;
                                    *size = *neighbours = board.size;
                                    return 0;
                                  },
                              .begin_exchange = &begin_exchange,
                              .begin_gather = &begin_gather,
                              .begin_broadcast = &begin_broadcast,
                              .test = &test,
                              .progress = [] { ++moves; },
                              .error = [] { return "none"; },
                              .abort = [](int) {},
                              .finish = [] {}};

template <class Work>
void as_transported(int size, Work&& work) {
  board.size = size;
  board.brought.clear();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([rank, &work] {
      own_rank = rank;
      const auto group = transport_group(transport);
      work(*group);
    });
  }
  for (std::thread& each : threads) each.join();
}

std::vector<float> numbers(std::size_t size, int rank, int exchange) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = std::sin(static_cast<float>(i % 977) + 3.0F * static_cast<float>(rank + exchange));
  }
  return values;
}

// Of so many members; the first part is empty, and pieces end within parts.
std::vector<std::size_t> parts_of(std::size_t size, int members) {
  std::vector<std::size_t> starts{0, 0};
  for (int r = 1; r < members; ++r) {
    starts.push_back(size * static_cast<std::size_t>(r) / static_cast<std::size_t>(members - 1));
  }
  return starts;
}

float sum_of(std::size_t i, int members, int exchange, int own, Wire wire) {
  float sum = 0;
  for (int r = 0; r < members; ++r) {
    const float value =
        std::sin(static_cast<float>(i % 977) + 3.0F * static_cast<float>(r + exchange));
    const float term = wire == Wire::bf16 && r != own ? widened(f32_to_bf16(value)) : value;
    sum = r == 0 ? term : sum + term;
  }
  return sum;
}

// Sums and copies that are begun together are done in any order, and each is what it would be
// alone: sums to the bit, in the order of ranks.
TEST(Exchange, GoesOnBesideOthers) {
  constexpr std::size_t size = 2'500'000;  // several pieces
  for (const int members : {2, 3, 4}) {
    as_transported(members, [&](Group& group) {
      const auto starts = parts_of(size, members);
      std::vector<std::size_t> in_bytes(starts);
      for (std::size_t& each : in_bytes) each *= sizeof(float);
      std::vector<float> plain = numbers(size, group.rank(), 0);
      std::vector<float> copied = numbers(size, group.rank(), 1);
      std::vector<float> rounded = numbers(size, group.rank(), 2);
      const auto first = group.begin_reduce_scatter(plain, starts, Wire::f32);
      const auto second =
          group.begin_all_gather(std::as_writable_bytes(std::span(copied)), in_bytes);
      const auto third = group.begin_reduce_scatter(rounded, starts, Wire::bf16);
      EXPECT_EQ(sum(group, std::vector<double>{1.0, group.rank() * 1.0}),
                (std::vector<double>{members * 1.0, members * (members - 1) / 2.0}));
      group.wait(*third);
      EXPECT_TRUE(third->is_done());
      group.wait(*second);
      group.wait(*first);
      const auto own = static_cast<std::size_t>(group.rank());
      for (std::size_t i = starts[own]; i < starts[own + 1]; ++i) {
        ASSERT_EQ(plain[i], sum_of(i, members, 0, group.rank(), Wire::f32));
        ASSERT_EQ(rounded[i], sum_of(i, members, 2, group.rank(), Wire::bf16));
      }
      for (int r = 0; r < members; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const auto expected = numbers(size, r, 1);
        ASSERT_TRUE(std::equal(copied.begin() + static_cast<std::ptrdiff_t>(starts[at]),
                               copied.begin() + static_cast<std::ptrdiff_t>(starts[at + 1]),
                               expected.begin() + static_cast<std::ptrdiff_t>(starts[at])));
      }
      EXPECT_GT(group.seconds(), 0);
    });
  }
}

// While a process computes, and only while something is under way.
TEST(Exchange, IsMovedOnByItself) {
  as_transported(2, [](Group& group) {
    std::vector<std::byte> bytes(64);
    const int before = moves;
    const auto exchange = group.begin_all_gather(bytes, std::vector<std::size_t>{0, 32, 64});
    while (moves < before + 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    group.wait(*exchange);
    barrier(group);
  });
  board.size = 1;
  board.brought.clear();
  const auto group = transport_group(transport);
  std::vector<std::byte> bytes(64);
  group->wait(*group->begin_all_gather(bytes, std::vector<std::size_t>{0, 64}));
  const int before = moves;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(moves, before);
}

TEST(Exchange, AllReduceIsTheSameForAll) {
  as_transported(3, [&](Group& group) {
    std::vector<float> values = numbers(1001, group.rank(), 0);
    all_reduce(group, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], sum_of(i, 3, 0, 0, Wire::f32));
    }
  });
}

TEST(Exchange, Bf16TermsAreRoundedToEven) {
  EXPECT_EQ(widened(f32_to_bf16(1.0F)), 1.0F);
  EXPECT_EQ(widened(f32_to_bf16(1.0F + 0x1p-8F)), 1.0F);              // half: to even
  EXPECT_EQ(widened(f32_to_bf16(1.0F + 0x3p-8F)), 1.0F + 0x1p-6F);    // half: to even
  EXPECT_EQ(widened(f32_to_bf16(1.0F + 0x1.1p-8F)), 1.0F + 0x1p-7F);  // over half
  EXPECT_EQ(widened(f32_to_bf16(-HUGE_VALF)), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(widened(f32_to_bf16(std::nanf("")))));
}

}  // namespace
}  // namespace heed
