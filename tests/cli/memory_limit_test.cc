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

TEST(MemoryLimits, AreNamedWhereverTheyStrike) {
  if (testing::is_sanitized) GTEST_SKIP() << "sanitizers need more address space";
  int named = 0;
  for (int kilobytes = 56'000; kilobytes <= 80'000; kilobytes += 1'000) {
    const std::string limit = "ulimit -v " + std::to_string(kilobytes) + ";";
    if (run_heed("--version", limit).status != 0) continue;  // not even its libraries fit
    for (const char* command : {"tokenize text", "predict text -t 1"}) {
      const Outcome outcome = run_heed(std::string(command) + " -m starter", limit);
      if (outcome.status == 0) continue;
      EXPECT_EQ(outcome.status, 1) << kilobytes << " " << command << "\n" << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("memory")) << kilobytes << " " << command;
      EXPECT_THAT(outcome.err, Not(HasSubstr("terminate called"))) << kilobytes;
      ++named;
    }
  }
  EXPECT_GT(named, 0);
}

}  // namespace
}  // namespace heed
