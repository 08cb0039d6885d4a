// Archives of NumPy: what numpy.savez writes is read, and nothing else is.
#include "checkpoint/numpy_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/expect_error.h"
#include "checkpoint/torch_bytes.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::little_bytes;
using testing::zip_of;
using enum ErrorCode;

std::string array_bytes(const std::string& description, const std::string& elements,
                        char version = '\x01') {
  return std::string("\x93NUMPY", 6) + version + '\0' +
         little_bytes(description.size(), version == 1 ? 2 : 4) + description + elements;
}

const std::string six_halves(24, '\x3f');
constexpr const char* good_description =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n";

NumpyFile parse_archive(const std::string& bytes) {
  return NumpyFile::parse(std::as_bytes(std::span(bytes)), "x.npz");
}

TEST(NumpyFile, HoldsTheArraysOfAnArchive) {
  const std::string bytes = zip_of({{"W_enc.npy", array_bytes(good_description, six_halves)},
                                    {"k.npy", array_bytes("{'descr': '<i8', 'fortran_order': "
                                                          "False, 'shape': ()}",
                                                          little_bytes(7, 8), '\x02')}});
  const NumpyFile file = parse_archive(bytes);
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].name, "W_enc");
  EXPECT_EQ(file.tensors()[0].shape, (Shape{2, 3}));
  EXPECT_EQ(file.tensors()[1].dtype, DType::i64);
  Tensor<float> values(Shape{2, 3});
  read_as_f32(file.tensors()[0], values);
  EXPECT_NEAR(values[0], 0.747F, 1e-3F);  // bytes of 3f
}

TEST(NumpyFile, RefusesEverythingElse) {
  struct Bad {
    std::string array;
    ErrorCode code;
    std::string part;
  };
  const auto described = [](const std::string& text) { return array_bytes(text, six_halves); };
  const std::vector<Bad> cases = {
      {"", corrupt_data, "does not begin"},
      {array_bytes(good_description, six_halves, '\x09'), unsupported, "version 9"},
      {std::string("\x93NUMPY\x01\x00\xff\xff{}", 12), corrupt_data, "description of 65535 bytes"},
      {described("{'descr': '<f4', 'fortran_order': False"), corrupt_data, "expected '}'"},
      {described("{'descr': '<f4', 'fortran_order': False}"), corrupt_data, "lacks"},
      {described("{'descr': '|O', 'fortran_order': False, 'shape': (2, 3)}"), unsupported,
       "the type '|O'"},
      {described("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}"), unsupported, ">f4"},
      {described("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}"), unsupported,
       "Fortran"},
      {described("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}"), corrupt_data,
       "24 bytes"},
      {described("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}"), corrupt_data,
       "expected an extent"},
      {described("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,6)}"), unsupported,
       "more than 5"},
      {described("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000,4000000000)}"),
       corrupt_data, "too large"},
      {described("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}"),
       corrupt_data, "descr"},
      {described("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} junk"), corrupt_data,
       "goes on"},
  };
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.part);
    const std::string bytes = zip_of({{"a.npy", bad.array}});
    expect_error(
        bad.code, [&] { parse_archive(bytes); }, bad.part, "x.npz");
  }
  expect_error(
      corrupt_data,
      [&] {
        parse_archive(zip_of({{"a.txt", "hello"}}));
      },
      "a.txt");
  expect_error(
      unsupported,
      [&] {
        parse_archive(zip_of({{"a.npy", array_bytes(good_description, six_halves)}}, 8));
      },
      "compressed");
}

}  // namespace
}  // namespace heed
