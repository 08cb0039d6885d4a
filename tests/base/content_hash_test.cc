#include "base/content_hash.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

std::string hex_of(HashKind kind, std::string_view text) {
  ContentHasher hasher(kind, static_cast<std::int64_t>(text.size()));
  hasher.add(text.substr(0, text.size() / 2));
  hasher.add(text.substr(text.size() / 2));
  return hasher.finish().hex;
}

// From FIPS 180-4's examples and from `git hash-object`.
TEST(ContentHash, IsTheStandardsAndGits) {
  EXPECT_EQ(hex_of(HashKind::sha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(HashKind::sha256, ""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(HashKind::git_blob, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(hex_of(HashKind::git_blob, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(ContentHash, OfAFileIsThatOfItsBytes) {
  const testing::TemporaryDirectory directory;
  std::string text(3'000'001, 'x');
  text[2'500'000] = 'y';
  write_text_file(directory / "file", text);
  std::int64_t last = 0;
  const ContentHash hash = hash_file(directory / "file", HashKind::sha256,
                                     {.progress = [&](const Progress& now) { last = now.done; }});
  EXPECT_EQ(hash.hex, hex_of(HashKind::sha256, text));
  EXPECT_EQ(last, std::ssize(text));
  const std::atomic<bool> stop{true};
  testing::expect_error(ErrorCode::interrupted,
                        [&] { hash_file(directory / "file", HashKind::sha256, {.stop = &stop}); });
}

TEST(ContentHash, HasItsDigits) {
  EXPECT_TRUE(is_hash(HashKind::sha256, std::string(64, 'a')));
  EXPECT_FALSE(is_hash(HashKind::sha256, std::string(40, 'a')));
  EXPECT_FALSE(is_hash(HashKind::git_blob, std::string(40, 'g')));
  EXPECT_FALSE(is_hash(HashKind::git_blob, std::string(40, 'A')));
}

}  // namespace
}  // namespace heed
