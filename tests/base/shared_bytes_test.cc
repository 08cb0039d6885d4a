#include "base/shared_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/environment_variable.h"

namespace heed {
namespace {

std::string unused_name() {
  static int made = 0;
  return "heed-test-" + std::to_string(::getpid()) + "-" + std::to_string(++made);
}

constexpr std::size_t size = 10000;  // three pages, the last in part

std::shared_ptr<SharedBytes> sealed(const std::string& name) {
  std::shared_ptr<SharedBytes> bytes = SharedBytes::make(name, size);
  for (std::size_t i = 0; i < size; ++i) bytes->data()[i] = static_cast<std::byte>(i * 7);
  bytes->seal();
  return bytes;
}

TEST(SharedBytes, AreFoundOnceTheyAreSealed) {
  const std::string name = unused_name();
  const std::shared_ptr<SharedBytes> first = SharedBytes::make(name, size);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(std::all_of(first->data(), first->data() + size,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_FALSE(first->is_sealed());
  EXPECT_EQ(SharedBytes::find(name, size), nullptr);

  std::byte* const place = first->data();
  for (std::size_t i = 0; i < size; ++i) place[i] = static_cast<std::byte>(i * 7);
  first->seal();
  EXPECT_TRUE(first->is_sealed());
  EXPECT_EQ(first->data(), place);

  const std::shared_ptr<SharedBytes> found = SharedBytes::find(name, size);
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(found->is_sealed());
  EXPECT_NE(found->data(), place);
  EXPECT_TRUE(std::equal(place, place + size, found->data()));
  EXPECT_EQ(SharedBytes::find(name, size + 1), nullptr);
  EXPECT_EQ(SharedBytes::find(name + "x", size), nullptr);
}

TEST(SharedBytes, CannotBeWrittenOnceTheyAreSealed) {
  const std::shared_ptr<SharedBytes> bytes = sealed(unused_name());
  EXPECT_EQ(::mprotect(bytes->data(), size, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST(SharedBytes, GoWithTheLastWhoHoldsThem) {
  const std::string name = unused_name();
  std::shared_ptr<SharedBytes> first = sealed(name);
  std::shared_ptr<SharedBytes> second = SharedBytes::find(name, size);
  ASSERT_NE(second, nullptr);
  first = nullptr;
  EXPECT_NE(SharedBytes::find(name, size), nullptr);
  EXPECT_EQ(second->data()[9], std::byte{63});
  second = nullptr;
  EXPECT_EQ(SharedBytes::find(name, size), nullptr);
}

TEST(SharedBytes, AreFoundByAnotherProcess) {
  const std::string name = unused_name();
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::shared_ptr<SharedBytes> bytes = sealed(name);
    char one = 1;
    const bool told = ::write(ready[1], &one, 1) == 1 && ::read(done[0], &one, 1) == 1;
    ::_exit(told ? 0 : 1);
  }
  char one = 0;
  ASSERT_EQ(::read(ready[0], &one, 1), 1);
  const std::shared_ptr<SharedBytes> found = SharedBytes::find(name, size);
  EXPECT_EQ(::write(done[1], &one, 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->data()[size - 1], static_cast<std::byte>((size - 1) * 7));
  for (const int end : {ready[0], ready[1], done[0], done[1]}) ::close(end);
}

// Someone's that is not sealed, or can still grow, is not taken.
TEST(SharedBytes, AreNotTakenWhileTheyCouldChange) {
  const std::string name = unused_name();
  const int open = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(open, 0);
  ASSERT_EQ(::ftruncate(open, size), 0);
  EXPECT_EQ(SharedBytes::find(name, size), nullptr);
  ASSERT_EQ(::fcntl(open, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
  EXPECT_EQ(SharedBytes::find(name, size), nullptr);
  ASSERT_EQ(::fcntl(open, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_NE(SharedBytes::find(name, size), nullptr);
  ::close(open);
}

TEST(SharedBytes, AreWantedWhereTheEnvironmentSaysSo) {
  const auto wanted = [](const char* value) {
    const testing::EnvironmentVariable variable("HEED_SHARE", value);
    return SharedBytes::are_wanted();
  };
  EXPECT_FALSE(wanted(nullptr));
  EXPECT_FALSE(wanted(""));
  EXPECT_FALSE(wanted("0"));
  EXPECT_TRUE(wanted("1"));
}

}  // namespace
}  // namespace heed
