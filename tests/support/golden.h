// Golden files, which tests/golden/make_gpt_golden.py wrote: small models, and what PyTorch
// computes with them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "formats/config_file.h"
#include "model/transformer.h"
#include "support/gpt2_names.h"

namespace heed::testing {

inline bool is_transposed(const std::string& name) {
  return name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") ||
         name.ends_with("c_fc.weight");
}

// The values of `name`, in the type they are stored in.
template <class T>
Tensor<T> exact(const SafetensorsFile& file, const std::string& name) {
  const TensorEntry* const entry = file.find(name);
  require(entry != nullptr, ErrorCode::not_found, "no '{}' in the golden file", name);
  Tensor<T> values(entry->shape);
  EXPECT_EQ(entry->bytes.size(), values.span().size_bytes());
  std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
  return values;
}

// One golden file, and the model that it begins with.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(SafetensorsFile::open(std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden" /
                                    (name + ".safetensors"))),
        config_(stack_config_from_json(parse_json(file_.metadata().at("config"), name), name)) {}

  const StackSpecification& specification() const { return config_; }
  const SafetensorsFile& file() const { return file_; }

  Transformer transformer() const {
    Transformer transformer({.stacks = {config_}});
    for (const Parameter& parameter : transformer.parameters().list()) {
      const Tensor<float> values =
          parameter_like("parameter." + gpt2_name(parameter.id), parameter.shape);
      std::ranges::copy(values.span(), transformer.parameters().tensor(parameter.id).data());
    }
    return transformer;
  }

  const TensorEntry& entry(const std::string& name) const {
    const TensorEntry* found = file_.find(name);
    require(found != nullptr, ErrorCode::not_found, "no '{}' in the golden file", name);
    return *found;
  }

  // A parameter or its gradient as heed keeps it, [out, in].
  Tensor<float> parameter_like(const std::string& name, const Shape& shape) const {
    Tensor<float> values(shape);
    is_transposed(name) ? read_transposed_as_f32(entry(name), values)
                        : read_as_f32(entry(name), values);
    return values;
  }

  Tensor<float> floats(const std::string& name) const {
    Tensor<float> values(entry(name).shape);
    read_as_f32(entry(name), values);
    return values;
  }

  template <class T>
  Tensor<T> exact(const std::string& name) const {
    return testing::exact<T>(file_, name);
  }

 private:
  SafetensorsFile file_;
  StackSpecification config_;
};

}  // namespace heed::testing
