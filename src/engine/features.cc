// Sparse dictionaries of the public facade.
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "engine/carried_transcoders.h"
#include "engine/facade.h"
#include "heed/features.h"
#include "microscope/features/dictionary.h"
#include "microscope/features/dictionary_files.h"

namespace heed {
namespace {

using enum ErrorCode;

// Rows (N, W) of an array (…, W).
View<const float> rows_of_array(const Array& values, std::int64_t width, std::string_view name) {
  require(!values.shape().empty() && values.shape().back() == width, invalid_argument,
          "{} has shape ({}), expected (…, {})", name, fmt::join(values.shape(), ", "), width);
  return {values.data(), {static_cast<std::int64_t>(values.size()) / width, width}};
}

Array with_last(Tensor<float> rows, std::vector<std::int64_t> shape, std::int64_t last) {
  shape.back() = last;
  return make_array(std::move(rows)).reshaped(std::move(shape));
}

struct NamedWeight {
  std::string_view name;
  Tensor<float> DictionaryWeights::*tensor;
};
constexpr std::array named_weights = {NamedWeight{"W_enc", &DictionaryWeights::encoder},
                                      NamedWeight{"W_dec", &DictionaryWeights::decoder},
                                      NamedWeight{"b_enc", &DictionaryWeights::encoder_bias},
                                      NamedWeight{"b_mag", &DictionaryWeights::encoder_bias},
                                      NamedWeight{"b_gate", &DictionaryWeights::gate_bias},
                                      NamedWeight{"magnitude", &DictionaryWeights::magnitude},
                                      NamedWeight{"threshold", &DictionaryWeights::threshold},
                                      NamedWeight{"b_dec", &DictionaryWeights::decoder_bias},
                                      NamedWeight{"W_skip", &DictionaryWeights::skip}};

}  // namespace

std::vector<SparseDictionary> SparseDictionary::load(const std::string& path,
                                                     const DictionaryLoad& options) {
  return load_sparse_dictionaries(path, {.input_point = options.input_point,
                                         .output_point = options.output_point,
                                         .norm_scaling_factor = options.norm_scaling_factor});
}

DictionaryInfo SparseDictionary::info() const {
  const DictionarySpecification& own = dictionary_->specification();
  constexpr const char* norms[] = {"none", "constant_norm_rescale", "layer_norm"};
  return {.architecture = std::string(activation_name(own.activation)),
          .input_norm = norms[static_cast<int>(own.input_norm)],
          .subtracts_decoder_bias = own.subtracts_decoder_bias,
          .is_transcoder = own.is_transcoder(),
          .inputs = own.inputs,
          .features = own.features,
          .outputs = own.outputs,
          .k = own.k,
          .input_point = own.input_point,
          .output_points = own.output_points,
          .input_head = own.input_head,
          .output_head = own.output_head,
          .model = own.model,
          .parameters = dictionary_->parameters()};
}

Array SparseDictionary::encode(const Array& x) const {
  const DictionarySpecification& own = dictionary_->specification();
  const View<const float> rows = rows_of_array(x, own.inputs, "x");
  Tensor<float> acts(Shape{rows.extent(0), own.features});
  dictionary_->encode(rows).copy_to(acts);
  return with_last(std::move(acts), x.shape(), own.features);
}

Array SparseDictionary::decode(const Array& acts, const Array& x, std::int64_t point) const {
  const DictionarySpecification& own = dictionary_->specification();
  const View<const float> rows = rows_of_array(acts, own.features, "acts");
  require(point >= 0 && point < own.points(), invalid_argument,
          "output point {} does not exist: there are {}", point, own.points());
  const bool needs_x = dictionary_->weights().skip.present() ||
                       (own.input_norm != InputNorm::none && !own.is_transcoder());
  require(!needs_x || !x.empty(), invalid_argument,
          "a dictionary that normalises its input or has W_skip decodes with x, which is missing");
  View<const float> read;
  if (needs_x) {
    read = rows_of_array(x, own.inputs, "x");
    require(read.extent(0) == rows.extent(0), invalid_argument,
            "x has {} rows, expected {}, as many as acts", read.extent(0), rows.extent(0));
  }
  Tensor<float> out(Shape{rows.extent(0), own.outputs});
  const FeatureRows features = FeatureRows::of(rows);
  if (needs_x) {
    dictionary_->decode(features, read, out, point);
  } else {
    dictionary_->reconstruct(features, out, point);
  }
  return with_last(std::move(out), acts.shape(), own.outputs);
}

SharedView SparseDictionary::weight(std::string_view name) const {
  for (const NamedWeight& known : named_weights) {
    const Tensor<float>& tensor = dictionary_->weights().*known.tensor;
    if (known.name != name || !tensor.present()) continue;
    SharedView view{.data = const_cast<float*>(tensor.data()),
                    .shape = {tensor.shape().begin(), tensor.shape().end()},
                    .strides = {},
                    .owner = dictionary_};
    view.strides.assign(view.shape.size(), 1);
    for (std::size_t i = view.shape.size(); i-- > 1;) {
      view.strides[i - 1] = view.strides[i] * view.shape[i];
    }
    return view;
  }
  fail(not_found, "the dictionary has no weight '{}'", name);
}

void SparseDictionary::save(const std::string& directory) const {
  save_dictionary(*dictionary_, directory, OrderedJson::object());
}

}  // namespace heed
