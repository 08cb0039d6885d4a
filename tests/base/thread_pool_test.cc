#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "support/process.h"

namespace heed {
namespace {

template <class Part>
void run(ThreadPool& pool, int parts, Part part) {
  pool.run(
      parts, pool.threads(), [](void* loop, int p) { (*static_cast<Part*>(loop))(p); }, &part);
}

template <class Condition>
bool becomes_true(std::chrono::milliseconds longest, Condition condition) {
  const auto latest = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > latest) return false;
    std::this_thread::yield();
  }
  return true;
}

// A part alone is the caller's; with several, another thread may begin while the caller wakes it.
TEST(ThreadPool, ComputesEveryPartAndOneAloneInTheCaller) {
  ThreadPool pool(4);
  for (int parts = 1; parts <= 4; ++parts) {
    std::vector<std::thread::id> threads(static_cast<std::size_t>(parts));
    run(pool, parts,
        [&](int part) { threads[static_cast<std::size_t>(part)] = std::this_thread::get_id(); });
    if (parts == 1) EXPECT_EQ(threads[0], std::this_thread::get_id());
    for (const std::thread::id thread : threads) EXPECT_NE(thread, std::thread::id());
  }
}

// The other thread is held up in its first part until the caller has done all the others. Where the
// system does not let it begin within a round, another round is tried.
TEST(ThreadPool, CallerTakesWhatNoOtherThreadHasBegun) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> is_held = false;
  for (int round = 0; round < 100 && !is_held; ++round) {
    std::atomic<int> by_caller = 0;
    run(pool, 8, [&](int part) {
      if (std::this_thread::get_id() == caller) {
        if (part == 0) becomes_true(std::chrono::milliseconds(20), [&] { return is_held.load(); });
        ++by_caller;
      } else if (!is_held.exchange(true)) {
        EXPECT_TRUE(becomes_true(std::chrono::minutes(1), [&] { return by_caller == 7; }));
      }
    });
  }
  if (!is_held) GTEST_SKIP() << "the other thread got no processor";
}

TEST(ThreadPool, KeepsToTheThreadsThatAreAskedFor) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> part_count = 0;
  for (int round = 0; round < 50; ++round) {
    auto part = [&](int) {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      ++part_count;
    };
    pool.run(
        20, 2, [](void* loop, int p) { (*static_cast<decltype(part)*>(loop))(p); }, &part);
  }
  EXPECT_EQ(part_count, 1000);
  EXPECT_LE(threads.size(), 2U);
}

TEST(ThreadPool, ComputesMorePartsThanThreads) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> done(100);
  run(pool, 100, [&](int part) { ++done[static_cast<std::size_t>(part)]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
}

// What a loop wrote, the next one reads, in whatever threads.
TEST(ThreadPool, EndsALoopBeforeTheNext) {
  ThreadPool pool(3);
  std::vector<int> numbers(3, 0);
  for (int round = 1; round <= 20'000; ++round) {
    const int parts = 1 + round % 3;
    run(pool, parts, [&](int part) {
      const auto from = static_cast<std::size_t>(parts - 1 - part);
      EXPECT_GE(numbers[from], 0);
    });
    run(pool, 3, [&](int part) { ++numbers[static_cast<std::size_t>(part)]; });
    ASSERT_EQ(numbers, std::vector(3, round));
  }
}

TEST(ThreadPool, WakesThreadsThatSleep) {
  ThreadPool pool(3);
  std::atomic<int> done = 0;
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    run(pool, 3, [&](int part) {
      if (part == round % 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ++done;
    });
  }
  EXPECT_EQ(done, 15);
}

TEST(ThreadPool, FetchesWhatMayBeGone) {
  ThreadPool pool(2);
  auto memory = std::make_unique<std::byte[]>(std::size_t{8} << 20);
  const std::span<const std::byte> bytes(memory.get(), std::size_t{8} << 20);
  const auto fetches = [&](int) { fetch_while_waiting(bytes); };
  run(pool, 2, fetches);
  memory.reset();
  std::atomic<int> parts = 0;
  const auto waits = [&](int part) {
    if (part == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++parts;
  };
  for (int loop = 0; loop < 20; ++loop) run(pool, 2, waits);
  EXPECT_EQ(parts, 40);
}

TEST(ThreadPool, PassesOnTheFirstPartsException) {
  ThreadPool pool(4);
  for (int round = 0; round < 3; ++round) {
    try {
      run(pool, 4, [&](int part) {
        if (part > 0) throw std::runtime_error("part " + std::to_string(part));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "part 1");
    }
  }
  EXPECT_NO_THROW(run(pool, 4, [](int) {}));
}

TEST(ThreadPool, LeavesItsCallerOutsideOfParallelRegions) {
  ThreadPool pool(2);
  int inside = -1;
  run(pool, 2, [&](int part) {
    if (part == 0) inside = omp_in_parallel();
  });
  EXPECT_EQ(inside, 0);
  int threads = 0;
#pragma omp parallel num_threads(2)
#pragma omp master
  threads = omp_get_num_threads();
  EXPECT_EQ(threads, 2);
}

std::int64_t switches_between_threads() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

// In a child, which has one processor for both threads: a loop that waited for the other thread
// would switch to it and back.
TEST(ThreadPool, GoesOnWhereTheOtherThreadHasNoProcessor) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) _exit(2);
    std::size_t processor = 0;
    while (!CPU_ISSET(processor, &allowed)) ++processor;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) _exit(2);
    ThreadPool pool(2);
    constexpr int loops = 2000;
    const std::int64_t before = switches_between_threads();
    std::atomic<int> parts = 0;
    for (int loop = 0; loop < loops; ++loop) {
      run(pool, 2, [&](int) {
        for (int i = 0; i < 1000; ++i) parts.fetch_add(i == 0 ? 1 : 0, std::memory_order_relaxed);
      });
    }
    if (parts != 2 * loops) _exit(3);
    _exit(switches_between_threads() - before < loops / 2 ? 0 : 4);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A limit on processes, or on memory for stacks, in a child: libgomp would end the process.
TEST(ThreadPool, NamesTheOptionAndTheLimitWhereTheSystemStartsNoMore) {
  if (testing::is_sanitized) GTEST_SKIP() << "sanitizers reserve more than the limit";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = rlim_t{2} << 30, .rlim_max = rlim_t{2} << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    try {
      ThreadPool pool(1024);  // 8 MiB of stack each
      _exit(3);
    } catch (const Error& error) {
      const std::string message = error.what();
      const bool says_all = message.find("of 1024 threads") != std::string::npos &&
                            message.find("2097152 (ulimit -v)") != std::string::npos &&
                            message.find("-t") != std::string::npos;
      _exit(says_all ? 0 : 4);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ParallelLoops, OfSeveralCallersRunAtOnce) {
  const int before = thread_count();
  set_thread_count(3);
  std::vector<std::int64_t> sums(4);
  std::vector<std::thread> callers;
  for (std::int64_t& sum : sums) {
    callers.emplace_back([&sum] {
      for (int round = 0; round < 500; ++round) {
        std::vector<std::int64_t> items(90);
        parallel_ranges(90, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) items[static_cast<std::size_t>(i)] = i;
        });
        sum += std::accumulate(items.begin(), items.end(), std::int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<std::int64_t>(4, 500 * 90 * 89 / 2));
  set_thread_count(before);
}

TEST(ParallelLoops, GoOnInAFork) {
  const int before = thread_count();
  set_thread_count(2);
  const auto count = [] {
    std::atomic<int> items = 0;
    parallel_items(50, [&](std::int64_t) { ++items; });
    return items.load();
  };
  ASSERT_EQ(count(), 50);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(count() == 50 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(count(), 50);
  set_thread_count(before);
}

}  // namespace
}  // namespace heed
