// Memory that comes and goes within one range of addresses.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace heed {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// A number of /proc/self/status, in bytes.
std::size_t status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::size_t kibibytes = 0;
    if (word == name + ":" && file >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

// Whether the process's data are `expected` more than before, up to what a test program does
// beside.
void expect_data_grown(std::size_t before, std::size_t expected) {
  EXPECT_NEAR(static_cast<double>(status("VmData")) - static_cast<double>(before),
              static_cast<double>(expected), static_cast<double>(16 * mebibyte));
}

// False where mincore refuses pages without access (qemu's user mode), or calls every page
// resident.
bool tells_of_pages(std::span<std::byte> untouched) {
  unsigned char state = 0;
  return mincore(untouched.data(), page_bytes(), &state) == 0 && (state & 1) == 0;
}

// The bytes of whole pages that are in memory. Counted of these alone, since a sanitizer keeps
// memory of its own for each of them, which the process's sum (RssAnon) contains.
std::size_t resident_bytes(std::span<std::byte> pages) {
  std::vector<unsigned char> states(pages.size() / page_bytes());
  EXPECT_EQ(mincore(pages.data(), pages.size(), states.data()), 0);
  return page_bytes() * static_cast<std::size_t>(std::ranges::count_if(
                            states, [](unsigned char state) { return state & 1; }));
}

TEST(ReservedMemory, TakesMemoryOnlyWhereItIsCommitted) {
  const std::size_t data = status("VmData");
  const Memory memory = reserve_memory(512 * mebibyte);
  const std::span<std::byte> all(memory.get(), 512 * mebibyte);
  if (data == 0 || !tells_of_pages(all)) GTEST_SKIP() << "the system does not count";
  expect_data_grown(data, 0);
  EXPECT_EQ(resident_bytes(all), 0);
  const auto middle = all.subspan(64 * mebibyte, 128 * mebibyte);
  commit_memory(middle);
  std::ranges::fill(middle, std::byte{7});
  expect_data_grown(data, 128 * mebibyte);
  EXPECT_EQ(resident_bytes(middle), 128 * mebibyte);
  EXPECT_EQ(resident_bytes(all), 128 * mebibyte);
  const auto gone = middle.subspan(page_bytes(), 64 * mebibyte);
  release_memory(gone);
  expect_data_grown(data, 64 * mebibyte);
  EXPECT_EQ(resident_bytes(gone), 0);
  EXPECT_EQ(resident_bytes(all), 64 * mebibyte);
}

TEST(ReservedMemory, KeepsWhatIsCommittedAndBeginsWithZeros) {
  const Memory memory = reserve_memory(512 * mebibyte);
  const auto middle =
      std::span(memory.get(), 512 * mebibyte).subspan(64 * mebibyte, 128 * mebibyte);
  commit_memory(middle);
  EXPECT_EQ(std::ranges::count(middle, std::byte{}), std::ssize(middle));
  std::ranges::fill(middle, std::byte{7});

  // A part of it goes, and what is beside stays.
  const auto gone = middle.subspan(page_bytes(), 64 * mebibyte);
  release_memory(gone);
  EXPECT_EQ(middle[page_bytes() - 1], std::byte{7});
  EXPECT_EQ(middle[page_bytes() + gone.size()], std::byte{7});

  // What comes back is zero, and so is what was cleared.
  commit_memory(gone);
  EXPECT_EQ(gone.front(), std::byte{});
  EXPECT_EQ(gone.back(), std::byte{});
  const auto cleared = middle.last(32 * mebibyte);
  clear_memory(cleared);
  EXPECT_EQ(cleared.front(), std::byte{});
}

TEST(ReservedMemory, OfNothingIsNothing) {
  const Memory memory = reserve_memory(0);
  EXPECT_NE(memory.get(), nullptr);
  commit_memory({});
  release_memory({});
}

}  // namespace
}  // namespace heed
