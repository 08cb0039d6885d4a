#include "microscope/features/dictionary_files.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "checkpoint/numpy_file.h"
#include "formats/config_file.h"
#include "kernels/kernels.h"
#include "microscope/features/saelens_config.h"

namespace heed {
namespace {

using enum ErrorCode;

constexpr std::size_t max_config = 1 << 20;

// The tensors of a file, by name.
class TensorsByName {
 public:
  TensorsByName(std::span<const TensorEntry> tensors, const std::string& source)
      : tensors_(tensors), source_(source) {}

  const TensorEntry* find(std::string_view name) const {
    const auto found = std::ranges::find(tensors_, name, &TensorEntry::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  const TensorEntry& get(std::string_view name) const {
    const TensorEntry* const found = find(name);
    require(found != nullptr, corrupt_data, "{}: the tensor {} is missing", source_, name);
    return *found;
  }
  // With the shape that it must have.
  Tensor<float> read(std::string_view name, const Shape& shape) const {
    const TensorEntry& entry = get(name);
    require_entry_shape(entry, shape);
    Tensor<float> values(shape);
    read_as_f32(entry, values);
    return values;
  }
  // (F, O), of which int8 has a scale for each feature, NAME_scale (F).
  Tensor<float> read_by_feature(std::string_view name, const Shape& shape) const {
    if (get(name).dtype != DType::i8) return read(name, shape);
    require_shape(get(name), shape);
    return restored(name, shape, shape[1], 1);
  }
  // The same of (F, I) that is stored as (I, F).
  Tensor<float> read_transposed(std::string_view name, const Shape& shape) const {
    const TensorEntry& entry = get(name);
    const Shape stored{shape[1], shape[0]};
    if (entry.dtype == DType::i8) {
      require_shape(entry, stored);
      return restored(name, shape, 1, shape[0]);
    }
    require_entry_shape(entry, stored);
    Tensor<float> values(shape);
    read_transposed_as_f32(entry, values);
    return values;
  }
  // (A, B) of a matrix, with at least one element.
  Shape matrix_shape(std::string_view name) const {
    const Shape shape = get(name).shape;
    require(shape.rank() == 2 && shape.size() > 0, corrupt_data,
            "{}: {} has shape {}, expected a matrix", source_, name, shape);
    return shape;
  }

 private:
  // (F, W) of int8 whose element (f, w) stands at f · feature_stride + w · stride.
  Tensor<float> restored(std::string_view name, const Shape& shape, std::int64_t feature_stride,
                         std::int64_t stride) const {
    const Tensor<float> scales = read(fmt::format("{}_scale", name), {shape[0]});
    const FilePart part = bytes_of(get(name));
    const std::byte* const bytes = part.bytes().data();
    Tensor<float> values(shape);
    float* next = values.data();
    for (std::int64_t f = 0; f < shape[0]; ++f) {
      for (std::int64_t w = 0; w < shape[1]; ++w) {
        const auto value = std::bit_cast<std::int8_t>(bytes[f * feature_stride + w * stride]);
        *next++ = scales[f] * static_cast<float>(value);
      }
    }
    return values;
  }

  void require_shape(const TensorEntry& entry, const Shape& shape) const {
    require(entry.shape == shape, corrupt_data, "{}: {} has shape {}, expected {}", source_,
            entry.name, entry.shape, shape);
  }
  void require_entry_shape(const TensorEntry& entry, const Shape& shape) const {
    require_shape(entry, shape);
    constexpr DType types[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
    require(std::ranges::find(types, entry.dtype) != std::end(types), unsupported,
            "{}: {} holds {}, expected F32, F16, BF16 or F64", source_, entry.name,
            dtype_name(entry.dtype));
  }

  std::span<const TensorEntry> tensors_;
  const std::string& source_;
};

Shape decoder_shape(const DictionarySpecification& own) {
  return {own.features, own.points(), own.outputs};
}

Tensor<float> shaped(Tensor<float> matrix, const Shape& shape) {
  Tensor<float> values(shape);
  std::ranges::copy(matrix.span(), values.data());
  return values;
}

void scale_all(Tensor<float>& values, double factor) {
  for (float& value : values.span()) value = static_cast<float>(value * factor);
}

// x · factor is what W_enc was trained on.
void fold_input_scale(DictionaryWeights& weights, double factor, const std::string& source) {
  require(std::isfinite(factor) && factor > 0, invalid_argument,
          "{}: the norm's scaling factor is {}, expected a number above 0", source, factor);
  scale_all(weights.encoder, factor);
  scale_all(weights.decoder, 1 / factor);
  scale_all(weights.decoder_bias, 1 / factor);
}

// Pre-activations are multiplied by the norms of the decoder's rows, activations divided.
void fold_decoder_norms(const DictionarySpecification& own, DictionaryWeights& weights,
                        const std::string& source) {
  for (std::int64_t f = 0; f < own.features; ++f) {
    float* const row = weights.decoder.data() + f * own.outputs;
    const auto norm = static_cast<float>(
        std::sqrt(kernels::squared_norm({row, static_cast<std::size_t>(own.outputs)})));
    require(norm > 0, corrupt_data,
            "{}: row {} of W_dec is zero, and rescale_acts_by_decoder_norm divides by its norm",
            source, f);
    for (std::int64_t c = 0; c < own.outputs; ++c) row[c] /= norm;
    for (std::int64_t c = 0; c < own.inputs; ++c) weights.encoder[f * own.inputs + c] *= norm;
    weights.encoder_bias[f] *= norm;
  }
}

void choose_points(const DictionaryOptions& options, DictionarySpecification& own,
                   const std::string& source) {
  const bool was_transcoder = own.is_transcoder();
  if (!options.input_point.empty()) own.input_point = options.input_point;
  if (!options.output_point.empty()) {
    own.output_points = {options.output_point};
  } else if (!was_transcoder) {
    own.output_points = {own.input_point};
  }
  require(!own.input_point.empty(), invalid_argument,
          "{}: does not say which point it reads: name it, such as blocks.3.hook_resid_pre",
          source);
  if (own.is_transcoder()) own.subtracts_decoder_bias = false;
}

}  // namespace

Dictionary saelens_dictionary(const Json& config, std::span<const TensorEntry> tensors,
                              const std::string& source, const DictionaryOptions& options) {
  SaelensConfig read = read_saelens_config(config, source);
  DictionarySpecification& own = read.specification;
  const TensorsByName named(tensors, source);
  const Shape by_feature{own.features};
  DictionaryWeights weights;
  weights.encoder = named.read_transposed("W_enc", {own.features, own.inputs});
  weights.decoder =
      shaped(named.read_by_feature("W_dec", {own.features, own.outputs}), decoder_shape(own));
  weights.decoder_bias = named.read("b_dec", {own.outputs});
  if (own.activation == FeatureActivation::gated) {
    weights.encoder_bias = named.read("b_mag", by_feature);
    weights.gate_bias = named.read("b_gate", by_feature);
    weights.magnitude = named.read("r_mag", by_feature);
    for (float& value : weights.magnitude.span()) value = std::exp(value);
  } else {
    weights.encoder_bias = named.read("b_enc", by_feature);
  }
  // A BatchTopK that was trained has one threshold for all features instead of batches.
  if (own.activation == FeatureActivation::batch_top_k) {
    if (named.find("threshold") != nullptr) own.activation = FeatureActivation::jump_relu;
    if (const TensorEntry* const one = named.find("topk_threshold")) {
      require(one->shape.size() == 1, corrupt_data,
              "{}: topk_threshold has shape {}, expected one number", source, one->shape);
      Tensor<float> value(one->shape);
      read_as_f32(*one, value);
      weights.threshold = Tensor<float>(by_feature);
      weights.threshold.fill(value[0]);
      own.activation = FeatureActivation::jump_relu;
    }
  }
  if (own.activation == FeatureActivation::jump_relu && !weights.threshold.present()) {
    weights.threshold = named.read("threshold", by_feature);
  }
  if (read.has_skip) weights.skip = named.read("W_skip", {own.outputs, own.inputs});
  if (read.has_decoder_scale) {
    const Tensor<float> scale = named.read("scaling_factor", by_feature);
    for (std::int64_t f = 0; f < own.features; ++f) {
      for (std::int64_t c = 0; c < own.outputs; ++c)
        weights.decoder[f * own.outputs + c] *= scale[f];
    }
  }
  if (read.rescales_by_decoder) fold_decoder_norms(own, weights, source);
  if (options.norm_scaling_factor) {
    require(read.expects_average_norm, invalid_argument,
            "{}: a norm's scaling factor is given, but normalize_activations is not "
            "expected_average_only_in",
            source);
    fold_input_scale(weights, *options.norm_scaling_factor, source);
  }
  choose_points(options, own, source);
  return {std::move(own), std::move(weights), source};
}

Dictionary gemma_scope_dictionary(std::span<const TensorEntry> tensors, const std::string& source,
                                  const DictionaryOptions& options) {
  const TensorsByName named(tensors, source);
  const Shape encoder = named.matrix_shape("W_enc"), decoder = named.matrix_shape("W_dec");
  DictionarySpecification own{.activation = FeatureActivation::jump_relu,
                              .inputs = encoder[0],
                              .features = encoder[1],
                              .outputs = decoder[1],
                              .input_point = options.input_point};
  own.output_points = {options.output_point.empty() ? own.input_point : options.output_point};
  choose_points(options, own, source);
  const Shape by_feature{own.features};
  DictionaryWeights weights;
  weights.encoder = named.read_transposed("W_enc", {own.features, own.inputs});
  weights.decoder = shaped(named.read("W_dec", {own.features, own.outputs}), decoder_shape(own));
  weights.encoder_bias = named.read("b_enc", by_feature);
  weights.decoder_bias = named.read("b_dec", {own.outputs});
  weights.threshold = named.read("threshold", by_feature);
  return {std::move(own), std::move(weights), source};
}

Dictionary transcoder_dictionary(std::span<const TensorEntry> tensors, const std::string& source,
                                 const DictionaryOptions& options) {
  const TensorsByName named(tensors, source);
  const Shape encoder = named.matrix_shape("W_enc"), decoder = named.matrix_shape("W_dec");
  DictionarySpecification own{.inputs = encoder[1],
                              .features = encoder[0],
                              .outputs = decoder[1],
                              .input_point = options.input_point,
                              .output_points = {options.output_point}};
  const Shape by_feature{own.features};
  DictionaryWeights weights;
  weights.encoder = named.read("W_enc", {own.features, own.inputs});
  weights.decoder = shaped(named.read("W_dec", {own.features, own.outputs}), decoder_shape(own));
  weights.encoder_bias = named.read("b_enc", by_feature);
  weights.decoder_bias = named.read("b_dec", {own.outputs});
  for (const char* name : {"activation_function.threshold", "threshold"}) {
    if (named.find(name) == nullptr || weights.threshold.present()) continue;
    weights.threshold = named.read(name, by_feature);
    own.activation = FeatureActivation::jump_relu;
  }
  if (const TensorEntry* const k = named.find("k")) {
    require(k->shape.size() == 1 && k->dtype == DType::i64, corrupt_data,
            "{}: k has shape {} of {}, expected one I64", source, k->shape, dtype_name(k->dtype));
    const FilePart bytes = bytes_of(*k);
    std::memcpy(&own.k, bytes.bytes().data(), sizeof(own.k));
    own.activation = FeatureActivation::top_k;
  }
  if (named.find("W_skip") != nullptr) {
    weights.skip = named.read("W_skip", {own.outputs, own.inputs});
  }
  choose_points(options, own, source);
  return {std::move(own), std::move(weights), source};
}

namespace {

// Of circuit-tracer's config.yaml: "key: value" lines at the left margin.
std::string yaml_field(const std::string& text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(":")) continue;
    line.remove_prefix(key.size() + 1);
    line = line.substr(0, line.find(" #"));
    const auto is_outer = [](char c) { return c == ' ' || c == '"' || c == '\'' || c == '\r'; };
    while (!line.empty() && is_outer(line.front())) line.remove_prefix(1);
    while (!line.empty() && is_outer(line.back())) line.remove_suffix(1);
    return std::string(line);
  }
  return "";
}

// "hook_mlp_out" of layer 3 is "blocks.3.hook_mlp_out".
std::string point_of_layer(std::string point, std::int64_t layer) {
  if (point == "mlp.hook_out") point = "hook_mlp_out";  // circuit-tracer's name
  return fmt::format("blocks.{}.{}", layer, point);
}

struct TracerHooks {
  std::string input = "hook_resid_mid", output = "hook_mlp_out";
};

TracerHooks tracer_hooks(const std::filesystem::path& directory, const DictionaryOptions& options) {
  TracerHooks hooks;
  const std::filesystem::path config = directory / "config.yaml";
  if (std::filesystem::exists(config)) {
    const std::string text = read_text_file(config, max_config);
    const std::string input = yaml_field(text, "feature_input_hook");
    const std::string output = yaml_field(text, "feature_output_hook");
    if (!input.empty()) hooks.input = input;
    if (!output.empty()) hooks.output = output;
  }
  if (!options.input_point.empty()) hooks.input = options.input_point;
  if (!options.output_point.empty()) hooks.output = options.output_point;
  return hooks;
}

std::int64_t count_files(const std::filesystem::path& directory, std::string_view stem) {
  constexpr std::int64_t most_layers = 4096;
  std::int64_t count = 0;
  while (count < most_layers &&
         std::filesystem::exists(directory / fmt::format("{}{}.safetensors", stem, count))) {
    ++count;
  }
  return count;
}

std::vector<Dictionary> load_transcoders(const std::filesystem::path& directory,
                                         std::int64_t layers, const DictionaryOptions& options) {
  const TracerHooks hooks = tracer_hooks(directory, options);
  std::vector<Dictionary> all;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::filesystem::path path = directory / fmt::format("layer_{}.safetensors", layer);
    const SafetensorsFile file = SafetensorsFile::open(path);
    all.push_back(transcoder_dictionary(file.tensors(), path.string(),
                                        {.input_point = point_of_layer(hooks.input, layer),
                                         .output_point = point_of_layer(hooks.output, layer)}));
  }
  return all;
}

// Layer i writes to layers i, i + 1, …: W_dec_i is (F, L − i, C).
std::vector<Dictionary> load_cross_layer(const std::filesystem::path& directory,
                                         std::int64_t layers, const DictionaryOptions& options) {
  const TracerHooks hooks = tracer_hooks(directory, options);
  std::vector<Dictionary> all;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto file_named = [&](const char* what) {
      return directory / fmt::format("{}{}.safetensors", what, layer);
    };
    const std::filesystem::path encoder_path = file_named("W_enc_");
    const std::filesystem::path decoder_path = file_named("W_dec_");
    const SafetensorsFile encoder = SafetensorsFile::open(encoder_path);
    const SafetensorsFile decoder = SafetensorsFile::open(decoder_path);
    const std::string source = encoder_path.string(), decoder_source = decoder_path.string();
    const TensorsByName read(encoder.tensors(), source), written(decoder.tensors(), decoder_source);
    const auto name = [&](const char* stem) { return fmt::format("{}_{}", stem, layer); };
    const Shape shape = read.matrix_shape(name("W_enc"));
    DictionarySpecification own{.inputs = shape[1],
                                .features = shape[0],
                                .outputs = shape[1],
                                .input_point = point_of_layer(hooks.input, layer)};
    for (std::int64_t to = layer; to < layers; ++to) {
      own.output_points.push_back(point_of_layer(hooks.output, to));
    }
    DictionaryWeights weights;
    weights.encoder = read.read(name("W_enc"), shape);
    weights.encoder_bias = read.read(name("b_enc"), {own.features});
    weights.decoder_bias = read.read(name("b_dec"), {own.outputs});
    weights.decoder = written.read(name("W_dec"), decoder_shape(own));
    if (read.find(name("threshold")) != nullptr) {
      weights.threshold = read.read(name("threshold"), {own.features});
      own.activation = FeatureActivation::jump_relu;
    }
    all.emplace_back(std::move(own), std::move(weights), source);
  }
  return all;
}

// Where Gemma Scope's folders say so: …-res/layer_20/width_16k/average_l0_71/params.npz.
DictionaryOptions with_gemma_scope_points(const std::filesystem::path& file,
                                          DictionaryOptions options) {
  if (!options.input_point.empty()) return options;
  std::int64_t layer = -1;
  std::string kind;
  for (const std::filesystem::path& part : std::filesystem::absolute(file)) {
    const std::string name = part.string();
    if (name.starts_with("layer_")) {
      layer = 0;
      for (const char digit : std::string_view(name).substr(6, 4)) {
        if (digit < '0' || digit > '9') break;
        layer = 10 * layer + (digit - '0');
      }
    }
    for (const std::string_view ending : {"-res", "-mlp", "-att", "-transcoders"}) {
      if (name.ends_with(ending)) kind = ending;
    }
  }
  if (layer < 0 || kind.empty()) return options;
  if (kind == "-transcoders") {
    options.input_point = point_of_layer("ln2.hook_normalized", layer);
    if (options.output_point.empty()) options.output_point = point_of_layer("hook_mlp_out", layer);
    return options;
  }
  options.input_point = point_of_layer(kind == "-res"   ? "hook_resid_post"
                                       : kind == "-mlp" ? "hook_mlp_out"
                                                        : "attn.hook_z",
                                       layer);
  return options;
}

// Folders of a directory that are SAELens's, layer_2 before layer_10.
std::vector<std::filesystem::path> saelens_directories(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (auto each = std::filesystem::directory_iterator(directory, error); !error && each != end;
       each.increment(error)) {
    std::error_code unreadable;
    const std::filesystem::path config = each->path() / saelens_config_name;
    if (std::filesystem::exists(config, unreadable)) found.push_back(each->path());
  }
  std::ranges::sort(found, {}, [](const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return std::pair(name.size(), name);
  });
  return found;
}

std::vector<Dictionary> one_of(Dictionary dictionary) {
  std::vector<Dictionary> all;
  all.push_back(std::move(dictionary));
  return all;
}

}  // namespace

std::vector<Dictionary> load_dictionaries(const std::filesystem::path& path,
                                          const DictionaryOptions& options) {
  require(std::filesystem::exists(path), not_found, "'{}' does not exist", path.string());
  const bool is_directory = std::filesystem::is_directory(path);
  const std::filesystem::path arrays = is_directory ? path / "params.npz" : path;
  if (arrays.extension() == ".npz" && std::filesystem::exists(arrays)) {
    const NumpyFile file = NumpyFile::open(arrays);
    return one_of(gemma_scope_dictionary(file.tensors(), arrays.string(),
                                         with_gemma_scope_points(arrays, options)));
  }
  const std::filesystem::path directory = is_directory ? path : path.parent_path();
  const std::filesystem::path config = directory / saelens_config_name;
  if (std::filesystem::exists(config)) {
    const std::string text = read_text_file(config, max_config);
    const std::filesystem::path weights = directory / saelens_weights_name;
    require(std::filesystem::exists(weights), not_found, "'{}' has {} but no {}",
            directory.string(), saelens_config_name, saelens_weights_name);
    const Json document = parse_config(text, config.string());
    const SafetensorsFile file = SafetensorsFile::open(weights);
    return one_of(saelens_dictionary(document, file.tensors(), directory.string(), options));
  }
  if (const std::int64_t layers = count_files(directory, "W_enc_"); layers > 0) {
    return load_cross_layer(directory, layers, options);
  }
  if (const std::int64_t layers = count_files(directory, "layer_"); layers > 0) {
    return load_transcoders(directory, layers, options);
  }
  if (is_directory) {
    std::vector<Dictionary> all;
    for (const std::filesystem::path& each : saelens_directories(directory)) {
      for (Dictionary& dictionary : load_dictionaries(each, options)) {
        all.push_back(std::move(dictionary));
      }
    }
    if (!all.empty()) return all;
  }
  fail(not_found,
       "'{}' holds no sparse autoencoder: expected cfg.json with sae_weights.safetensors "
       "(SAELens) or folders that have them, params.npz (Gemma Scope), layer_0.safetensors or "
       "W_enc_0.safetensors (circuit-tracer)",
       path.string());
}

}  // namespace heed
