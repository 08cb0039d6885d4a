#include "tokenizer/charsmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tokenizer/small_charsmap.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

TEST(Base64, Decodes) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xFF\xFE\x00z"}) {
    EXPECT_EQ(decode_base64(encode_base64(text)), text);
  }
  EXPECT_EQ(decode_base64("aGVlZA=="), "heed");
  for (const char* damaged : {"a", "ab=", "a===", "a=b=", "aGV!", "aGV\n", "===="}) {
    EXPECT_FALSE(decode_base64(damaged)) << damaged;
  }
}

TEST(Charsmap, FindsTheShortestKey) {
  CharsmapWriter writer;
  writer.add("ab", "1");
  writer.add("abc", "2");
  writer.add("d", "");
  const Charsmap map(writer.bytes(), "file");
  EXPECT_EQ(map.replacement("abcd"), "1");
  EXPECT_EQ(map.replacement("d"), "");
  EXPECT_EQ(map.replacement("a"), std::nullopt);
  EXPECT_EQ(map.replacement("xab"), std::nullopt);
  EXPECT_EQ(map.replacement(""), std::nullopt);
  EXPECT_EQ(map.replacement(std::string_view("\0ab", 3)), std::nullopt);
}

std::string charsmap_refusal(const std::string& bytes) {
  try {
    Charsmap(bytes, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt_data);
    return error.what();
  }
  return "not refused";
}

// The array of `units`, the first of which is the root.
std::string array_of(std::vector<std::uint32_t> units, std::string_view strings) {
  std::string bytes = little_endian(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) bytes += little_endian(unit);
  return bytes.append(strings);
}

TEST(Charsmap, RefusesDamagedSizes) {
  const std::string good = small_charsmap();
  EXPECT_THAT(charsmap_refusal(""), HasSubstr("0 bytes"));
  EXPECT_THAT(charsmap_refusal(good.substr(0, 3)), HasSubstr("3 bytes"));
  EXPECT_THAT(charsmap_refusal(good.substr(0, 4)), HasSubstr("the array"));
  EXPECT_THAT(charsmap_refusal(good.substr(0, good.size() - 1)), HasSubstr("no end"));
  std::string odd = good;
  odd[0] = 1;
  EXPECT_THAT(charsmap_refusal(odd), HasSubstr("multiple of 4"));
}

TEST(Charsmap, RefusesWalksThatLeaveTheArray) {
  // The root's children are at 256 to 511; there are 256 units.
  EXPECT_THAT(charsmap_refusal(array_of(std::vector<std::uint32_t>(256, 256u << 10), "")),
              HasSubstr("leads to unit 511"));
  // A shifted offset: 2^21 - 1, times 256.
  EXPECT_THAT(charsmap_refusal(array_of(std::vector<std::uint32_t>(256, 0x7FFFFE00u), "")),
              HasSubstr("leads to unit"));
}

TEST(Charsmap, RefusesWalksThatDoNotEnd) {
  std::vector<std::uint32_t> units(512, 1u << 31);
  units[0] = 256u << 10;  // the root's children are at 256 ...
  units[256 + 'a'] = static_cast<std::uint32_t>('a') << 10 | 'a';  // ... and those of 'a' too
  EXPECT_THAT(charsmap_refusal(array_of(units, "")), HasSubstr("leads to itself"));
}

TEST(Charsmap, RefusesValuesOutsideTheReplacements) {
  CharsmapWriter writer;
  writer.add("a", "b");
  const std::string bytes = writer.bytes();
  EXPECT_THAT(charsmap_refusal(bytes.substr(0, bytes.size() - 2)), HasSubstr("there are 0 bytes"));
}

TEST(Charsmap, RefusesManyKeysInEachOther) {
  const auto nested = [](std::size_t keys) {
    CharsmapWriter writer;
    for (std::size_t size = 1; size <= keys; ++size) writer.add(std::string(size, 'a'), "b");
    return writer.bytes();
  };
  EXPECT_NO_THROW(Charsmap(nested(32), "file"));
  EXPECT_THAT(charsmap_refusal(nested(33)), HasSubstr("33 keys"));
}

// Whatever is accepted can be walked.
TEST(Charsmap, SurvivesDamage) {
  const std::string good = small_charsmap();
  RandomStream random(11, 0);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int edit = 0; edit < 4; ++edit) {
      const bool is_used = random.below(2) == 0;  // most units are filling
      const std::size_t at = is_used ? 4 + random.below(8) : random.below(bytes.size());
      bytes[at] = static_cast<char>(random.below(256));
    }
    try {
      const Charsmap map(bytes, "file");
      for (int byte = 0; byte < 256; ++byte) {
        map.replacement(std::string(1, static_cast<char>(byte)) + "\xAC\x81");
      }
      map.replacement("e\u0301");
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::corrupt_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 3000);
}

}  // namespace
}  // namespace heed
