// Elements of a file as f32, straight and transposed.
#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/bf16.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "base/threads.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using enum ErrorCode;
using testing::expect_error;

// Stored elements and what they are as f32, at an odd address as a file may have them.
struct Case {
  std::vector<std::byte> memory;
  TensorEntry entry;
  std::vector<float> expected;
};

template <class Stored, class Convert>
Case make_case(DType dtype, const Shape& shape, Convert convert) {
  Case made;
  RandomStream random(1, 2);
  const std::size_t size = static_cast<std::size_t>(shape.size());
  made.memory.resize(1 + size * sizeof(Stored));
  for (std::size_t i = 0; i < size; ++i) {
    const Stored stored = static_cast<Stored>(random.uniform() * 30000);
    std::memcpy(made.memory.data() + 1 + i * sizeof(Stored), &stored, sizeof(Stored));
    made.expected.push_back(convert(stored));
  }
  made.entry = {"weight", dtype, shape, std::span<const std::byte>(made.memory).subspan(1)};
  return made;
}

std::vector<Case> cases(const Shape& shape) {
  std::vector<Case> all;
  all.push_back(make_case<float>(DType::f32, shape, [](float value) { return value; }));
  all.push_back(make_case<std::uint16_t>(DType::f16, shape, f16_to_f32));
  all.push_back(make_case<std::uint16_t>(DType::bf16, shape, bf16_to_f32));
  all.push_back(
      make_case<double>(DType::f64, shape, [](double value) { return static_cast<float>(value); }));
  return all;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{1, 1}, {3, 5}, {64, 64}, {65, 129}, {300, 700}, {0, 4}};
  return all;
}

// A file that is not mapped gives its bytes when they are asked for.
TEST(TensorEntry, IsReadFromAPartOfAFile) {
  const testing::TemporaryDirectory directory;
  const Shape shape{65, 129};
  for (const Case& tested : cases(shape)) {
    SCOPED_TRACE(dtype_name(tested.entry.dtype));
    write_text_file(directory / "x",
                    {reinterpret_cast<const char*>(tested.memory.data()), tested.memory.size()});
    const TensorEntry entry{.name = tested.entry.name,
                            .dtype = tested.entry.dtype,
                            .shape = shape,
                            .bytes = {},
                            .file = FileParts(directory / "x"),
                            .begin = 1};
    Tensor<float> out(shape), turned(Shape{129, 65}), expected(Shape{129, 65});
    read_as_f32(entry, out);
    EXPECT_TRUE(std::equal(tested.expected.begin(), tested.expected.end(), out.data()));
    read_transposed_as_f32(entry, turned);
    read_transposed_as_f32(tested.entry, expected);
    EXPECT_TRUE(std::ranges::equal(turned.span(), expected.span()));
  }
}

TEST(TensorEntry, IsReadAsF32) {
  for (const Shape& shape : shapes()) {
    for (const Case& tested : cases(shape)) {
      SCOPED_TRACE(shape.text() + std::string(dtype_name(tested.entry.dtype)));
      Tensor<float> out(shape);
      read_as_f32(tested.entry, out);
      EXPECT_TRUE(std::equal(tested.expected.begin(), tested.expected.end(), out.data()));
    }
  }
}

TEST(TensorEntry, IsReadTransposed) {
  for (const Shape& shape : shapes()) {
    for (const Case& tested : cases(shape)) {
      SCOPED_TRACE(shape.text() + std::string(dtype_name(tested.entry.dtype)));
      Tensor<float> memory(Shape{shape[1], shape[0] + 3});  // rows that lie apart
      memory.fill(-1);
      const View<float> out = memory.view().slice(1, 0, shape[0]);
      read_transposed_as_f32(tested.entry, out);
      for (std::int64_t i = 0; i < shape[0]; ++i) {
        for (std::int64_t j = 0; j < shape[1]; ++j) {
          ASSERT_EQ(out(j, i), tested.expected[static_cast<std::size_t>(i * shape[1] + j)]);
        }
      }
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        for (std::int64_t i = 0; i < 3; ++i) ASSERT_EQ(memory.view()(j, shape[0] + i), -1);
      }
    }
  }
}

TEST(TensorEntry, IsTheSameForEveryThreadCount) {
  const int before = thread_count();
  for (const Case& tested : cases(Shape{511, 1023})) {
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      Tensor<float> out(tested.entry.shape);
      read_as_f32(tested.entry, out);
      EXPECT_TRUE(std::equal(tested.expected.begin(), tested.expected.end(), out.data()));
    }
  }
  set_thread_count(before);
}

TEST(TensorEntry, TransposedWritingUndoesTransposedReading) {
  const testing::TemporaryDirectory directory;
  for (const Shape& shape : {Shape{5, 3}, Shape{100, 70}, Shape{700, 900}, Shape{0, 4}}) {
    SCOPED_TRACE(shape.text());
    Tensor<float> weight(shape);
    RandomStream random(3, 4);
    for (float& value : weight.span()) value = static_cast<float>(random.normal());
    const std::vector<OutgoingTensor> tensors = {outgoing_transposed("w", weight.view())};
    write_safetensors(directory / "x", tensors);
    const SafetensorsFile file = SafetensorsFile::open(directory / "x");
    ASSERT_EQ(file.find("w")->shape, (Shape{shape[1], shape[0]}));
    if (weight.size() > 0) {  // element (1, 0) of the file is (0, 1) of the weight
      float element = 0;
      std::memcpy(&element, file.find("w")->bytes.data() + shape[0] * 4, sizeof(element));
      EXPECT_EQ(element, weight.view()(0, 1));
    }
    Tensor<float> back(shape);
    read_transposed_as_f32(*file.find("w"), back);
    EXPECT_TRUE(std::equal(weight.span().begin(), weight.span().end(), back.data()));
  }
}

TEST(TensorEntry, WrongShapesAndTypesAreRefused) {
  const Case tested = make_case<float>(DType::f32, Shape{2, 3}, [](float value) { return value; });
  Tensor<float> flat(Shape{6});
  Tensor<float> straight(Shape{2, 3});
  Tensor<float> turned(Shape{3, 2});
  expect_error(
      invalid_argument, [&] { read_as_f32(tested.entry, flat); }, "'weight'", "(6)", "(2, 3)");
  expect_error(
      invalid_argument, [&] { read_transposed_as_f32(tested.entry, straight); }, "'weight'",
      "(2, 3)", "(3, 2)");
  TensorEntry vector = tested.entry;
  vector.shape = Shape{6};
  expect_error(
      invalid_argument, [&] { read_transposed_as_f32(vector, turned); }, "(6)", "matrix");
  TensorEntry integers = tested.entry;
  integers.dtype = DType::i32;
  expect_error(
      unsupported, [&] { read_as_f32(integers, straight); }, "'weight'", "I32", "BF16");
  expect_error(
      unsupported, [&] { read_transposed_as_f32(integers, turned); }, "'weight'", "I32");
  expect_error(
      invalid_argument, [&] { outgoing_transposed("w", View<const float>(flat.data(), Shape{6})); },
      "(6)");
}

}  // namespace
}  // namespace heed
