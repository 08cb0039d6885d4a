#include "model/gpt_files.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/tensor_source.h"

namespace heed {
namespace {

constexpr std::string_view prefix = "transformer.";
constexpr std::string_view head_name = "lm_head.weight";

std::string_view without_prefix(std::string_view name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// The four matrices that GPT-2 keeps as Conv1D, [in, out] in the file.
bool is_transposed(std::string_view name) {
  return name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") ||
         name.ends_with("c_fc.weight");
}

// Buffers of the causal mask, which older files carry along.
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

void read_parameter(const TensorSource& source, const std::string& name, View<float> parameter) {
  const TensorEntry* entry = find_tensor(source, name);
  require(entry != nullptr, ErrorCode::corrupt_data,
          "{}: the tensor '{}' that config.json asks for is missing", source.source(), name);
  const Shape& shape = parameter.shape();
  const Shape expected = is_transposed(name) ? Shape{shape[1], shape[0]} : shape;
  require(entry->shape == expected, ErrorCode::corrupt_data,
          "{}: '{}' has shape {}, but config.json asks for {}", source.source(), entry->name,
          entry->shape.text(), expected.text());
  if (is_transposed(name)) {
    read_transposed_as_f32(*entry, parameter);
  } else {
    read_as_f32(*entry, parameter);
  }
}

// A tied model may carry a copy of its embedding as the head; a different head is a contradiction.
void check_tied_head(const TensorSource& source, const GptParameters& parameters) {
  const TensorEntry* entry = find_tensor(source, std::string(head_name));
  if (entry == nullptr) return;
  const View<const float> embedding = parameters.token_embedding();
  Tensor<float> head(embedding.shape());
  require(entry->shape == embedding.shape(), ErrorCode::corrupt_data,
          "{}: '{}' has shape {}, but config.json asks for {}", source.source(), entry->name,
          entry->shape.text(), embedding.shape().text());
  read_as_f32(*entry, head);
  require(std::ranges::equal(head.span(), embedding.span()), ErrorCode::corrupt_data,
          "{}: '{}' differs from wte.weight although config.json ties them (tie_word_embeddings)",
          source.source(), entry->name);
}

// A bias that the config denies must not be in the file, unless it is zero.
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

void check_nothing_left_over(const TensorSource& source, const GptConfig& config) {
  const ArenaLayout expected = gpt_layout(config_of_file(config));
  for (const TensorEntry* entry : source.tensors()) {
    const std::string_view name = without_prefix(entry->name);
    require(expected.find(name) != nullptr || name == head_name || is_mask(name),
            ErrorCode::corrupt_data,
            "{}: holds the tensor '{}', which a model of config.json's shape ({} layers) has not",
            source.source(), entry->name, config.layers);
  }
}

Gpt build_gpt(const GptConfig& config, const TensorSource& source) {
  check_nothing_left_over(source, config);
  // Before any memory is taken: a config that asks for more than the file holds is refused.
  const ArenaLayout expected = gpt_layout(config);
  for (const auto& entry : expected.entries()) {
    const TensorEntry* stored = find_tensor(source, entry.name);
    require(
        stored != nullptr && stored->shape.size() == entry.shape.size(), ErrorCode::corrupt_data,
        "{}: '{}' {}, but config.json asks for {} elements", source.source(), entry.name,
        stored == nullptr ? "is missing" : "has shape " + stored->shape.text(), entry.shape.size());
  }
  Gpt gpt(config);
  for (const auto& entry : gpt.parameters().layout().entries()) {
    read_parameter(source, entry.name, gpt.parameters().tensor(entry.name));
  }
  check_absent_biases(source, config);
  if (config.tied_head) check_tied_head(source, gpt.parameters());
  return gpt;
}

void write_weights(const Gpt& gpt, AtomicFile& file) {
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
    } else if (is_transposed(entry.name)) {
      tensors.push_back(outgoing_transposed(entry.name, parameters.tensor(entry.name)));
    } else {
      tensors.push_back(outgoing(entry.name, parameters.tensor(entry.name)));
    }
  }
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
          "'{}' is no model: expected a directory with {} and {}, or a .safetensors file in one",
          name, config_file_name, weights_file_name);
  const std::filesystem::path directory =
      directory_or_file.has_parent_path() ? directory_or_file.parent_path() : ".";
  require(std::filesystem::exists(directory / config_file_name), ErrorCode::not_found,
          "'{}' holds weights alone: there is no {} beside it that says what model they are of",
          name, config_file_name);
  return directory;
}

Gpt load_gpt(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  const GptConfig config = read_gpt_config(directory / config_file_name);
  return build_gpt(config, open_tensor_source(directory_or_file));
}

Gpt load_gpt(const GptBytes& files) {
  const GptConfig config = gpt_config_from_json(parse_json(files.config, files.name), files.name);
  std::vector<SafetensorsFile> weights;
  weights.push_back(SafetensorsFile::parse(files.weights, files.name));
  return build_gpt(config, TensorSource(std::move(weights)));
}

void save_gpt(const Gpt& gpt, const std::filesystem::path& directory,
              const std::vector<CompanionFile>& companions) {
  make_directory(directory);
  AtomicFile weights(directory / weights_file_name);
  write_weights(gpt, weights);
  weights.finish();

  std::vector<CompanionFile> texts = companions;
  texts.push_back({config_file_name, gpt_config_to_json(gpt.config()).dump(2) + "\n"});
  std::deque<AtomicFile> files;
  for (const CompanionFile& text : texts) {
    AtomicFile& file = files.emplace_back(directory / text.name);
    file.write(text.text);
    file.finish();
  }
  // The config goes first and comes last: without it, there is no model here.
  if (!std::ranges::all_of(texts, [&](const auto& text) { return holds(directory, text); })) {
    remove_file(directory / config_file_name);
  }
  weights.commit();
  for (AtomicFile& file : files) file.commit();
}

}  // namespace heed
