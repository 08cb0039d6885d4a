#include "base/files.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/expect_error.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

using enum ErrorCode;
using testing::expect_error;
using testing::TemporaryDirectory;

TEST(MappedFile, GivesTheBytes) {
  const TemporaryDirectory directory;
  const std::string text("one\0two", 7);
  write_text_file(directory / "x", text);
  MappedFile file(directory / "x");
  EXPECT_EQ(file.text(), text);
  const auto* data = file.bytes().data();
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().data(), data);
  MappedFile assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.text(), text);
}

TEST(MappedFile, OfAnEmptyFileIsEmpty) {
  const TemporaryDirectory directory;
  write_text_file(directory / "x", "");
  EXPECT_TRUE(MappedFile(directory / "x").bytes().empty());
}

TEST(MappedFile, ThatCannotBeOpenedIsNamed) {
  const TemporaryDirectory directory;
  expect_error(
      not_found, [&] { MappedFile(directory / "absent"); }, "absent");
  expect_error(
      invalid_argument, [&] { MappedFile file(directory.path()); }, "not a regular file");
  write_text_file(directory / "file", "");
  expect_error(
      input_output, [&] { MappedFile(directory.path() / "file" / "x"); }, "file/x",
      "Not a directory");
}

TEST(AtomicFile, IsSeenOnlyAfterCommit) {
  const TemporaryDirectory directory;
  write_text_file(directory / "x", "old");
  {
    AtomicFile file(directory / "x");
    file.write("new");
    EXPECT_EQ(read_text_file(directory / "x"), "old");
    file.write(" text");
    file.commit();
  }
  EXPECT_EQ(read_text_file(directory / "x"), "new text");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(AtomicFile, WithoutCommitLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory directory;
  write_text_file(directory / "x", "old");
  {
    AtomicFile file(directory / "x");
    file.write("new");
    EXPECT_EQ(directory.entries(), 2U);
  }
  EXPECT_EQ(read_text_file(directory / "x"), "old");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(AtomicFile, ThatCannotBeRenamedLeavesNothing) {
  const TemporaryDirectory directory;
  make_directory(directory.path() / "x" / "full");
  AtomicFile file(directory / "x");
  file.write("new");
  expect_error(
      input_output, [&] { file.commit(); }, "/x'", "Is a directory");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(AtomicFile, ThatCannotBeCreatedIsNamed) {
  const TemporaryDirectory directory;
  write_text_file(directory / "file", "");
  expect_error(
      input_output, [&] { AtomicFile(directory.path() / "file" / "x"); }, "file/x");
  expect_error(
      not_found, [&] { AtomicFile(directory.path() / "absent" / "x"); }, "absent/x");
}

TEST(AtomicFile, FinishedIsStillInvisibleAndStillUndone) {
  const TemporaryDirectory directory;
  write_text_file(directory / "x", "old");
  {
    AtomicFile file(directory / "x");
    file.write("new");
    file.finish();
    EXPECT_EQ(read_text_file(directory / "x"), "old");
  }
  EXPECT_EQ(read_text_file(directory / "x"), "old");
  EXPECT_EQ(directory.entries(), 1U);
  AtomicFile file(directory / "x");
  file.write("new");
  file.finish();
  file.commit();
  EXPECT_EQ(read_text_file(directory / "x"), "new");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(AtomicFile, OfOnePathFromManyThreadsDoNotMeet) {
  const TemporaryDirectory directory;
  const auto text_of = [](int writer) {
    return std::string(20'000, static_cast<char>('a' + writer));
  };
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 4; ++writer) {
    threads.emplace_back([&, writer] {
      for (int round = 0; round < 20; ++round) {
        AtomicFile file(directory / "x");
        for (const char letter : text_of(writer)) file.write(std::string_view(&letter, 1));
        file.commit();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = read_text_file(directory / "x");
  EXPECT_EQ(text, text_of(text.front() - 'a'));
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(TextFile, LargerThanAllowedIsRefused) {
  const TemporaryDirectory directory;
  write_text_file(directory / "x", "four");
  EXPECT_EQ(read_text_file(directory / "x", 4), "four");
  expect_error(
      corrupt_data, [&] { read_text_file(directory / "x", 3); }, "4 bytes", "3");
}

TEST(Directory, IsMadeWithItsParents) {
  const TemporaryDirectory directory;
  make_directory(directory.path() / "a" / "b");
  make_directory(directory.path() / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(directory.path() / "a" / "b"));
  write_text_file(directory / "file", "");
  expect_error(
      input_output, [&] { make_directory(directory.path() / "file" / "x"); }, "file/x");
}

}  // namespace
}  // namespace heed
