// What is written is read back, and a write that fails leaves everything as it was.
#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using enum ErrorCode;
using testing::expect_error;
using testing::TemporaryDirectory;

template <class T>
void expect_round_trip(DType dtype) {
  SCOPED_TRACE(dtype_name(dtype));
  const TemporaryDirectory directory;
  const std::vector<T> values = {std::numeric_limits<T>::lowest(), T{0}, T{1}, T{2},
                                 std::numeric_limits<T>::max(),    T{3}};
  const View<const T> view(values.data(), Shape{2, 3});
  const std::vector<OutgoingTensor> tensors = {outgoing("x", view)};
  write_safetensors(directory / "x", tensors);
  const SafetensorsFile file = SafetensorsFile::open(directory / "x");
  ASSERT_EQ(file.tensors().size(), 1U);
  EXPECT_EQ(file.tensors()[0].dtype, dtype);
  EXPECT_EQ(file.tensors()[0].shape, (Shape{2, 3}));
  ASSERT_EQ(file.tensors()[0].bytes.size(), values.size() * sizeof(T));
  EXPECT_EQ(std::memcmp(file.tensors()[0].bytes.data(), values.data(), values.size() * sizeof(T)),
            0);
}

TEST(Safetensors, EveryElementTypeRoundTrips) {
  expect_round_trip<float>(DType::f32);
  expect_round_trip<double>(DType::f64);
  expect_round_trip<std::int8_t>(DType::i8);
  expect_round_trip<std::uint8_t>(DType::u8);
  expect_round_trip<std::int16_t>(DType::i16);
  expect_round_trip<std::uint16_t>(DType::u16);
  expect_round_trip<std::int32_t>(DType::i32);
  expect_round_trip<std::uint32_t>(DType::u32);
  expect_round_trip<std::int64_t>(DType::i64);
  expect_round_trip<std::uint64_t>(DType::u64);
}

// Types that no C++ type stands for go out and in through `produce` and the bytes of the entry.
TEST(Safetensors, HalvesAndBooleansRoundTrip) {
  const TemporaryDirectory directory;
  const std::array<std::uint16_t, 2> bits = {0x3C00, 0xBF80};
  const std::array<std::uint8_t, 2> flags = {1, 0};
  const auto produce = [](auto& values) {
    return [&values](const ByteSink& sink) {
      for (const auto& value : values) sink(std::as_bytes(std::span(&value, 1)));
    };
  };
  const std::vector<OutgoingTensor> tensors = {
      {"half", DType::f16, Shape{2}, produce(bits)},
      {"brain", DType::bf16, Shape{2}, produce(bits)},
      {"flag", DType::boolean, Shape{2}, produce(flags)},
  };
  write_safetensors(directory / "x", tensors);
  const SafetensorsFile file = SafetensorsFile::open(directory / "x");
  for (const OutgoingTensor& tensor : tensors) {
    const TensorEntry* entry = file.find(tensor.name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->dtype, tensor.dtype);
    const void* expected = tensor.name == "flag" ? static_cast<const void*>(flags.data()) : &bits;
    EXPECT_EQ(std::memcmp(entry->bytes.data(), expected, entry->bytes.size()), 0);
  }
}

TEST(Safetensors, HeaderIsPaddedAndKeepsTheGivenOrder) {
  const TemporaryDirectory directory;
  for (std::size_t length = 1; length <= 9; ++length) {  // every remainder of the header's length
    const std::vector<float> values(4, 1.5F);
    const View<const float> view(values.data(), Shape{4});
    const std::vector<OutgoingTensor> tensors = {outgoing("z", view),
                                                 outgoing(std::string(length, 'a'), view)};
    write_safetensors(directory / "x", tensors, {{"format", "pt"}});
    const std::string bytes = read_text_file(directory / "x");
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof(header));
    EXPECT_EQ(header % 8, 0U);
    EXPECT_EQ(bytes.size(), 8 + header + 32);
    EXPECT_EQ(bytes.substr(8, 33), R"({"__metadata__":{"format":"pt"},")");
    const SafetensorsFile file = SafetensorsFile::open(directory / "x");
    EXPECT_EQ(file.tensors()[0].name, "z");
    EXPECT_EQ(file.metadata().at("format"), "pt");
  }
}

TEST(Safetensors, FilesCutShortAnywhereAreRefused) {
  const TemporaryDirectory directory;
  const std::vector<float> values(3, 1.0F);
  const std::vector<OutgoingTensor> tensors = {
      outgoing("a", View<const float>(values.data(), Shape{3}))};
  write_safetensors(directory / "x", tensors);
  const std::string whole = read_text_file(directory / "x");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text_file(directory / "cut", std::string_view(whole).substr(0, size));
    expect_error(
        corrupt_data, [&] { SafetensorsFile::open(directory / "cut"); }, "cut'");
  }
}

TEST(Safetensors, MissingFilesAndDirectoriesAreNamed) {
  const TemporaryDirectory directory;
  expect_error(
      not_found, [&] { SafetensorsFile::open(directory / "absent"); }, "absent", "No such file");
  expect_error(
      invalid_argument, [&] { SafetensorsFile::open(directory.path()); }, directory.path().string(),
      "not a regular file");
}

TEST(Safetensors, NamesThatCannotBeSavedAreRefused) {
  const TemporaryDirectory directory;
  const float value = 1;
  const auto save = [&](std::vector<std::string> names) {
    std::vector<OutgoingTensor> tensors;
    for (const std::string& name : names) {
      tensors.push_back(outgoing(name, View<const float>(&value, Shape{1})));
    }
    write_safetensors(directory / "x", tensors);
  };
  expect_error(
      invalid_argument, [&] { save({""}); }, "''");
  expect_error(
      invalid_argument, [&] { save({"__metadata__"}); }, "'__metadata__'");
  expect_error(
      invalid_argument,
      [&] {
        save({"a", "a"});
      },
      "two tensors", "'a'");
  expect_error(
      invalid_argument, [&] { save({"\xff"}); }, "UTF-8");
  EXPECT_EQ(directory.entries(), 0U);
}

// Lowers the size that files of this process may reach, as a full disk would.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(Safetensors, FailedWriteLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory directory;
  const std::vector<float> old_values = {1, 2, 3};
  const std::vector<OutgoingTensor> old_tensors = {
      outgoing("old", View<const float>(old_values.data(), Shape{3}))};
  write_safetensors(directory / "x", old_tensors);
  const std::string before = read_text_file(directory / "x");

  const std::vector<float> large(1 << 20, 1.0F);
  const std::vector<OutgoingTensor> tensors = {
      outgoing("new", View<const float>(large.data(), Shape{1 << 20}))};
  {
    const SmallDisk disk(1 << 20);
    expect_error(
        input_output, [&] { write_safetensors(directory / "x", tensors); }, "write",
        "File too large");
  }
  EXPECT_EQ(read_text_file(directory / "x"), before);
  EXPECT_EQ(directory.entries(), 1U);

  // A tensor whose production fails half way is no different.
  const std::vector<OutgoingTensor> failing = {
      {"new", DType::u8, Shape{2}, [](const ByteSink& sink) {
         sink(std::as_bytes(std::span("a", 1)));
         throw Error(interrupted, "stopped");
       }}};
  expect_error(
      interrupted, [&] { write_safetensors(directory / "x", failing); }, "stopped");
  EXPECT_EQ(read_text_file(directory / "x"), before);
  EXPECT_EQ(directory.entries(), 1U);

  const std::vector<OutgoingTensor> short_of_bytes = {
      {"new", DType::u8, Shape{2},
       [](const ByteSink& sink) { sink(std::as_bytes(std::span("a", 1))); }}};
  expect_error(
      internal, [&] { write_safetensors(directory / "x", short_of_bytes); }, "bytes");
  EXPECT_EQ(read_text_file(directory / "x"), before);
  EXPECT_EQ(directory.entries(), 1U);
}

TEST(Safetensors, PlacesThatCannotBeWrittenAreNamed) {
  const TemporaryDirectory directory;
  write_text_file(directory / "file", "not a directory");
  expect_error(
      input_output, [&] { write_safetensors(directory.path() / "file" / "x", {}); }, "file/x",
      "Not a directory");
  expect_error(
      not_found, [&] { write_safetensors(directory.path() / "absent" / "x", {}); }, "absent/x");
}

}  // namespace
}  // namespace heed
