#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "comm/group.h"
#include "comm/launch.h"
#include "comm/local_group.h"

namespace heed {
namespace {

using testing::as_members;
using ::testing::ElementsAre;

TEST(Group, MembersTellEachOther) {
  as_members(3, [](Group& group) {
    const std::string text(static_cast<std::size_t>(group.rank()), 'x');
    EXPECT_THAT(gather(group, text), ElementsAre("", "x", "xx"));
    EXPECT_THAT(gather(group, group.rank() * 0.5), ElementsAre(0.0, 0.5, 1.0));
    EXPECT_EQ(sum(group, group.rank() + 0.25), 3.75);
    EXPECT_TRUE(any(group, group.rank() == 2));
    EXPECT_FALSE(any(group, false));
    EXPECT_EQ(of_first(group, "of " + std::to_string(group.rank())), "of 0");
    EXPECT_EQ(of_first(group, group.rank() + 7.0), 7.0);
  });
}

// 1e16 swallows what is added to it, so that another order gives another sum.
TEST(Group, SumsAreInTheOrderOfRanks) {
  as_members(3, [](Group& group) {
    const double own = std::array{1e16, 1.0, -1e16}[static_cast<std::size_t>(group.rank())];
    EXPECT_EQ(sum(group, own), (1e16 + 1.0) - 1e16);
  });
}

// Around the group and back again, two at a time; what comes first is what was sent first.
TEST(Group, MembersPassOnWhatTheyHave) {
  for (const int size : {1, 2, 3, 4}) {
    as_members(size, [size](Group& group) {
      const int next = (group.rank() + 1) % size, previous = (group.rank() + size - 1) % size;
      std::vector<int> first{group.rank(), -1}, second{100 + group.rank()};
      for (int step = 0; step < size; ++step) {
        std::vector<int> first_come(2), second_come(1);
        const auto shift = [&](std::span<const int> sent, std::span<int> received) {
          return group.begin_shift({.sent = std::as_bytes(sent),
                                    .to = next,
                                    .received = std::as_writable_bytes(received),
                                    .from = previous});
        };
        const auto one = shift(first, first_come);
        const auto two = shift(second, second_come);
        while (!one->is_done()) group.progress();
        group.wait(*two);
        EXPECT_TRUE(two->is_done());
        first = first_come;
        second = second_come;
        const int from = (group.rank() + size - step - 1) % size;
        EXPECT_THAT(first, ElementsAre(from, -1));
        EXPECT_THAT(second, ElementsAre(100 + from));
      }
    });
  }
}

TEST(Group, OneProcessIsAGroup) {
  const auto group = single_group();
  EXPECT_TRUE(group->is_alone());
  EXPECT_THAT(gather(*group, "alone"), ElementsAre("alone"));
  EXPECT_EQ(sum(*group, 2.5), 2.5);
  EXPECT_TRUE(any(*group, true));
}

TEST(Agreement, TheFirstThatFailedSpeaks) {
  std::atomic<int> spoke{0};
  as_members(4, [&](Group& group) {
    try {
      agreed(group, [&] {
        if (group.rank() >= 2) fail(ErrorCode::not_found, "no file in {}", group.rank());
      });
      ADD_FAILURE() << "not agreed on";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_EQ(error.speaks(), group.rank() == 2);
      EXPECT_STREQ(error.what(), "process 2 of 4: no file in 2");
      spoke += error.speaks() ? 1 : 0;
    }
  });
  EXPECT_EQ(spoke, 1);
}

TEST(Agreement, NamesNoProcessWhereAllFailAlike) {
  as_members(2, [](Group& group) {
    try {
      agreed(group, [] { fail(ErrorCode::conflict, "taken"); });
      ADD_FAILURE() << "not agreed on";
    } catch (const AgreedError& error) {
      EXPECT_STREQ(error.what(), "taken");
      EXPECT_EQ(error.speaks(), group.is_first());
    }
  });
}

TEST(Agreement, WorkThatSucceedsGoesOn) {
  as_members(2, [](Group& group) { EXPECT_NO_THROW(agreed(group, [] {})); });
}

TEST(Agreement, AloneKeepsItsError) {
  const auto group = single_group();
  try {
    agreed(*group, [] { fail(ErrorCode::conflict, "taken"); });
    ADD_FAILURE() << "not thrown";
  } catch (const AgreedError&) {
    ADD_FAILURE() << "nobody to agree with";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "taken");
  }
}

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

TEST(Launch, IsReadFromTheEnvironment) {
  EXPECT_EQ(launched_processes(), std::nullopt);
  EXPECT_TRUE(launched_group("/nowhere/heed_mpi.so")->is_alone());
  {
    const Environment one("OMPI_COMM_WORLD_SIZE", "1");
    EXPECT_EQ(launched_processes(), 1);
    EXPECT_TRUE(launched_group("/nowhere/heed_mpi.so")->is_alone());
  }
  const Environment odd("PMI_SIZE", "4x");
  EXPECT_EQ(launched_processes(), std::nullopt);
}

TEST(Launch, RefusesSeveralWithoutTheLibrary) {
  const Environment four("OMPI_COMM_WORLD_SIZE", "4");
  for (const char* library : {"", "/nowhere/heed_mpi.so"}) {
    try {
      launched_group(library);
      ADD_FAILURE() << "'" << library << "' was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("one of 4"));
    }
  }
}

}  // namespace
}  // namespace heed
