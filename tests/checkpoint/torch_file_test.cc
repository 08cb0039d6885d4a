// PyTorch's checkpoints: what torch.save writes is read, and nothing else is.
#include "checkpoint/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "checkpoint/torch_bytes.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using testing::dictionary_of;
using testing::expect_error;
using testing::pickled_text;
using testing::PickledTensor;
using testing::torch_bytes;
using testing::zip_of;
using enum ErrorCode;

const std::string& six_numbers() {
  static const std::string bytes = [] {
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    return std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  }();
  return bytes;
}

TorchFile parse_torch(const std::string& bytes) {
  return TorchFile::parse(std::as_bytes(std::span(bytes)), "x.bin");
}

TEST(TorchFile, HoldsTheTensorsOfADictionary) {
  const std::string bytes = torch_bytes(dictionary_of({}), six_numbers());
  const TorchFile file = parse_torch(bytes);
  ASSERT_EQ(file.tensors().size(), 1U);
  const TensorEntry& entry = file.tensors().front();
  EXPECT_EQ(entry.name, "weight");
  EXPECT_EQ(entry.shape, (Shape{2, 3}));
  Tensor<float> values(entry.shape);
  read_as_f32(entry, values);
  EXPECT_EQ(values.view()(1, 2), 6.0F);
}

TEST(TorchFile, HoldsAPartOfAStorage) {
  const std::string bytes = torch_bytes(dictionary_of({.offset = 3, .rows = 1}), six_numbers());
  const TorchFile file = parse_torch(bytes);
  Tensor<float> values(Shape{1, 3});
  read_as_f32(file.tensors().front(), values);
  EXPECT_EQ(values.view()(0, 0), 4.0F);
}

// Each is refused with a message of its own; nothing of it is run.
TEST(TorchFile, RefusesEverythingElse) {
  const std::string good = torch_bytes(dictionary_of({}), six_numbers());
  struct Bad {
    std::string bytes;
    ErrorCode code;
    std::string part;
  };
  const auto pickled = [](const std::string& pickle) { return torch_bytes(pickle, six_numbers()); };
  // Extents of nine dimensions in place of two, and a long key: both would be copied at every
  // recall.
  std::string wide = dictionary_of({});
  const std::string extents = "K\x02K\x03\x86";
  std::string nine = "(";
  for (int i = 0; i < 9; ++i) nine += "K\x01";
  wide.replace(wide.find(extents), extents.size(), nine + "t");
  std::string long_key = dictionary_of({});
  long_key.replace(long_key.find(pickled_text("0")), pickled_text("0").size(),
                   pickled_text(std::string(300, 'k')));
  const std::vector<Bad> cases = {
      {"", unsupported, "is no ZIP archive"},
      {"\x80\x02" + std::string(100, '.'), unsupported, "before version 1.6"},
      {good.substr(0, good.size() / 2), corrupt_data, "has no directory of its files"},
      {zip_of({{"archive/data.pkl", "."}}, 8), unsupported, "'archive/data.pkl' is compressed"},
      {zip_of({{"readme", ""}}), corrupt_data, "holds no FOLDER/data.pkl"},
      {zip_of({{"a/data.pkl", "."}, {"a/data.pkl", "."}}), corrupt_data, "'a/data.pkl' twice"},
      {zip_of({{"a/data.pkl", "}."}, {"a/byteorder", "big"}}), unsupported, "big-endian"},
      {pickled("cos\nsystem\n(X\x04" + std::string(3, '\0') + "trueS."), unsupported,
       "names 'os.system', which makes no tensor"},
      {pickled("cbuiltins\neval\n."), unsupported, "names 'builtins.eval'"},
      {pickled("ctorch\nload\n."), unsupported, "names 'torch.load'"},
      {pickled("\x8c\x02os\x8c\x06system\x93."), unsupported, "names 'os.system'"},
      {pickled("(i__main__\nrun\n."), unsupported, "has the instruction 0x69 of pickle at byte 1"},
      {pickled("\x81."), unsupported, "0x81"},
      {pickled("P1\n."), unsupported, "0x50"},
      {pickled("."), corrupt_data, "takes a value at byte 1 where there is none"},
      {pickled("}"), corrupt_data, "ends within an instruction at byte 1"},
      {pickled("N."), unsupported, "is no dictionary of tensors"},
      {pickled("}K\x01K\x02s."), unsupported, "is no tensor with a name"},
      {pickled("t."), corrupt_data, "has no mark"},
      {pickled("h\x05."), corrupt_data, "recalls value 5"},
      {pickled("}(K\x01u."), corrupt_data, "sets a key without a value"},
      {pickled("NK\x01K\x02s."), corrupt_data, "changes what is no dictionary"},
      {pickled("\x8a\x09" + std::string(9, '\x01') + "."), unsupported, "a number of 9 bytes"},
      {pickled(wide), unsupported, "has a tensor of 9 dimensions"},
      {pickled(long_key), unsupported, "has a storage's key of 300 bytes"},
      {pickled("K\x01Q."), corrupt_data, "something else than a storage's tuple"},
      {pickled(dictionary_of({.row_stride = 1})), unsupported,
       "tensor 'weight' is stored with stride 1 in dimension 0; expected 3"},
      {pickled(dictionary_of({.rows = 0})), corrupt_data, "an extent of 0 in dimension 0"},
      {pickled(dictionary_of({.rows = 9})), corrupt_data, "needs 27 numbers from 0 on"},
      {pickled(dictionary_of({.offset = 1})), corrupt_data, "needs 6 numbers from 1 on"},
      {pickled(dictionary_of({.storage = "ComplexFloatStorage"})), unsupported,
       "names 'torch.ComplexFloatStorage'"},
      {zip_of({{"a/data.pkl", dictionary_of({})}}), corrupt_data, "'a/data/0', which is missing"}};
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.part);
    expect_error(
        bad.code, [&] { parse_torch(bad.bytes); }, "x.bin", bad.part);
  }
}

TEST(TorchFile, SurvivesAnyChangeOfAByte) {
  const std::string good = torch_bytes(dictionary_of({}), six_numbers());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    try {
      parse_torch(bytes);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == corrupt_data || error.code() == unsupported) << error.what();
    }
  }
}

}  // namespace
}  // namespace heed
