// A group of threads of this process, for tests of what is built on groups.
#pragma once

#include <barrier>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/bf16.h"
#include "comm/exchange_queue.h"
#include "comm/group.h"

namespace heed::testing {

// What members sent to each other and is not received yet.
class LocalPost {
 public:
  void send(int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    letters_[{from, to}].emplace_back(bytes.begin(), bytes.end());
    arrived_.notify_all();
  }
  // False: nothing is there yet. Throws where what is there has another length.
  bool receive(int from, int to, std::span<std::byte> bytes, bool waits) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<std::byte>>& letters = letters_[{from, to}];
    if (waits) arrived_.wait(lock, [&] { return !letters.empty(); });
    if (letters.empty()) return false;
    if (letters.front().size() != bytes.size()) throw std::logic_error("lengths differ");
    std::ranges::copy(letters.front(), bytes.begin());
    letters.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> letters_;  // by from, to
};

class LocalShift final : public Exchange {
 public:
  LocalShift(int rank, const Shift& shift)
      : rank_(rank), from_(shift.from), received_(shift.received) {}
  bool is_done() const override { return done_; }
  void receive(LocalPost& post, bool waits) {
    done_ = done_ || post.receive(from_, rank_, received_, waits);
  }

 private:
  int rank_;
  int from_;
  std::span<std::byte> received_;
  bool done_ = false;
};

struct LocalMeeting {
  explicit LocalMeeting(int size) : arrivals(size), places(static_cast<std::size_t>(size)) {}

  std::barrier<> arrivals;
  std::vector<std::byte*> places;  // of what each member brought
  LocalPost post;
};

class LocalGroup final : public Group {
 public:
  LocalGroup(LocalMeeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.places.size()); }
  int neighbours() const override { return size(); }

  void all_gather(std::span<std::byte> bytes, PartStarts starts) override {
    exchange(bytes.data(), [&] {
      for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
        if (static_cast<int>(r) == rank_) continue;
        std::memcpy(bytes.data() + starts[r], meeting_.places[r] + starts[r],
                    starts[r + 1] - starts[r]);
      }
    });
  }

  void reduce_scatter(std::span<float> values, PartStarts starts) override {
    add_up(values, starts, [](float term) { return term; });
  }

  // These are done as they begin.
  std::shared_ptr<const Exchange> begin_all_gather(std::span<std::byte> bytes,
                                                   PartStarts starts) override {
    all_gather(bytes, starts);
    return finished_exchange();
  }
  std::shared_ptr<const Exchange> begin_reduce_scatter(std::span<float> values, PartStarts starts,
                                                       Wire wire) override {
    add_up(values, starts,
           [wire](float term) { return wire == Wire::bf16 ? widened(f32_to_bf16(term)) : term; });
    return finished_exchange();
  }
  double seconds() const override { return 0; }

  void broadcast(std::span<std::byte> bytes, int root) override {
    exchange(bytes.data(), [&] {
      if (rank_ == root) return;
      std::memcpy(bytes.data(), meeting_.places[static_cast<std::size_t>(root)], bytes.size());
    });
  }

  std::shared_ptr<const Exchange> begin_shift(const Shift& shift) override {
    meeting_.post.send(rank_, shift.to, shift.sent);
    shifts_.push_back(std::make_shared<LocalShift>(rank_, shift));
    return shifts_.back();
  }
  void progress() override { receive(/*waits=*/false); }
  void wait(const Exchange& exchange) override {
    while (!exchange.is_done()) receive(/*waits=*/true);
  }

  [[noreturn]] void abort(int) override { throw std::logic_error("the group was ended"); }

 private:
  template <class Sent>
  void add_up(std::span<float> values, PartStarts starts, Sent&& sent) {
    const auto own = static_cast<std::size_t>(rank_);
    std::vector<float> sums(starts[own + 1] - starts[own]);
    exchange(std::as_writable_bytes(values).data(), [&] {
      for (std::size_t r = 0; r < meeting_.places.size(); ++r) {
        const float* const other = reinterpret_cast<const float*>(meeting_.places[r]);
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const float value = other[starts[own] + i];
          const float term = r == own ? value : sent(value);
          sums[i] = r == 0 ? term : sums[i] + term;
        }
      }
    });
    std::copy(sums.begin(), sums.end(), values.begin() + static_cast<std::ptrdiff_t>(starts[own]));
    meeting_.arrivals.arrive_and_wait();
  }

  // In the order in which they began.
  void receive(bool waits) {
    for (; !shifts_.empty(); shifts_.pop_front()) {
      shifts_.front()->receive(meeting_.post, waits);
      if (!shifts_.front()->is_done()) return;
    }
  }

  // `read` may look at what the others brought.
  template <class Read>
  void exchange(std::byte* brought, Read&& read) {
    meeting_.places[static_cast<std::size_t>(rank_)] = brought;
    meeting_.arrivals.arrive_and_wait();
    read();
    meeting_.arrivals.arrive_and_wait();
  }

  LocalMeeting& meeting_;
  int rank_;
  std::deque<std::shared_ptr<LocalShift>> shifts_;  // under way
};

// Calls work(group) as each of `size` members.
inline void as_members(int size, const std::function<void(Group&)>& work) {
  LocalMeeting meeting(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&meeting, &work, rank] {
      LocalGroup group(meeting, rank);
      work(group);
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace heed::testing
