#include "model/gpt_files.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/tensor_source.h"
#include "model/integer_weights.h"

namespace heed {
namespace {

constexpr std::string_view prefix = "transformer.";
constexpr std::string_view unembedding_name = "lm_head.weight";

using kernels::WeightFormat;

std::string_view without_prefix(std::string_view name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// The four matrices that GPT-2 keeps as Conv1D, [in, out] in the file.
bool is_transposed(std::string_view name) {
  return name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") ||
         name.ends_with("c_fc.weight");
}

// Whether a parameter is quantised in a file: the matrices of linear layers, except an unembedding
// tied to the token table, whose rows are read as embeddings too.
bool is_quantised(std::string_view name) { return is_transposed(name) || name == unembedding_name; }

// Buffers of the causal mask, which older files contain.
bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// The config that a bias-free model would have with biases: the tensors that its file holds.
GptConfig config_of_file(const GptConfig& config) {
  GptConfig in_file = config;
  in_file.has_bias = true;
  return in_file;
}

const TensorEntry* find_tensor(const TensorSource& source, const std::string& name) {
  if (const TensorEntry* entry = source.find(name)) return entry;
  return source.find(std::string(prefix) + name);
}

// A model as its config.json describes it.
struct Described {
  GptConfig config;
  WeightFormat format = WeightFormat::f32;  // of the quantised matrices
};

Described describe(const Json& document, const std::string& source) {
  Described described{.config = gpt_config_from_json(document, source)};
  if (!document.contains("heed") || !document["heed"].contains("dtype")) return described;
  const Json& dtype = document["heed"]["dtype"];
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    if (dtype != kernels::weight_format_name(format)) continue;
    described.format = format;
    return described;
  }
  fail(ErrorCode::corrupt_data, "{}: heed: 'dtype' must be \"bf16\", \"int8\" or \"int4\", not {}",
       source, dtype.dump());
}

bool holds_integers(const Described& described, std::string_view name) {
  return is_integer(described.format) && is_quantised(name);
}

void read_parameter(const TensorSource& source, const std::string& name, View<float> parameter) {
  const TensorEntry* entry = find_tensor(source, name);
  require(entry != nullptr, ErrorCode::corrupt_data,
          "{}: tensor '{}' is missing; config.json requires it", source.source(), name);
  const Shape& shape = parameter.shape();
  const Shape expected = is_transposed(name) ? Shape{shape[1], shape[0]} : shape;
  require(entry->shape == expected, ErrorCode::corrupt_data,
          "{}: '{}' has shape {}, but config.json requires {}", source.source(), entry->name,
          entry->shape.text(), expected.text());
  if (is_transposed(name)) {
    read_transposed_as_f32(*entry, parameter);
  } else {
    read_as_f32(*entry, parameter);
  }
}

// A file of a tied model may repeat the embedding as the unembedding; another one is a
// contradiction.
void check_tied_unembedding(const TensorSource& source, const GptParameters& parameters) {
  const TensorEntry* entry = find_tensor(source, std::string(unembedding_name));
  if (entry == nullptr) return;
  const View<const float> embedding = parameters.token_embedding();
  Tensor<float> unembedding(embedding.shape());
  require(entry->shape == embedding.shape(), ErrorCode::corrupt_data,
          "{}: '{}' has shape {}, but config.json requires {}", source.source(), entry->name,
          entry->shape.text(), embedding.shape().text());
  read_as_f32(*entry, unembedding);
  require(std::ranges::equal(unembedding.span(), embedding.span()), ErrorCode::corrupt_data,
          "{}: '{}' differs from wte.weight although config.json ties them (tie_word_embeddings)",
          source.source(), entry->name);
}

// A bias that the config excludes must be absent from the file, or zero.
void check_absent_biases(const TensorSource& source, const GptConfig& config) {
  if (config.has_bias) return;
  const ArenaLayout in_file = gpt_layout(config_of_file(config));
  for (const auto& entry : in_file.entries()) {
    if (!entry.name.ends_with(".bias")) continue;
    const TensorEntry* stored = find_tensor(source, entry.name);
    if (stored == nullptr) continue;
    Tensor<float> bias(stored->shape);
    read_as_f32(*stored, bias);
    require(std::ranges::all_of(bias.span(), [](float value) { return value == 0.0F; }),
            ErrorCode::corrupt_data,
            "{}: '{}' is not zero although config.json says the model has no biases",
            source.source(), stored->name);
  }
}

// The name of the parameter that a tensor stores, alone or with a second tensor of scales.
std::string_view parameter_of(const Described& described, std::string_view name) {
  if (!is_integer(described.format)) return name;
  for (const std::string_view ending :
       {kernels::weight_format_name(described.format), std::string_view("scales")}) {
    const std::size_t length = ending.size() + 1;
    if (name.size() <= length || !name.ends_with(ending) || name[name.size() - length] != '.') {
      continue;
    }
    const std::string_view parameter = name.substr(0, name.size() - length);
    const bool tied = parameter == unembedding_name && described.config.tied_unembedding;
    if (is_quantised(parameter) && !tied) return parameter;
  }
  return name;
}

void check_no_unexpected_tensors(const TensorSource& source, const Described& described) {
  const GptConfig& config = described.config;
  const ArenaLayout expected = gpt_layout(config_of_file(config));
  for (const TensorEntry* entry : source.tensors()) {
    const std::string_view name = parameter_of(described, without_prefix(entry->name));
    require(expected.find(name) != nullptr || name == unembedding_name || is_mask(name),
            ErrorCode::corrupt_data, "{}: unexpected tensor '{}' for this config ({} layers)",
            source.source(), entry->name, config.layers);
  }
}

// Before memory is allocated: a config that requires more than the file holds is refused.
void check_sizes(const TensorSource& source, const Described& described) {
  const ArenaLayout expected = gpt_layout(described.config);
  for (const auto& entry : expected.entries()) {
    if (holds_integers(described, entry.name)) {
      find_integers(source, entry.name, entry.shape, described.format);
      continue;
    }
    const TensorEntry* stored = find_tensor(source, entry.name);
    require(
        stored != nullptr && stored->shape.size() == entry.shape.size(), ErrorCode::corrupt_data,
        "{}: '{}' {}, but config.json requires {} elements", source.source(), entry.name,
        stored == nullptr ? "is missing" : "has shape " + stored->shape.text(), entry.shape.size());
  }
}

Gpt build_gpt(const Described& described, const TensorSource& source) {
  check_no_unexpected_tensors(source, described);
  check_sizes(source, described);
  Gpt gpt(described.config);
  for (const auto& entry : gpt.parameters().layout().entries()) {
    const View<float> parameter = gpt.parameters().tensor(entry.name);
    if (holds_integers(described, entry.name)) {
      read_integers(source, find_integers(source, entry.name, entry.shape, described.format),
                    described.format, parameter);
    } else {
      read_parameter(source, entry.name, parameter);
    }
  }
  check_absent_biases(source, described.config);
  if (described.config.tied_unembedding) check_tied_unembedding(source, gpt.parameters());
  gpt.parameters().prepare(described.format);
  return gpt;
}

// bf16, in the order that `tensor` is in the file.
OutgoingTensor as_bf16(OutgoingTensor tensor) {
  tensor.dtype = DType::bf16;
  tensor.produce = [produce = std::move(tensor.produce)](const ByteSink& sink) {
    produce([&](std::span<const std::byte> bytes) {
      std::vector<std::uint16_t> rounded(bytes.size() / sizeof(float));
      for (std::size_t i = 0; i < rounded.size(); ++i) {
        float number;
        std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
        rounded[i] = f32_to_bf16(number);
      }
      sink(std::as_bytes(std::span(rounded)));
    });
  };
  return tensor;
}

void append_matrix(std::vector<OutgoingTensor>& tensors, const std::string& name,
                   View<const float> matrix, WeightFormat format) {
  if (is_integer(format)) return append_integers(tensors, name, matrix, format);
  OutgoingTensor tensor =
      is_transposed(name) ? outgoing_transposed(name, matrix) : outgoing(name, matrix);
  tensors.push_back(format == WeightFormat::bf16 ? as_bf16(std::move(tensor)) : tensor);
}

void write_weights(const Gpt& gpt, WeightFormat format, AtomicFile& file) {
  const GptParameters& parameters = gpt.parameters();
  std::vector<OutgoingTensor> tensors;
  const ArenaLayout in_file = gpt_layout(config_of_file(gpt.config()));
  std::int64_t largest_bias = 1;
  for (const auto& entry : in_file.entries()) {
    if (entry.shape.rank() == 1) largest_bias = std::max(largest_bias, entry.shape[0]);
  }
  const Tensor<float> zeros(Shape{largest_bias});
  for (const auto& entry : in_file.entries()) {
    if (parameters.layout().find(entry.name) == nullptr) {
      tensors.push_back(outgoing(entry.name, View<const float>(zeros.data(), entry.shape)));
    } else if (is_quantised(entry.name)) {
      append_matrix(tensors, entry.name, parameters.tensor(entry.name), format);
    } else {
      tensors.push_back(outgoing(entry.name, parameters.tensor(entry.name)));
    }
  }
  // Larger elements first, so that all stay aligned in the file.
  std::ranges::stable_sort(tensors, std::greater{},
                           [](const auto& tensor) { return dtype_size(tensor.dtype); });
  write_safetensors(file, tensors, {{"format", "pt"}});
}

bool holds(const std::filesystem::path& directory, const CompanionFile& file) {
  const std::filesystem::path path = directory / file.name;
  return std::filesystem::is_regular_file(path) && MappedFile(path).text() == file.text;
}

}  // namespace

std::filesystem::path model_directory(const std::filesystem::path& directory_or_file) {
  if (std::filesystem::is_directory(directory_or_file)) return directory_or_file;
  const std::string name = directory_or_file.string();
  require(std::filesystem::exists(directory_or_file), ErrorCode::not_found,
          "there is no model '{}'", name);
  require(name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"),
          ErrorCode::unsupported,
          "'{}' is not a model: expected a directory with {} and {}, or a .safetensors file in one",
          name, config_file_name, weights_file_name);
  std::filesystem::path directory =
      directory_or_file.has_parent_path() ? directory_or_file.parent_path() : ".";
  require(std::filesystem::exists(directory / config_file_name), ErrorCode::not_found,
          "no {1} beside the weights '{0}': it describes the model", name, config_file_name);
  return directory;
}

Gpt load_gpt(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  const std::filesystem::path config = directory / config_file_name;
  const Described described = describe(read_config_document(config), config.string());
  return build_gpt(described, open_tensor_source(directory_or_file));
}

Gpt load_gpt(const GptBytes& files) {
  const Described described = describe(parse_json(files.config, files.name), files.name);
  std::vector<SafetensorsFile> weights;
  weights.push_back(SafetensorsFile::parse(files.weights, files.name));
  return build_gpt(described, TensorSource(std::move(weights)));
}

void save_gpt(const Gpt& gpt, const std::filesystem::path& directory,
              const std::vector<CompanionFile>& companions, WeightFormat format) {
  OutputDirectory made(directory);
  AtomicFile weights(directory / weights_file_name);
  write_weights(gpt, format, weights);
  weights.finish();

  std::vector<CompanionFile> texts = companions;
  OrderedJson config = gpt_config_to_json(gpt.config());
  if (format != WeightFormat::f32) {
    config["heed"]["dtype"] = kernels::weight_format_name(format);
  }
  texts.push_back({config_file_name, config.dump(2) + "\n"});
  std::deque<AtomicFile> files;
  for (const CompanionFile& text : texts) {
    AtomicFile& file = files.emplace_back(directory / text.name);
    file.write(text.text);
    file.finish();
  }
  // The config is removed first and renamed last: a directory without it holds no model.
  if (!std::ranges::all_of(texts, [&](const auto& text) { return holds(directory, text); })) {
    remove_file(directory / config_file_name);
  }
  weights.commit();
  for (AtomicFile& file : files) file.commit();
  made.keep();
}

}  // namespace heed
