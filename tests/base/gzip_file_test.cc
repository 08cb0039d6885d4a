#include "base/files.h"

#include <gtest/gtest.h>

#include <string>

#include "base/expect_error.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

// Two members, "one\ntwo\n" and "three\n", as Python's gzip module writes them.
const std::string& two_members() {
  static const std::string bytes(
      "\037\213\010\000\000\000\000\000\002\003\313\317\113\345\052\051\317\347\002\000"
      "\346\013\272\022\010\000\000\000\037\213\010\000\000\000\000\000\002\003\053\311"
      "\050\112\115\345\002\000\330\305\106\377\006\000\000\000",
      54);
  return bytes;
}

TEST(GzipFile, ReadsAllMembers) {
  const TemporaryDirectory directory;
  write_text_file(directory / "text.gz", two_members());
  EXPECT_EQ(read_gzip_file(directory / "text.gz"), "one\ntwo\nthree\n");
  EXPECT_EQ(read_gzip_file(directory / "text.gz", 14), "one\ntwo\nthree\n");
}

TEST(GzipFile, RefusesDamage) {
  const TemporaryDirectory directory;
  const auto path = directory / "text.gz";
  const auto refused = [&](const std::string& bytes, const char* what) {
    write_text_file(path, bytes);
    expect_error(
        ErrorCode::corrupt_data, [&] { read_gzip_file(path); }, "text.gz", what);
  };
  refused("plain text", "not a gzip file");
  refused(two_members().substr(0, two_members().size() - 3), "damaged");
  refused(two_members().substr(0, 20), "damaged");
  std::string flipped = two_members();
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  refused(flipped, "damaged");
  write_text_file(path, two_members());
  expect_error(
      ErrorCode::corrupt_data, [&] { read_gzip_file(path, 13); }, "more than 13 bytes");
  expect_error(
      ErrorCode::not_found, [&] { read_gzip_file(directory / "none.gz"); }, "none.gz");
}

}  // namespace
}  // namespace heed
