#include "microscope/files/array_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <limits>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Two arrays of floats, one without elements, a scalar and ids, under names as points have them.
struct Arrays {
  std::vector<float> pattern{1, 0, 0.1F, 0.9F, 1e-30F, -infinity};
  std::vector<float> scalar{3.25F};
  std::vector<std::int32_t> tokens{5, -17, 50256};

  std::vector<NamedArray> named() const {
    return {{"blocks.0.attn.hook_pattern", View<const float>(pattern.data(), {1, 2, 3})},
            {"a, \"quoted\" one", View<const float>(scalar.data(), Shape{})},
            {"nothing", View<const float>(scalar.data(), {0, 4})},
            {"tokens", View<const std::int32_t>(tokens.data(), {3})}};
  }
};

const ArrayNotes notes{{"model", "starter"}, {"text", "a \"mole\" …\xff"}};

TEST(NpyHeader, DescribesTheArrayUpToAMultipleOf64Bytes) {
  const std::int64_t extents[] = {3, 4};
  for (std::size_t rank = 0; rank <= 2; ++rank) {
    const std::string header = npy_header("<f4", std::span(extents).first(rank));
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    EXPECT_EQ(static_cast<std::uint8_t>(header[8]) + 256 * header[9],
              static_cast<int>(header.size()) - 10);
    const char* const shapes[] = {"()", "(3,)", "(3, 4)"};
    EXPECT_NE(header.find(std::string("'descr': '<f4', 'fortran_order': False, 'shape': ") +
                          shapes[rank] + ", }"),
              std::string::npos);
    EXPECT_EQ(header.back(), '\n');
  }
}

TEST(ArrayFiles, NumPyReadsAnNpz) {
  constexpr const char* python = "/usr/bin/python3";
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
    GTEST_SKIP() << python << " cannot import numpy";
  }
  const testing::TemporaryDirectory directory;
  const Arrays arrays;
  write_arrays(directory / "arrays.npz", arrays.named(), notes);
  write_text_file(directory / "read.py", R"(
import json, sys, zipfile
import numpy as np
path = sys.argv[1]
assert zipfile.ZipFile(path).testzip() is None
found = np.load(path)
pattern = found['blocks.0.attn.hook_pattern']
assert pattern.dtype == np.float32 and pattern.shape == (1, 2, 3)
expected = np.array([1, 0, 0.1, 0.9, 1e-30, -np.inf], dtype=np.float32).reshape(1, 2, 3)
assert (pattern == expected).all()
assert found['a, "quoted" one'] == np.float32(3.25)
assert found['nothing'].shape == (0, 4)
assert found['tokens'].dtype == np.int32 and found['tokens'].tolist() == [5, -17, 50256]
assert json.loads(found['notes'].item()) == {'model': 'starter', 'text': 'a "mole" \u2026\ufffd'}
)");
  const int status = std::system((std::string(python) + " '" + (directory / "read.py").string() +
                                  "' '" + (directory / "arrays.npz").string() + "'")
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ArrayFiles, SafetensorsHoldsTheSameBits) {
  const testing::TemporaryDirectory directory;
  const Arrays arrays;
  write_arrays(directory / "arrays.safetensors", arrays.named(), notes);
  const std::string bytes = read_text_file(directory / "arrays.safetensors");
  const auto* elements = reinterpret_cast<const char*>(arrays.pattern.data());
  EXPECT_NE(bytes.find(std::string(elements, arrays.pattern.size() * sizeof(float))),
            std::string::npos);
  EXPECT_NE(bytes.find("\"starter\""), std::string::npos);
}

TEST(ArrayFiles, JsonIsNestedLists) {
  const testing::TemporaryDirectory directory;
  const Arrays arrays;
  write_arrays(directory / "arrays.json", arrays.named(), {{"model", "starter"}});
  const Json document = parse_json(read_text_file(directory / "arrays.json"), "arrays.json");
  const Json& pattern = document["arrays"]["blocks.0.attn.hook_pattern"];
  EXPECT_EQ(pattern[0][0], Json({1, 0, 0.1}));
  EXPECT_EQ(static_cast<float>(pattern[0][1][1].get<double>()), 1e-30F);
  EXPECT_TRUE(pattern[0][1][2].is_null());
  EXPECT_EQ(document["arrays"]["nothing"], Json::array());
  EXPECT_EQ(document["arrays"]["tokens"], Json({5, -17, 50256}));
  EXPECT_EQ(document["notes"]["model"], "starter");
}

TEST(ArrayFiles, CsvHasOneNumberALine) {
  const testing::TemporaryDirectory directory;
  const Arrays arrays;
  write_arrays(directory / "arrays.csv", arrays.named());
  EXPECT_EQ(read_text_file(directory / "arrays.csv"),
            "array,index_0,index_1,index_2,value\n"
            "blocks.0.attn.hook_pattern,0,0,0,1\n"
            "blocks.0.attn.hook_pattern,0,0,1,0\n"
            "blocks.0.attn.hook_pattern,0,0,2,0.1\n"
            "blocks.0.attn.hook_pattern,0,1,0,0.9\n"
            "blocks.0.attn.hook_pattern,0,1,1,1e-30\n"
            "blocks.0.attn.hook_pattern,0,1,2,-inf\n"
            "\"a, \"\"quoted\"\" one\",,,,3.25\n"
            "tokens,0,,,5\ntokens,1,,,-17\ntokens,2,,,50256\n");
}

TEST(ArrayFiles, RefusesWhatItCannotWrite) {
  const testing::TemporaryDirectory directory;
  const Arrays arrays;
  std::vector<NamedArray> named = arrays.named();
  EXPECT_THROW(write_arrays(directory / "arrays.txt", named), Error);
  EXPECT_THROW(write_arrays(directory / "arrays.npz", {}), Error);
  EXPECT_THROW(write_arrays(directory / "missing" / "arrays.npz", named), Error);
  named[1].name = named[0].name;
  EXPECT_THROW(write_arrays(directory / "arrays.npz", named), Error);
  EXPECT_EQ(directory.entries(), 0U);
}

}  // namespace
}  // namespace heed
