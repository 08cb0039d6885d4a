#include "comm/transport_group.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/error.h"
#include "comm/exchange_queue.h"

namespace heed {
namespace {

// Bytes that are broadcast at once: requests count in int.
constexpr std::size_t most_broadcast = std::size_t{1} << 26;

// Lanes of the transport.
enum Lane : int { control, sums, copies };

using Clock = std::chrono::steady_clock;

class TransportGroup final : public Group {
 public:
  explicit TransportGroup(const HeedTransport& transport) : transport_(transport) {
    require(transport.start(&rank_, &size_, &neighbours_) == 0, ErrorCode::input_output,
            "this process could not join the others: {}", transport.error());
    queues_.emplace_back(transport_, sums, rank_, size_);
    queues_.emplace_back(transport_, copies, rank_, size_);
    control_.emplace(transport_, control, rank_, size_);
  }
  TransportGroup(const TransportGroup&) = delete;
  TransportGroup& operator=(const TransportGroup&) = delete;
  ~TransportGroup() override { transport_.finish(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int neighbours() const override { return neighbours_; }
  double seconds() const override { return seconds_; }

  void all_gather(std::span<std::byte> bytes, PartStarts starts) override {
    const Stopwatch watch(*this);
    wait_for(*control_->gather(bytes, starts));
  }

  void reduce_scatter(std::span<float> values, PartStarts starts) override {
    const Stopwatch watch(*this);
    wait_for(*control_->add_up(values, starts, Wire::f32));
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const Stopwatch watch(*this);
    for (std::size_t at = 0; at < bytes.size(); at += most_broadcast) {
      const std::size_t count = std::min(most_broadcast, bytes.size() - at);
      wait_for(
          transport_.begin_broadcast(control, bytes.data() + at, static_cast<int>(count), root));
    }
  }

  std::shared_ptr<const Exchange> begin_all_gather(std::span<std::byte> bytes,
                                                   PartStarts starts) override {
    const Stopwatch watch(*this);
    return queues_[1].gather(bytes, starts);
  }

  std::shared_ptr<const Exchange> begin_reduce_scatter(std::span<float> values, PartStarts starts,
                                                       Wire wire) override {
    const Stopwatch watch(*this);
    return queues_[0].add_up(values, starts, wire);
  }

  void progress() override {
    const Stopwatch watch(*this);
    move_on();
  }

  void wait(const Exchange& exchange) override {
    const Stopwatch watch(*this);
    wait_for(exchange);
  }

  [[noreturn]] void abort(int status) override {
    transport_.abort(status);
    std::_Exit(status);
  }

 private:
  // Adds the time that it lives to the group's.
  class Stopwatch {
   public:
    explicit Stopwatch(TransportGroup& group) : group_(group), start_(Clock::now()) {}
    ~Stopwatch() {
      group_.seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    TransportGroup& group_;
    Clock::time_point start_;
  };

  void move_on() {
    control_->progress();
    for (ExchangeQueue& queue : queues_) queue.progress();
  }

  // Others may run on this core meanwhile.
  void wait_for(const Exchange& exchange) {
    while (!exchange.is_done()) {
      move_on();
      if (!exchange.is_done()) sched_yield();
    }
  }

  void wait_for(void* request) {
    int state = request == nullptr ? -1 : 0;
    while (state == 0) {
      state = transport_.test(request);
      if (state == 0) {
        move_on();
        sched_yield();
      }
    }
    require(state > 0, ErrorCode::input_output, "process {} could not reach the others: {}", rank_,
            transport_.error());
  }

  const HeedTransport& transport_;
  int rank_ = 0;
  int size_ = 1;
  int neighbours_ = 1;
  double seconds_ = 0;
  std::optional<ExchangeQueue> control_;  // of calls that wait
  std::vector<ExchangeQueue> queues_;     // of sums, of copies
};

}  // namespace

std::unique_ptr<Group> transport_group(const HeedTransport& transport) {
  return std::make_unique<TransportGroup>(transport);
}

}  // namespace heed
