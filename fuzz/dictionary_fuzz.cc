// Files of sparse dictionaries from any bytes: configs of SAELens beside tensors that fit, archives
// of NumPy, and safetensors as transcoders. What is accepted encodes and decodes a row.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/numpy_file.h"
#include "checkpoint/torch_bytes.h"
#include "microscope/features/dictionary_files.h"

namespace {

using heed::Dictionary;
using heed::Tensor;
using heed::TensorEntry;

// 2 inputs and 3 features.
std::vector<TensorEntry> fitting_tensors() {
  static Tensor<float> numbers(heed::Shape{6});
  numbers.fill(0.5F);
  std::vector<TensorEntry> all;
  const auto add = [&](const char* name, const heed::Shape& shape) {
    all.push_back({.name = name,
                   .shape = shape,
                   .bytes = std::as_bytes(numbers.span())
                                .first(static_cast<std::size_t>(shape.size()) * sizeof(float))});
  };
  add("W_enc", {2, 3});
  add("W_dec", {3, 2});
  add("W_skip", {2, 2});
  add("b_dec", {2});
  for (const char* name : {"b_enc", "b_gate", "b_mag", "r_mag", "threshold", "scaling_factor"}) {
    add(name, {3});
  }
  return all;
}

void use(const Dictionary& dictionary) {
  Tensor<float> x(heed::Shape{1, dictionary.specification().inputs});
  Tensor<float> out(heed::Shape{1, dictionary.specification().outputs});
  x.fill(1.0F);
  dictionary.decode(dictionary.encode(x), x, out);
}

template <class Load>
void attempt(const Load& load) {
  try {
    load();
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data + 1, size - 1));
  const heed::DictionaryOptions points{.input_point = "blocks.0.hook_resid_pre",
                                       .output_point = "blocks.0.hook_mlp_out"};
  switch (data[0] % 4) {
    case 0:
      attempt([&] {
        use(heed::saelens_dictionary(heed::parse_json(text, "cfg"), fitting_tensors(), "input"));
      });
      break;
    case 1:
      attempt([&] {
        const heed::NumpyFile file = heed::NumpyFile::parse(bytes, "input");
        use(heed::gemma_scope_dictionary(file.tensors(), "input", points));
      });
      break;
    case 2:  // an array in a good archive
      attempt([&] {
        const std::string archive =
            heed::testing::zip_of({{"W_enc.npy", std::string(text)}, {"b_dec.npy", "x"}});
        heed::NumpyFile::parse(std::as_bytes(std::span(archive)), "input");
      });
      break;
    default:
      attempt([&] {
        const heed::SafetensorsFile file = heed::SafetensorsFile::parse(bytes, "input");
        use(heed::transcoder_dictionary(file.tensors(), "input", points));
      });
  }
  return 0;
}
