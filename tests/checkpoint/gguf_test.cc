// GGUF files are read as they are written, and refused by name where they are not what they say.
#include "checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "checkpoint/gguf_bytes.h"

namespace heed {
namespace {

using enum ErrorCode;
using ::testing::ElementsAre;
using testing::expect_error;
using testing::GgufBytes;
using testing::TemporaryDirectory;

// Two tensors: a (2, 3) of f32, and b (64) of q8_0, padded to 32 bytes.
GgufBytes small_file() {
  GgufBytes bytes;
  bytes.header(2, 5)
      .entry("general.architecture", "gpt2")
      .key("gpt2.block_count", GgufType::u32)
      .number<std::uint32_t>(12)
      .key("epsilon", GgufType::f32)
      .number(1e-5F)
      .array("tokenizer.ggml.tokens", GgufType::string, 3)
      .text("a")
      .text("")
      .text("\xC4\xA0the")
      .array("types", GgufType::i32, 2)
      .number<std::int32_t>(1)
      .number<std::int32_t>(-3)
      .tensor("a", {3, 2}, 0, 0)
      .tensor("b", {64}, 8, 32)
      .pad();
  for (int i = 0; i < 6; ++i) bytes.number(static_cast<float>(i));
  bytes.pad();
  for (int block = 0; block < 2; ++block) {
    bytes.number<std::uint16_t>(0x3800);  // 0.5
    for (int i = 0; i < 32; ++i) bytes.number(static_cast<std::int8_t>(i - 16));
  }
  return bytes;
}

TEST(Gguf, MetadataAndTensorsAreRead) {
  const GgufBytes bytes = small_file();
  const GgufFile file = GgufFile::parse(bytes.span(), "x");
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.metadata().size(), 5U);
  EXPECT_EQ(file.find_value("general.architecture")->text(), "gpt2");
  EXPECT_EQ(file.find_value("gpt2.block_count")->integer(), 12);
  EXPECT_EQ(file.find_value("gpt2.block_count")->number(), 12.0);
  EXPECT_EQ(file.find_value("epsilon")->number(), static_cast<double>(1e-5F));
  EXPECT_THAT(file.find_value("tokenizer.ggml.tokens")->texts(),
              ElementsAre("a", "", "\xC4\xA0the"));
  EXPECT_THAT(file.find_value("types")->integers(), ElementsAre(1, -3));
  EXPECT_EQ(file.find_value("absent"), nullptr);

  ASSERT_EQ(file.tensors().size(), 2U);
  const GgufTensor* const a = file.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (Shape{2, 3}));
  std::vector<float> numbers(6);
  unpack_blocks(a->type, a->bytes, numbers);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5));
  const GgufTensor* const b = file.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, BlockType::q8_0);
  EXPECT_EQ(b->bytes.size(), 68U);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Gguf, ValuesAreShownShort) {
  const GgufBytes bytes = small_file();
  const GgufFile file = GgufFile::parse(bytes.span(), "x");
  EXPECT_EQ(file.find_value("general.architecture")->shown(2), "'gpt2'");
  EXPECT_EQ(file.find_value("types")->shown(2), "[1, -3]");
  EXPECT_EQ(file.find_value("types")->shown(1), "[1, … of 2]");
  EXPECT_EQ(file.find_value("types")->shown(0), "[… of 2]");
  EXPECT_EQ(file.find_value("epsilon")->shown(2), "1e-05");
}

TEST(Gguf, ValuesOfAnotherTypeAreRefused) {
  const GgufBytes bytes = small_file();
  const GgufFile file = GgufFile::parse(bytes.span(), "x");
  const GgufValue& text = *file.find_value("general.architecture");
  expect_error(
      invalid_argument, [&] { text.integer(); }, "string", "integers");
  expect_error(
      invalid_argument, [&] { text.texts(); }, "a string", "array");
  expect_error(
      invalid_argument, [&] { file.find_value("types")->integer(); }, "an array of 2 i32");
  expect_error(
      invalid_argument, [&] { file.find_value("types")->texts(); }, "strings");
  expect_error(
      invalid_argument, [&] { file.find_value("epsilon")->boolean(); }, "a f32", "boolean");
  GgufBytes large;
  large.header(0, 1).key("n", GgufType::u64).number<std::uint64_t>(UINT64_MAX);
  const GgufFile other = GgufFile::parse(large.span(), "x");
  expect_error(
      invalid_argument, [&] { other.find_value("n")->integer(); }, "18446744073709551615");
}

TEST(Gguf, FilesCutShortAnywhereAreRefused) {
  const std::string whole = small_file().string();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    expect_error(
        corrupt_data, [&] { GgufFile::parse(std::as_bytes(std::span(cut)), "x"); }, "x: ");
  }
}

struct Malformed {
  std::string what;
  GgufBytes bytes;
  ErrorCode code;
  std::string message;
};

std::vector<Malformed> malformed_files() {
  const auto file = [](std::uint64_t tensors, std::uint64_t entries) {
    GgufBytes bytes;
    bytes.header(tensors, entries);
    return bytes;
  };
  const std::string long_name(64, 'n');
  std::vector<Malformed> all;
  const auto add = [&](std::string what, GgufBytes bytes, ErrorCode code, std::string message) {
    all.push_back({std::move(what), std::move(bytes), code, std::move(message)});
  };
  add("another format", GgufBytes().raw("GGML").number(3), corrupt_data, "'GGUF'");
  add("version 0", GgufBytes().header(0, 0, 0), corrupt_data, "version 0");
  add("version 1", GgufBytes().header(0, 0, 1), unsupported, "version 1");
  add("version 4", GgufBytes().header(0, 0, 4), corrupt_data, "version 4");
  add("big-endian", GgufBytes().header(0, 0, 0x03000000), unsupported, "big-endian");
  add("too many tensors", file(1U << 30, 0), corrupt_data, "1073741824 tensors");
  add("too many entries", file(0, UINT64_MAX), corrupt_data, "entries of metadata");
  add("unknown type", file(0, 1).text("k").number(13U).number(0ULL).number(0ULL), corrupt_data,
      "type 13");
  add("nested array", file(0, 1).array("k", GgufType::array, 1).number(0ULL), unsupported,
      "array of arrays");
  add("unknown element", file(0, 1).array("k", static_cast<GgufType>(99), 1).number(0ULL),
      corrupt_data, "type 99");
  add("long string", file(0, 1).key("k", GgufType::string).number(UINT64_MAX).number(0ULL),
      corrupt_data, "18446744073709551615 bytes");
  add("long array", file(0, 1).array("k", GgufType::f64, UINT64_MAX / 8 + 2).number(0ULL),
      corrupt_data, "numbers of 8 bytes");
  add("many strings", file(0, 1).array("k", GgufType::string, UINT64_MAX).number(0ULL),
      corrupt_data, "strings");
  add("third truth", file(0, 1).key("kk", GgufType::boolean).number('\2'), corrupt_data,
      "boolean of value 2");
  add("empty key", file(0, 1).entry("", "value"), corrupt_data, "0 bytes");
  add("key of other bytes", file(0, 1).entry("\xFF\xFE", "value"), corrupt_data, "UTF-8");
  add("key twice", file(0, 2).entry("k", "1").entry("k", "2"), corrupt_data, "twice");
  add("alignment of 3", file(0, 1).key("general.alignment", GgufType::u32).number(3U), corrupt_data,
      "power of 2");
  add("alignment of 0", file(0, 1).key("general.alignment", GgufType::u32).number(0U), corrupt_data,
      "power of 2");
  add("alignment in words", file(0, 1).entry("general.alignment", "thirty-two"), corrupt_data,
      "u32");
  add("long tensor name", file(1, 0).tensor(long_name, {1}, 0, 0), corrupt_data, "64 bytes");
  add("empty tensor name", file(1, 0).tensor("", {1, 1}, 0, 0), corrupt_data, "0 bytes");
  add("tensor twice", file(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).pad().pad(256),
      corrupt_data, "twice");
  add("five dimensions", file(1, 0).tensor("t", {1, 1, 1, 1, 1}, 0, 0), corrupt_data,
      "5 dimensions");
  add("no rows", file(1, 0).tensor("t", {4, 0}, 0, 0), corrupt_data, "extent of 0");
  add("negative extent", file(1, 0).tensor("t", {UINT64_MAX}, 0, 0), corrupt_data,
      "extent of 18446744073709551615");
  add("too many numbers", file(1, 0).tensor("t", {1ULL << 40, 1ULL << 40}, 0, 0), corrupt_data,
      "2^63");
  add("too many bytes", file(1, 0).tensor("t", {1ULL << 62}, 28, 0).pad(), corrupt_data,
      "does not fit");
  add("half a block", file(1, 0).tensor("t", {48}, 2, 0).pad(), corrupt_data, "rows of 48");
  add("rows of half a block", file(1, 0).tensor("t", {128, 2}, 12, 0).pad(), corrupt_data,
      "hold 256");
  add("unread type", file(1, 0).tensor("t", {256}, 17, 0).pad(), unsupported, "IQ2_XS");
  add("type of the future", file(1, 0).tensor("t", {256}, 1000, 0).pad(), corrupt_data,
      "unknown type 1000");
  add("gap", file(1, 0).tensor("t", {8}, 0, 32).pad().pad(512), corrupt_data, "begins at byte 32");
  add("overlap", file(2, 0).tensor("s", {8}, 0, 0).tensor("t", {8}, 0, 0).pad().pad(512),
      corrupt_data, "expected 32");
  add("no data", file(1, 0).tensor("t", {1024}, 0, 0).pad(), corrupt_data, "does not fit");
  add("data cut at a tensor's end",
      file(2, 0).tensor("s", {1}, 0, 0).tensor("t", {1}, 0, 32).pad().number(1.0F), corrupt_data,
      "'t'");
  return all;
}

TEST(Gguf, MalformedFilesAreRefusedByName) {
  for (const Malformed& malformed : malformed_files()) {
    SCOPED_TRACE(malformed.what);
    expect_error(
        malformed.code, [&] { GgufFile::parse(malformed.bytes.span(), "file.gguf"); },
        "file.gguf: ", malformed.message);
  }
}

TEST(Gguf, AFileOfAnotherAlignmentIsRead) {
  GgufBytes bytes;
  bytes.header(2, 1, 2)
      .key("general.alignment", GgufType::u32)
      .number(8U)
      .tensor("s", {3}, 0, 0)
      .tensor("t", {1}, 0, 16)
      .pad(8);
  for (const float number : {1.0F, 2.0F, 3.0F}) bytes.number(number);
  bytes.pad(8).number(4.0F);
  const GgufFile file = GgufFile::parse(bytes.span(), "x");
  EXPECT_EQ(file.alignment(), 8U);
  std::vector<float> number(1);
  unpack_blocks(BlockType::f32, file.find("t")->bytes, number);
  EXPECT_EQ(number[0], 4.0F);
}

GgufBytes part_file(std::uint16_t part, std::uint16_t count, std::string_view tensor) {
  GgufBytes bytes;
  bytes.header(1, 2)
      .key("split.no", GgufType::u16)
      .number(part)
      .key("split.count", GgufType::u16)
      .number(count)
      .tensor(tensor, {1}, 0, 0)
      .pad()
      .number(1.0F);
  return bytes;
}

TEST(Gguf, PartsAreOpenedTogether) {
  const TemporaryDirectory directory;
  write_text_file(directory / "m-00001-of-00002.gguf", part_file(0, 2, "s").string());
  expect_error(
      not_found, [&] { open_gguf_parts(directory / "m-00001-of-00002.gguf"); }, "part 1 of 2",
      "m-00002-of-00002.gguf");
  write_text_file(directory / "m-00002-of-00002.gguf", part_file(1, 2, "t").string());
  const auto parts = open_gguf_parts(directory / "m-00002-of-00002.gguf");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_NE(parts[0].find("s"), nullptr);
  EXPECT_NE(parts[1].find("t"), nullptr);

  write_text_file(directory / "m-00002-of-00002.gguf", part_file(0, 2, "t").string());
  expect_error(
      corrupt_data, [&] { open_gguf_parts(directory / "m-00001-of-00002.gguf"); },
      "'split.no' is 0", "says 1");
  write_text_file(directory / "m-00002-of-00002.gguf", part_file(1, 2, "s").string());
  expect_error(
      corrupt_data, [&] { open_gguf_parts(directory / "m-00001-of-00002.gguf"); }, "'s'",
      "earlier part");
  write_text_file(directory / "m-00003-of-00002.gguf", part_file(2, 2, "u").string());
  expect_error(
      corrupt_data, [&] { open_gguf_parts(directory / "m-00003-of-00002.gguf"); }, "part 3 of 2");
}

}  // namespace
}  // namespace heed
