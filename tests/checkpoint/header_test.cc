// Every way in which a safetensors file can lie about itself has its own message.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/expect_error.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

using enum ErrorCode;
using testing::expect_error;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + rest;
}

std::string file_of(const std::string& header, std::size_t data_size) {
  return with_length(header.size(), header + std::string(data_size, 'x'));
}

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "test");
}

// The header of one tensor `a` with the given fields, over eight bytes of data.
std::string one(const std::string& fields) { return file_of("{\"a\":{" + fields + "}}", 8); }

template <class... Parts>
void expect_corrupt(const std::string& bytes, const Parts&... parts) {
  expect_error(
      corrupt_data, [&] { parse(bytes); }, "test: ", parts...);
}

TEST(SafetensorsHeader, OfHuggingFaceIsRead) {
  const std::string bytes = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"I64","shape":[0,3],"data_offsets":[4,4]}}   )",
      8);
  const SafetensorsFile file = parse(bytes);
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[1].name, "none");
  EXPECT_EQ(file.tensors()[2].name, "b");
  EXPECT_EQ(file.find("b")->dtype, DType::f16);
  EXPECT_EQ(file.find("b")->shape, (Shape{2, 1}));
  EXPECT_EQ(file.find("b")->bytes.size(), 4U);
  EXPECT_EQ(file.find("a")->shape, Shape{});
  EXPECT_EQ(file.find("none")->bytes.size(), 0U);
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST(SafetensorsHeader, WithoutTensorsIsRead) {
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors().empty());
}

TEST(SafetensorsHeader, LengthMustFit) {
  expect_corrupt("", "holds 0 bytes");
  expect_corrupt("1234567", "holds 7 bytes");
  expect_corrupt(with_length(100'000'001, "{}"), "100000001", "allows 100000000");
  expect_corrupt(with_length(UINT64_MAX, "{}"), "18446744073709551615");
  expect_corrupt(with_length(3, "{}"), "length is 3 bytes, but only 2 follow");
}

TEST(SafetensorsHeader, MustBeStrictJson) {
  expect_corrupt(with_length(0, ""), "does not start with '{'");
  expect_corrupt(file_of(" {}", 0), "does not start with '{'");
  expect_corrupt(file_of("[]", 0), "does not start with '{'");
  expect_corrupt(file_of("{\"a\":", 0), "not valid JSON");
  expect_corrupt(file_of("{} {}", 0), "not valid JSON");
  expect_corrupt(file_of("{\"\xff\":1}", 0), "not valid JSON");
  expect_corrupt(file_of(std::string("{}\0{", 4), 0), "NUL byte at 2");
  expect_corrupt(file_of(R"({"a":1,"a":2})", 0), "'a' appears twice");
  expect_corrupt(one(R"("dtype":"U8","dtype":"I8")"), "'dtype' appears twice");
}

TEST(SafetensorsHeader, MetadataMapsStringsToStrings) {
  expect_corrupt(file_of(R"({"__metadata__":[]})", 0), "__metadata__", "array");
  expect_corrupt(file_of(R"({"__metadata__":{"step":7}})", 0), "'step'", "number");
}

TEST(SafetensorsHeader, TensorsNeedNameAndObject) {
  expect_corrupt(file_of(R"({"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1),
                 "empty name");
  expect_corrupt(file_of(R"({"a":7})", 0), "tensor 'a'", "number");
}

TEST(SafetensorsHeader, DtypeMustBeKnown) {
  expect_corrupt(one(R"("shape":[8],"data_offsets":[0,8])"), "tensor 'a'", "'dtype' is missing");
  expect_corrupt(one(R"("dtype":8,"shape":[8],"data_offsets":[0,8])"), "'dtype'");
  expect_corrupt(one(R"("dtype":"F31","shape":[8],"data_offsets":[0,8])"), "unknown dtype 'F31'");
  expect_error(
      unsupported, [] { parse(one(R"("dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8])")); },
      "tensor 'a'", "unsupported dtype 'F8_E4M3'");
}

TEST(SafetensorsHeader, ShapeMustMakeSense) {
  const auto shaped = [](const std::string& shape) {
    return one(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,8])");
  };
  EXPECT_EQ(parse(shaped("[2]")).tensors().size(), 1U);
  expect_corrupt(one(R"("dtype":"F32","data_offsets":[0,8])"), "'shape' is missing");
  expect_corrupt(shaped("2"), "not a list");
  expect_corrupt(shaped("[-2]"), "extent -2");
  expect_corrupt(shaped("[2.0]"), "extent 2.0");
  expect_corrupt(shaped("[\"2\"]"), "extent \"2\"");
  expect_corrupt(shaped("[18446744073709551615]"), "extent 18446744073709551615");
  expect_corrupt(shaped("[4611686018427387904]"), "[4611686018427387904]", "2^63 bytes");
  expect_corrupt(shaped("[4294967296,4294967296]"), "2^63 bytes");
  expect_corrupt(shaped("[0,4611686018427387904,4611686018427387904]"), "2^63 bytes");
  expect_error(
      unsupported, [&] { parse(shaped("[1,1,1,1,1,2]")); }, "6 dimensions", "at most 5");
}

TEST(SafetensorsHeader, RangeMustMatchShapeAndFile) {
  const auto ranged = [](const std::string& range) {
    return one(R"("dtype":"F32","shape":[2],"data_offsets":)" + range);
  };
  EXPECT_EQ(parse(ranged("[0,8]")).tensors().size(), 1U);
  expect_corrupt(one(R"("dtype":"F32","shape":[2])"), "'data_offsets' is missing");
  expect_corrupt(ranged("8"), "not a pair");
  expect_corrupt(ranged("[0,4,8]"), "not a pair");
  expect_corrupt(ranged("[-1,8]"), "not a pair");
  expect_corrupt(ranged("[0,8.5]"), "not a pair");
  expect_corrupt(ranged("[8,0]"), "begins at 8 and ends at 0");
  expect_corrupt(ranged("[0,9]"), "ends at 9, but the file holds 8 bytes");
  expect_corrupt(ranged("[18446744073709551608,18446744073709551615]"), "the file holds 8 bytes");
  expect_corrupt(ranged("[0,4]"), "4 bytes of data, but shape (2) of F32 takes 8");
}

TEST(SafetensorsHeader, RangesMustTileTheFile) {
  const auto two = [](int first_begin, int second_begin, std::size_t data_size) {
    const auto range = [](const char* name, int begin) {
      return fmt::format(R"("{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", name,
                         begin, begin + 4);
    };
    return file_of("{" + range("a", first_begin) + "," + range("b", second_begin) + "}", data_size);
  };
  EXPECT_EQ(parse(two(4, 0, 8)).tensors()[0].name, "b");
  expect_corrupt(two(0, 5, 9), "tensor 'b'", "begins at 5, leaving a gap after", "ends at 4");
  expect_corrupt(two(1, 5, 9), "tensor 'a'", "begins at 1, leaving a gap");
  expect_corrupt(two(0, 3, 8), "tensor 'b'", "begins at 3, overlapping");
  expect_corrupt(two(0, 0, 8), "tensor 'b'", "begins at 0, overlapping");
  expect_corrupt(two(0, 4, 9), "the tensors end at 8, but the file goes on to 9");
  expect_corrupt(file_of("{}", 1), "the tensors end at 0, but the file goes on to 1");
}

}  // namespace
}  // namespace heed
