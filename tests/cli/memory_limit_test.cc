// Under limits of memory that are too small, commands say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_heed.h"
#include "support/process.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::run_heed;

constexpr int not_loaded = 127;  // the system's loader has no room for the shared libraries

Outcome run_within(int kilobytes, const std::string& arguments) {
  return run_heed(arguments, "ulimit -v " + std::to_string(kilobytes) + ";");
}

// The least limit under which the system loads the program, to 4 kB; 0 if there is none.
int min_limit_to_load() {
  int too_small = 4'000, enough = 1'000'000;
  if (run_within(enough, "--version").status == not_loaded) return 0;
  while (enough - too_small > 4) {
    const int middle = (too_small + enough) / 2;
    (run_within(middle, "--version").status == not_loaded ? too_small : enough) = middle;
  }
  return enough;
}

// From the first byte on that belongs to heed, and not to the loader, no signal ends it: not in the
// constructors of libraries, which run before main(), and not where `out of memory` is dealt with.
TEST(MemoryLimits, AreNamedWhereverTheyStrike) {
  if (testing::is_sanitized) GTEST_SKIP() << "sanitizers need more address space";
  const int least = min_limit_to_load();
  ASSERT_GT(least, 0);
  std::vector<int> limits;
  for (int more = 0; more < 1'500; more += 100) limits.push_back(least + more);
  for (int more = 1'500; more <= 24'000; more += 1'500) limits.push_back(least + more);
  int named = 0;
  for (const int kilobytes : limits) {
    for (const char* command : {"--version", "tokenize text -m starter", "predict text -t 1"}) {
      const Outcome outcome = run_within(kilobytes, command);
      if (outcome.status == 0) continue;
      EXPECT_EQ(outcome.status, 1) << kilobytes << " " << command << "\n" << outcome.err;
      EXPECT_THAT(outcome.err, ::testing::StartsWith("heed: ")) << kilobytes << " " << command;
      EXPECT_THAT(outcome.err, HasSubstr("memory")) << kilobytes << " " << command;
      EXPECT_THAT(outcome.err, Not(HasSubstr("terminate called"))) << kilobytes;
      ++named;
    }
  }
  EXPECT_GT(named, 0);
}

}  // namespace
}  // namespace heed
