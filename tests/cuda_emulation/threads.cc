// Threads of a block as fibers. A worker is a fiber that runs threads one after another as plain
// calls; one in which a thread waits is left to that thread, and another worker goes on. So a block
// whose threads never wait needs one worker, and one with a barrier as many as it has threads.
//
// CUDA promises no order of threads and blocks. HEED_EMULATED_ORDER=reverse runs the last ones
// first, and =shuffle threads in a random order: what then has other results lacks a barrier.
#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "internal.h"
#include "sanitizers.h"

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace heed::emulation {
namespace {

using boost::context::fiber;
using boost::context::stack_context;

#if defined(HEED_ADDRESS_SANITIZER)
constexpr std::size_t stack_bytes = 512 << 10;
#else
constexpr std::size_t stack_bytes = 64 << 10;
#endif

// Keeps the stacks of finished fibers. Used under the lock of MemoryAccess.
class StackPool {
 public:
  ~StackPool() {
    for (stack_context& stack : stacks_) source_.deallocate(stack);
  }
  stack_context allocate() {
    if (stacks_.empty()) return source_.allocate();
    const stack_context stack = stacks_.back();
    stacks_.pop_back();
    return stack;
  }
  void deallocate(stack_context& stack) { stacks_.push_back(stack); }

 private:
  boost::context::protected_fixedsize_stack source_{stack_bytes};
  std::vector<stack_context> stacks_;
};

StackPool& stack_pool() {
  static StackPool pool;
  return pool;
}

struct PooledStack {
  // NOLINTNEXTLINE(readability-convert-member-functions-to-static): Boost's concept
  void deallocate(stack_context& stack) { stack_pool().deallocate(stack); }
};

enum class Order { natural, reverse, shuffle };
Order order_of_environment() {
  const char* text = std::getenv("HEED_EMULATED_ORDER");
  if (text == nullptr) return Order::natural;
  return std::string_view(text) == "reverse" ? Order::reverse : Order::shuffle;
}

// The numbers of a block's threads in the order in which they begin.
std::vector<unsigned> order_of_threads(unsigned count, Order order) {
  std::vector<unsigned> threads(count);
  std::iota(threads.begin(), threads.end(), 0U);
  if (order == Order::reverse) std::reverse(threads.begin(), threads.end());
  if (order == Order::shuffle) std::shuffle(threads.begin(), threads.end(), std::mt19937(count));
  return threads;
}

struct Worker {
  fiber context;
  SanitizedFiber sanitized;
  const void* stack_bottom = nullptr;
  std::size_t stack_size = 0;
  unsigned thread = 0;  // the one it runs
};

// An operation of a warp that waits for lanes.
struct Pending {
  unsigned mask;
  WarpOperation operation;
  unsigned arrived;
  WarpOperands operands;
};

struct Warp {
  unsigned exited = 0;
  std::vector<Pending> pending;
};

struct Barrier {
  std::vector<unsigned> waiting;
  int predicates = 0;       // the number that are not zero, of the threads that arrived
  int last_predicates = 0;  // of the barrier that ended last
};

class Grid {
 public:
  Grid(const dim3& block, std::size_t shared_bytes, Order order,
       const std::function<void()>& thread)
      : thread_(thread),
        threads_(block.x * block.y * block.z),
        order_(order_of_threads(threads_, order)),
        workers_of_(threads_),
        warps_((threads_ + 31) / 32),
        shared_bytes_(shared_bytes),
        shared_(static_cast<std::byte*>(
            ::operator new (shared_bytes + 1, std::align_val_t{shared_alignment}))) {}

  ~Grid() {
    stopping_ = true;
    for (const auto& worker : workers_) resume(*worker);
    ::operator delete (shared_, std::align_val_t{shared_alignment});
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  void run_block() {
    next_ = finished_ = 0;
    for (Warp& warp : warps_) warp.exited = 0;
    std::memset(shared_, 0xff, shared_bytes_);
    while (finished_ < threads_) {
      if (first_ready_ < ready_.size()) {
        const unsigned thread = ready_[first_ready_++];
        if (first_ready_ == ready_.size()) {
          ready_.clear();
          first_ready_ = 0;
        }
        enter(thread);
        resume(*workers_of_[thread]);
      } else if (next_ < threads_) {
        resume(idle_worker());
      } else {
        report_deadlock();
      }
    }
  }

  unsigned current() const { return current_; }
  void* shared() const { return shared_; }

  // In a fiber: a barrier of the block.
  int synchronise(int predicate) {
    barrier_.predicates += predicate != 0;
    barrier_.waiting.push_back(current_);
    if (!end_barrier(1)) wait();  // the last one to arrive goes on
    return barrier_.last_predicates;
  }

  // In a fiber: see warp_operation.
  void operate(unsigned mask, WarpOperation operation, void* operand) {
    const unsigned lane = current_ % 32;
    if ((mask >> lane & 1U) == 0) undefined_behaviour("a warp operation's mask lacks its caller");
    Warp& warp = warps_[current_ / 32];
    Pending* pending = nullptr;
    for (Pending& candidate : warp.pending) {
      if (candidate.mask == mask && candidate.operation == operation) pending = &candidate;
    }
    if (pending == nullptr) {
      pending = &warp.pending.emplace_back(Pending{mask, operation, 0, {}});
    }
    pending->arrived |= 1U << lane;
    pending->operands[lane] = operand;
    if (!end_operation(warp, *pending, current_)) wait();
  }

 private:
  static constexpr std::size_t shared_alignment = 1024;

  void enter(unsigned thread) {
    current_ = thread;
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / (blockDim.x * blockDim.y);
  }

  Worker& idle_worker() {
    if (idle_.empty()) {
      Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
      const stack_context stack = stack_pool().allocate();
      worker.stack_size = stack.size;
      worker.stack_bottom = static_cast<const std::byte*>(stack.sp) - stack.size;
      worker.context =
          fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                PooledStack{},
                [this, &worker](fiber&& scheduler) { return work(worker, std::move(scheduler)); });
      return worker;
    }
    Worker* worker = idle_.back();
    idle_.pop_back();
    return *worker;
  }

  // The body of a worker.
  fiber work(Worker& worker, fiber&& scheduler) {
    StackSwitch::arrive(nullptr, &scheduler_bottom_, &scheduler_size_);
    scheduler_ = std::move(scheduler);
    while (!stopping_) {
      while (next_ < threads_) {
        worker.thread = order_[next_++];
        workers_of_[worker.thread] = &worker;
        enter(worker.thread);
        thread_();
        exit();
        // Threads that became ready run before new ones begin.
        if (first_ready_ < ready_.size()) break;
      }
      idle_.push_back(&worker);
      yield();
    }
    StackSwitch::leave(nullptr, scheduler_bottom_, scheduler_size_);
    SanitizedFiber::leave(sanitized_scheduler_);
    return std::move(scheduler_);
  }

  // From the scheduler to a worker, until it comes back.
  void resume(Worker& worker) {
    void* fake = nullptr;
    StackSwitch::leave(&fake, worker.stack_bottom, worker.stack_size);
    worker.sanitized.enter();
    worker.context = std::move(worker.context).resume();
    StackSwitch::arrive(fake, nullptr, nullptr);
  }

  // From a worker to the scheduler, until that resumes it.
  void yield() {
    void* fake = nullptr;
    StackSwitch::leave(&fake, scheduler_bottom_, scheduler_size_);
    SanitizedFiber::leave(sanitized_scheduler_);
    scheduler_ = std::move(scheduler_).resume();
    StackSwitch::arrive(fake, &scheduler_bottom_, &scheduler_size_);
  }

  void wait() { yield(); }

  // The current thread has exited: those that waited for it need not any more.
  void exit() {
    ++finished_;
    Warp& warp = warps_[current_ / 32];
    warp.exited |= 1U << current_ % 32;
    // Backwards: an operation that ends gives its place to the last one.
    for (std::size_t i = warp.pending.size(); i-- > 0;) {
      end_operation(warp, warp.pending[i], threads_);
    }
    if (!barrier_.waiting.empty()) end_barrier(0);
  }

  // Ends the barrier if all threads are there; the last `present` of those that wait, none or the
  // current one, go on by themselves.
  bool end_barrier(unsigned present) {
    if (barrier_.waiting.size() + finished_ < threads_) return false;
    ready_.insert(ready_.end(), barrier_.waiting.begin(), barrier_.waiting.end() - present);
    barrier_.waiting.clear();
    barrier_.last_predicates = barrier_.predicates;
    barrier_.predicates = 0;
    return true;
  }

  // Ends the operation if all its lanes are there; `runs` is the thread that goes on by itself.
  bool end_operation(Warp& warp, Pending& pending, unsigned runs) {
    if ((pending.mask & ~pending.arrived & ~warp.exited & present_lanes(warp)) != 0) return false;
    pending.operation(pending.operands);
    const unsigned first = static_cast<unsigned>(&warp - warps_.data()) * 32;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((pending.arrived >> lane & 1U) != 0 && first + lane != runs) {
        ready_.push_back(first + lane);
      }
    }
    pending = warp.pending.back();
    warp.pending.pop_back();
    return true;
  }

  // The last warp of a block may have fewer than 32 threads.
  unsigned present_lanes(const Warp& warp) const {
    const unsigned in_last = threads_ % 32;
    return &warp == &warps_.back() && in_last != 0 ? (1U << in_last) - 1 : 0xffffffffU;
  }

  [[noreturn]] void report_deadlock() const {
    std::fprintf(stderr,
                 "CUDA emulation: block (%u, %u, %u) waits forever: %u of %u threads have "
                 "exited, %zu wait at __syncthreads",
                 blockIdx.x, blockIdx.y, blockIdx.z, finished_, threads_, barrier_.waiting.size());
    for (std::size_t i = 0; i < warps_.size(); ++i) {
      for (const Pending& pending : warps_[i].pending) {
        std::fprintf(stderr, ", lanes %#x of warp %zu wait for %#x", pending.arrived, i,
                     pending.mask & ~pending.arrived & ~warps_[i].exited);
      }
    }
    std::fprintf(stderr, "\n");
    std::abort();
  }

  const std::function<void()>& thread_;
  unsigned threads_;
  std::vector<unsigned> order_;
  unsigned next_ = 0;      // of order_: the first thread that has not begun
  unsigned finished_ = 0;  // threads that have exited
  unsigned current_ = 0;
  bool stopping_ = false;
  std::vector<Worker*> workers_of_;  // of each thread that has begun
  std::vector<Warp> warps_;
  Barrier barrier_;
  std::vector<unsigned> ready_;  // threads that need not wait any more, from first_ready_ on
  std::size_t first_ready_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
  fiber scheduler_;
  void* sanitized_scheduler_ = SanitizedFiber::current();
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_size_ = 0;
  std::size_t shared_bytes_;
  std::byte* shared_;
};

thread_local Grid* running = nullptr;

Grid& running_grid() {
  if (running == nullptr) undefined_behaviour("a function of device code is called by the host");
  return *running;
}

void shuffle_lanes(const WarpOperands& operands) {
  for (void* operand : operands) {
    if (operand == nullptr) continue;
    auto& own = *static_cast<Shuffle*>(operand);
    const auto* source = static_cast<const Shuffle*>(operands[own.source]);
    own.result = source == nullptr ? ~std::uint64_t{0} : source->value;
  }
}

struct Ballot {
  bool predicate;
  unsigned result;
};

void ballot_lanes(const WarpOperands& operands) {
  unsigned result = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto* ballot = static_cast<const Ballot*>(operands[lane]);
    if (ballot != nullptr && ballot->predicate) result |= 1U << lane;
  }
  for (void* operand : operands) {
    if (operand != nullptr) static_cast<Ballot*>(operand)->result = result;
  }
}

void only_wait(const WarpOperands&) {}

}  // namespace

void run_grid(const dim3& grid_size, const dim3& block_size, std::size_t dynamic_shared_bytes,
              const std::function<void()>& thread) {
  blockDim = block_size;
  gridDim = grid_size;
  const Order order = order_of_environment();
  Grid grid(block_size, dynamic_shared_bytes, order, thread);
  running = &grid;
  const std::uint64_t blocks = std::uint64_t{grid_size.x} * grid_size.y * grid_size.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = order == Order::natural ? i : blocks - 1 - i;
    blockIdx.x = static_cast<unsigned>(block % grid_size.x);
    blockIdx.y = static_cast<unsigned>(block / grid_size.x % grid_size.y);
    blockIdx.z = static_cast<unsigned>(block / grid_size.x / grid_size.y);
    grid.run_block();
  }
  running = nullptr;
}

void* dynamic_shared() { return running_grid().shared(); }

unsigned thread_in_block() { return running_grid().current(); }

void warp_operation(unsigned mask, WarpOperation operation, void* operand) {
  running_grid().operate(mask, operation, operand);
}

void shuffle(unsigned mask, Shuffle& shuffle) { warp_operation(mask, shuffle_lanes, &shuffle); }

unsigned ballot(unsigned mask, bool predicate) {
  Ballot ballot{predicate, 0};
  warp_operation(mask, ballot_lanes, &ballot);
  return ballot.result;
}

void sync_warp(unsigned mask) {
  char operand = 0;
  warp_operation(mask, only_wait, &operand);
}

void undefined_behaviour(const char* what) {
  std::fprintf(stderr, "CUDA emulation: %s; block (%u, %u, %u), thread (%u, %u, %u)\n", what,
               blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

}  // namespace heed::emulation

void __syncthreads() { heed::emulation::running_grid().synchronise(0); }
int __syncthreads_count(int predicate) {
  return heed::emulation::running_grid().synchronise(predicate);
}
int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }
