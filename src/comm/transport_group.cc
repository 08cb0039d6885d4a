#include "comm/transport_group.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/exchange_queue.h"

namespace heed {
namespace {

// Moves the exchanges of a transport on while this process computes: a transport moves bytes only
// in calls of its functions, and the system's buffers between two processes hold too little for
// what arrives from one call to the next.

class Mover {
 public:
  // Borrows both. The caller of the transport's functions holds the lock.
  Mover(const HeedTransport& transport, std::mutex& lock);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  ~Mover();

  // Whether anything is under way. Called with the lock.
  void set_busy(bool is_busy);

 private:
  void run();

  const HeedTransport& transport_;
  std::mutex& lock_;
  std::condition_variable changed_;
  bool is_busy_ = false;  // guarded by the lock, as is the next
  bool is_ending_ = false;
  std::thread thread_;
};

// Often enough for links of 10 Gbit/s, of which buffers of 1.25 MB then suffice; seldom enough
// to take less than a hundredth of a core.
constexpr std::chrono::microseconds interval{1000};

Mover::Mover(const HeedTransport& transport, std::mutex& lock)
    : transport_(transport), lock_(lock), thread_([this] { run(); }) {}

Mover::~Mover() {
  {
    const std::scoped_lock hold(lock_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Mover::set_busy(bool is_busy) {
  if (is_busy == is_busy_) return;
  is_busy_ = is_busy;
  if (is_busy) changed_.notify_one();
}

void Mover::run() {
  std::unique_lock hold(lock_);
  while (!is_ending_) {
    if (!is_busy_) {
      changed_.wait(hold, [this] { return is_busy_ || is_ending_; });
      continue;
    }
    transport_.progress();
    hold.unlock();
    std::this_thread::sleep_for(interval);
    // Whoever holds it moves exchanges on.
    while (!hold.try_lock()) std::this_thread::sleep_for(interval);
  }
}

// Bytes that are broadcast at once: requests count in int.
constexpr std::size_t max_broadcast = std::size_t{1} << 26;
constexpr std::size_t max_sent = std::size_t{1} << 30;  // from one member to another

// Others may run on this core meanwhile: first for a turn each time; a wait that is long anyway
// leaves them the core for a while.
class Patience {
 public:
  void pause() {
    if (++turns_ < short_turns) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  static constexpr int short_turns = 1000;
  int turns_ = 0;
};

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
    mover_.emplace(transport_, transport_lock_);
  }
  TransportGroup(const TransportGroup&) = delete;
  TransportGroup& operator=(const TransportGroup&) = delete;
  ~TransportGroup() override {
    mover_.reset();
    transport_.finish();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int neighbours() const override { return neighbours_; }
  double seconds() const override { return seconds_; }

  void all_gather(std::span<std::byte> bytes, PartStarts starts) override {
    const Turn turn(*this);
    wait_for(*control_->gather(bytes, starts));
  }

  void reduce_scatter(std::span<float> values, PartStarts starts) override {
    const Turn turn(*this);
    wait_for(*control_->add_up(values, starts, Wire::f32));
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const Turn turn(*this);
    for (std::size_t at = 0; at < bytes.size(); at += max_broadcast) {
      const std::size_t count = std::min(max_broadcast, bytes.size() - at);
      wait_for(
          transport_.begin_broadcast(control, bytes.data() + at, static_cast<int>(count), root));
    }
  }

  std::shared_ptr<const Exchange> begin_all_gather(std::span<std::byte> bytes,
                                                   PartStarts starts) override {
    const Turn turn(*this);
    return queues_[1].gather(bytes, starts);
  }

  std::shared_ptr<const Exchange> begin_reduce_scatter(std::span<float> values, PartStarts starts,
                                                       Wire wire) override {
    const Turn turn(*this);
    return queues_[0].add_up(values, starts, wire);
  }

  std::shared_ptr<const Exchange> begin_shift(const Shift& shift) override {
    const Turn turn(*this);
    auto begun = std::make_shared<ShiftExchange>();
    const auto add = [&](void* request) {
      require_working(request != nullptr);
      begun->requests.push_back(request);
    };
    in_messages(shift.received, [&](std::span<std::byte> part) {
      add(transport_.begin_receive(part.data(), static_cast<int>(part.size()), shift.from));
    });
    in_messages(shift.sent, [&](std::span<const std::byte> part) {
      add(transport_.begin_send(part.data(), static_cast<int>(part.size()), shift.to));
    });
    shifts_.push_back(begun);
    return begun;
  }

  void progress() override {
    const Turn turn(*this);
    move_on();
  }

  void wait(const Exchange& exchange) override {
    const Turn turn(*this);
    wait_for(exchange);
  }

  [[noreturn]] void abort(int status) override {
    transport_.abort(status);
    std::_Exit(status);
  }

 private:
  // A call of one of the group's functions: it has the transport alone, and its time is added up.
  class Turn {
   public:
    explicit Turn(TransportGroup& group)
        : group_(group), start_(Clock::now()), lock_(group.transport_lock_) {}
    ~Turn() {
      group_.mover_->set_busy(!group_.is_idle());
      group_.seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    TransportGroup& group_;
    Clock::time_point start_;
    std::scoped_lock<std::mutex> lock_;
  };

  struct ShiftExchange final : Exchange {
    bool is_done() const override { return requests.empty(); }
    std::vector<void*> requests;
  };

  // Calls body(part) for the messages that `bytes` take; one where there are none.
  template <class Bytes, class Body>
  static void in_messages(Bytes bytes, Body&& body) {
    std::size_t at = 0;
    do {
      const std::size_t count = std::min(max_sent, bytes.size() - at);
      body(bytes.subspan(at, count));
      at += count;
    } while (at < bytes.size());
  }

  bool is_idle() const {
    return shifts_.empty() && control_->is_idle() &&
           std::ranges::all_of(queues_, [](const ExchangeQueue& queue) { return queue.is_idle(); });
  }

  void move_on() {
    control_->progress();
    for (ExchangeQueue& queue : queues_) queue.progress();
    for (const auto& shift : shifts_) {
      std::erase_if(shift->requests, [this](void* request) { return is_done(request); });
    }
    std::erase_if(shifts_, [](const auto& shift) { return shift->is_done(); });
  }

  void wait_for(const Exchange& exchange) {
    Patience patience;
    while (!exchange.is_done()) {
      move_on();
      if (!exchange.is_done()) patience.pause();
    }
  }

  void wait_for(void* request) {
    require_working(request != nullptr);
    Patience patience;
    while (!is_done(request)) {
      move_on();
      patience.pause();
    }
  }

  bool is_done(void* request) {
    const int state = transport_.test(request);
    require_working(state >= 0);
    return state > 0;
  }

  void require_working(bool works) const {
    require(works, ErrorCode::input_output, "process {} could not reach the others: {}", rank_,
            transport_.error());
  }

  const HeedTransport& transport_;
  int rank_ = 0;
  int size_ = 1;
  int neighbours_ = 1;
  double seconds_ = 0;
  std::optional<ExchangeQueue> control_;                // of calls that wait
  std::vector<ExchangeQueue> queues_;                   // of sums, of copies
  std::vector<std::shared_ptr<ShiftExchange>> shifts_;  // under way
  std::mutex transport_lock_;
  std::optional<Mover> mover_;
};

}  // namespace

std::unique_ptr<Group> transport_group(const HeedTransport& transport) {
  return std::make_unique<TransportGroup>(transport);
}

}  // namespace heed
