// Temporary files of killed writers, and directories of output that failed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void write_plainly(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(descriptor, 0);
  ::close(descriptor);
}

// A process that has begun to write `path`; it waits until it is killed.
pid_t start_writer(const std::filesystem::path& path) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write("half");
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

void kill_writer(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(AbandonedFiles, AreRemovedByTheNextWriterOfTheSameFile) {
  const TemporaryDirectory directory;
  kill_writer(start_writer(directory / "x"));
  ASSERT_EQ(directory.entries(), 1U);
  write_plainly(directory / "other.partial-1-0");
  write_plainly(directory / "x.partial-notes");
  write_text_file(directory / "x", "whole");
  EXPECT_THAT(names_in(directory.path()),
              UnorderedElementsAre("x", "other.partial-1-0", "x.partial-notes"));
}

TEST(AbandonedFiles, OfARunningWriterStay) {
  const TemporaryDirectory directory;
  const pid_t child = start_writer(directory / "x");
  write_text_file(directory / "x", "whole");
  remove_abandoned_files(directory.path());
  EXPECT_EQ(directory.entries(), 2U);
  kill_writer(child);
  remove_abandoned_files(directory.path());
  EXPECT_THAT(names_in(directory.path()), UnorderedElementsAre("x"));
}

TEST(AbandonedFiles, OfThisProcessStayUntilTheyAreCommitted) {
  const TemporaryDirectory directory;
  AtomicFile first(directory / "x");
  first.write("first");
  AtomicFile second(directory / "x");
  second.write("second");
  first.finish();
  remove_abandoned_files(directory.path());
  second.commit();
  first.commit();
  EXPECT_EQ(read_text_file(directory / "x"), "first");
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(AbandonedFiles, OnlyThoseOfTheRightNameAndKindAreRemoved) {
  const TemporaryDirectory directory;
  for (const char* name : {"a.partial-1-2", "b.partial-77-0"}) write_plainly(directory / name);
  const std::vector<std::string> kept{"a.partial-1",   "a.partial-1-", "a.partial--2",
                                      "a.partial-x-1", ".partial-1-2", "a.partial-1-2.txt"};
  for (const std::string& name : kept) write_plainly(directory / name);
  std::filesystem::create_directory(directory / "d.partial-1-2");
  std::filesystem::create_symlink(directory / "a.partial-1", directory / "l.partial-1-2");
  ASSERT_EQ(::mkfifo((directory / "f.partial-1-2").c_str(), 0600), 0);
  remove_abandoned_files(directory.path());
  std::vector<std::string> expected = kept;
  for (const char* name : {"d.partial-1-2", "l.partial-1-2", "f.partial-1-2"}) {
    expected.emplace_back(name);
  }
  EXPECT_THAT(names_in(directory.path()), ::testing::UnorderedElementsAreArray(expected));
  EXPECT_NO_THROW(remove_abandoned_files(directory / "absent"));
}

// What a signal handler does before it ends the process.
TEST(UnfinishedFiles, AreRemovedAndFinishedOnesStay) {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    OutputDirectory made(directory.path() / "a" / "b"), kept(directory / "kept");
    kept.keep();
    AtomicFile done(directory / "done"), half(directory.path() / "a" / "b" / "half");
    AtomicFile whole(directory.path() / "a" / "b" / "whole");
    write_text_file(directory / "before", "x");
    half.write("half");
    whole.finish();
    done.commit();
    { const AtomicFile dropped(directory / "dropped"); }
    remove_unfinished();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(names_in(directory.path()), UnorderedElementsAre("kept", "done", "before"));
}

TEST(UnfinishedFiles, MayBeMoreThanAreNoted) {
  const TemporaryDirectory directory;
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (int i = 0; i < 100; ++i) {
    files.push_back(std::make_unique<AtomicFile>(directory / std::to_string(i)));
  }
  for (const auto& file : files) file->commit();
  EXPECT_EQ(directory.entries(), 100U);
}

TEST(OutputDirectory, OfWorkThatFailsIsRemoved) {
  const TemporaryDirectory directory;
  { const OutputDirectory made(directory.path() / "a" / "b" / "c"); }
  EXPECT_EQ(directory.entries(), 0U);
  { const OutputDirectory made(directory.path() / "a" / ""); }
  EXPECT_EQ(directory.entries(), 0U);
}

TEST(OutputDirectory, KeepsWhatWasThereOrIsFullOrSucceeded) {
  const TemporaryDirectory directory;
  make_directory(directory / "there");
  { const OutputDirectory made(directory / "there"); }
  EXPECT_TRUE(std::filesystem::exists(directory / "there"));
  {
    const OutputDirectory made(directory.path() / "full" / "inner");
    write_text_file(directory.path() / "full" / "file", "");
  }
  EXPECT_THAT(names_in(directory / "full"), UnorderedElementsAre("file"));
  {
    OutputDirectory made(directory / "kept");
    made.keep();
  }
  EXPECT_TRUE(std::filesystem::exists(directory / "kept"));
  write_text_file(directory / "file", "");
  expect_error(
      ErrorCode::input_output, [&] { OutputDirectory(directory.path() / "file" / "x"); }, "file/x");
}

TEST(RegularFile, DoesNotWaitForAPipe) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const auto& open :
       std::vector<std::function<void()>>{[&] { RegularFile file(directory / "pipe"); },
                                          [&] { MappedFile file(directory / "pipe"); },
                                          [&] { read_text_file(directory / "pipe"); }}) {
    expect_error(ErrorCode::invalid_argument, open, "not a regular file but a pipe");
  }
  expect_error(
      ErrorCode::invalid_argument, [&] { read_text_file("/dev/zero"); }, "a device");
}

TEST(RegularFile, ReadsByPosition) {
  const TemporaryDirectory directory;
  write_text_file(directory / "x", "0123456789");
  const RegularFile file(directory / "x");
  EXPECT_EQ(file.size(), 10);
  std::string part(4, ' ');
  EXPECT_EQ(file.read(3, part), 4U);
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(file.read(8, part), 2U);
  EXPECT_EQ(file.read(20, part), 0U);
}

}  // namespace
}  // namespace heed
