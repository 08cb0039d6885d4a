// Files of bf16, int8 and int4 models, as heed writes them, damaged in every way: each is loaded
// and computes, or is refused with a typed error. Sanitizers look at the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"

namespace heed {
namespace {

using kernels::WeightFormat;

// Sizes that are no whole groups, so that last ones are smaller.
StackSpecification hostile_config() {
  StackSpecification config = make_gpt_config(1, 3, 33, 4, 12);
  config.block.feed_forward.width = 35;
  config.tied_unembedding = false;
  return config;
}

class HostileQuantised : public ::testing::TestWithParam<WeightFormat> {
 protected:
  HostileQuantised() {
    const testing::TemporaryDirectory directory;
    save_transformer(testing::random_transformer(hostile_config(), 3), directory.path(), {},
                     GetParam());
    config_ = read_text_file(directory.path() / config_file_name);
    file_ = read_text_file(directory.path() / weights_file_name);
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), sizeof length);
    data_begin_ = sizeof length + length;
    header_ = Json::parse(file_.substr(sizeof length, length));
  }

  // The file with another header, whose length is right.
  std::string with_header(const Json& header) const {
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    return file + text + file_.substr(data_begin_);
  }

  // Whether the file is loaded; then the model must compute.
  bool loads(const std::string& file) const {
    try {
      const Transformer transformer = load_transformer(
          StacksWanted::one, ModelBytes{"damaged", config_, std::as_bytes(std::span(file))});
      constexpr std::int32_t tokens[] = {3, 1, 11};
      EXPECT_EQ(testing::full_logits(transformer, tokens).shape(), (Shape{3, 12}));
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::corrupt_data ||
                  error.code() == ErrorCode::unsupported ||
                  error.code() == ErrorCode::invalid_argument)  // not finite
          << error_code_name(error.code()) << " " << error.what();
      EXPECT_NE(std::string(error.what()), "");
      return false;
    }
  }

  // Names of the tensors, without "__metadata__".
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, entry] : header_.items()) {
      if (entry.contains("data_offsets")) found.push_back(name);
    }
    return found;
  }

  std::string config_, file_;
  std::size_t data_begin_ = 0;
  Json header_;
};

TEST_P(HostileQuantised, TheWholeFileLoads) {
  EXPECT_TRUE(loads(file_));
  EXPECT_TRUE(loads(with_header(header_)));
}

TEST_P(HostileQuantised, NoTruncatedFileLoads) {
  for (std::size_t size = 0; size < file_.size(); size += size < data_begin_ + 40 ? 7 : 997) {
    EXPECT_FALSE(loads(file_.substr(0, size))) << size;
  }
  EXPECT_FALSE(loads(file_.substr(0, file_.size() - 1)));
  EXPECT_FALSE(loads(file_ + '\0'));
}

// Shapes, types and ranges of each tensor in turn.
TEST_P(HostileQuantised, NoOtherHeaderLoads) {
  const std::int64_t end = static_cast<std::int64_t>(file_.size() - data_begin_);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const auto integer = [](const Json& value) { return value.get<std::int64_t>(); };
  for (const std::string& name : names()) {
    const Json& right = header_[name];
    const std::int64_t first = integer(right["data_offsets"][0]);
    const std::int64_t last = integer(right["data_offsets"][1]);
    const auto refused = [&](const char* member, const Json& value) {
      if (right[member] == value) return;
      Json header = header_;
      header[name][member] = value;
      EXPECT_FALSE(loads(with_header(header))) << name << " " << member << " " << value;
    };
    for (const Json& range : std::vector<Json>{{first, last - 1},
                                               {first + 1, last},
                                               {first + 1, last + 1},
                                               {first - 1, last - 1},
                                               {0, last - first},  // another's
                                               {end - (last - first), end},
                                               {end, end + (last - first)},
                                               {last, first},
                                               {first, first},
                                               {first, huge},
                                               {huge, huge},
                                               {first, -1},
                                               {first, std::numeric_limits<std::uint64_t>::max()},
                                               {first, 1e30},
                                               {"0", last},
                                               {first},
                                               Json::array()}) {
      refused("data_offsets", range);
    }
    Json turned = right["shape"], longer = right["shape"];
    std::reverse(turned.begin(), turned.end());
    longer.push_back(1);
    for (const Json& shape : std::vector<Json>{turned,
                                               longer,
                                               Json::array(),
                                               {0},
                                               {-1, -1},
                                               {huge},
                                               {huge, huge},
                                               {1LL << 32, 1LL << 32},
                                               {1.5},
                                               "x"}) {
      refused("shape", shape);
    }
    for (const char* dtype :
         {"F64", "I64", "F8_E4M3", "F16", "U8", "I8", "BF16", "F32", "int4", ""}) {
      // F16 in the place of BF16 is another model, of the same size.
      if (right["dtype"] == "BF16" && std::string(dtype) == "F16" &&
          GetParam() == WeightFormat::bf16)
        continue;
      refused("dtype", dtype);
    }
    Json without = header_;
    without.erase(name);
    EXPECT_FALSE(loads(with_header(without))) << name;
    Json renamed = header_;
    renamed[name + "x"] = right;
    renamed.erase(name);
    EXPECT_FALSE(loads(with_header(renamed))) << name;
  }
}

// Scales, or the numbers of bf16, that are not finite, negative, or too large by the integers.
TEST_P(HostileQuantised, NumbersThatAreNoWeightsAreRefused) {
  const bool is_bf16 = GetParam() == WeightFormat::bf16;
  int tensors = 0;
  for (const std::string& name : names()) {
    if (header_[name]["dtype"] != "BF16") continue;
    ++tensors;
    const std::size_t first = data_begin_ + header_[name]["data_offsets"][0].get<std::size_t>();
    const std::size_t last = data_begin_ + header_[name]["data_offsets"][1].get<std::size_t>() - 2;
    for (const std::uint16_t bits : {0x7FC0, 0xFFFF, 0x7F80, 0xFF80, 0x7F7F, 0xBF80}) {
      const bool is_finite = (bits & 0x7F80) != 0x7F80;
      for (const std::size_t at : {first, last}) {
        std::string file = file_;
        std::memcpy(file.data() + at, &bits, sizeof bits);
        EXPECT_EQ(loads(file), is_bf16 && is_finite) << name << " " << bits;
      }
    }
  }
  EXPECT_GT(tensors, 0);
}

TEST_P(HostileQuantised, AnyBytesLoadOrAreRefused) {
  RandomStream random(11, static_cast<std::uint64_t>(GetParam()));
  int loaded = 0, refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::string file = file_;
    // Half of them within the header, half within the numbers.
    const std::size_t begin = i % 2 == 0 ? 0 : data_begin_;
    const std::size_t size = i % 2 == 0 ? data_begin_ : file.size() - data_begin_;
    for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
      file[begin + random.below(size)] = static_cast<char>(random.below(256));
    }
    if (i % 16 == 15) file.resize(begin + random.below(size));
    (loads(file) ? loaded : refused) += 1;
  }
  EXPECT_GT(refused, 250);
  if (GetParam() == WeightFormat::bf16) {
    EXPECT_GT(loaded, 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, HostileQuantised,
                         ::testing::Values(WeightFormat::bf16, WeightFormat::int8,
                                           WeightFormat::int4),
                         [](const auto& format) {
                           return std::string(kernels::weight_format_name(format.param));
                         });

}  // namespace
}  // namespace heed
