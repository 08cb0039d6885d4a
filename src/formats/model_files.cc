#include "formats/model_files.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"
#include "formats/config_file.h"
#include "formats/format.h"
#include "formats/gguf_files.h"
#include "formats/gguf_tokenizer.h"
#include "formats/stored_tensors.h"

namespace heed {
namespace {

using kernels::WeightFormat;

// A model as its config.json describes it.
struct Described {
  const Format& format;
  std::string source;  // of the config
  Architecture architecture;
  RoundedParts rounded{};
  WeightFormat computes = WeightFormat::f32;  // the format of products
};

WeightFormat weight_format_of(const ConfigFields& own) {
  if (!own.has("dtype")) return WeightFormat::f32;
  const Json& dtype = own.at("dtype");
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    if (dtype == kernels::weight_format_name(format)) return format;
  }
  fail(ErrorCode::corrupt_data, "{}: heed: 'dtype' must be \"bf16\", \"int8\" or \"int4\", not {}",
       own.source(), dtype.dump());
}

// Whether a field is there, which has one value then.
bool has_word(const ConfigFields& own, const char* name, std::string_view word) {
  if (!own.has(name)) return false;
  require(own.at(name) == word, ErrorCode::corrupt_data, "{}: heed: '{}' must be \"{}\", not {}",
          own.source(), name, word, own.at(name).dump());
  return true;
}

// The object `heed` of a config.json.
constexpr const char* embedding_field = "embedding";
constexpr const char* arithmetic_field = "arithmetic";

void describe_rounding(const ConfigFields& fields, Described& described) {
  const ConfigFields own = fields.object_or_empty("heed");
  const WeightFormat weights = weight_format_of(own);
  described.rounded = {weights,
                       has_word(own, embedding_field, kernels::weight_format_name(weights))};
  described.computes = has_word(own, arithmetic_field, "f32") ? WeightFormat::f32 : weights;
}

using RequireKind = void(const Format& format, const std::string& source);

// `require_kind` says no to a format before anything else is read.
Described describe(const ConfigFields& fields, RequireKind* require_kind) {
  const Format& format = format_of_config(fields);
  require_kind(format, fields.source());
  Described described{
      .format = format, .source = fields.source(), .architecture = read_described(format, fields)};
  describe_rounding(fields, described);
  return described;
}

RequireKind* require_kind_of(StacksWanted stacks) {
  switch (stacks) {
    case StacksWanted::one: return &require_one_stack;
    case StacksWanted::two: return &require_encoder_decoder;
    case StacksWanted::any: break;
  }
  return [](const Format&, const std::string&) {};
}

// Blocks of a file are used as they are; they keep the file mapped where rows are read from it.
Transformer build_of_blocks(const GgufModel& opened) {
  const StoredModel stored(opened.format, opened.architecture, RoundedParts{});
  stored.check_tensors(*opened.tensors);
  BlockWeights blocks = stored.blocks_of(opened.tensors);
  Transformer model = blocks.empty() ? Transformer(opened.architecture)
                                     : Transformer(opened.architecture, std::move(blocks));
  stored.read(*opened.tensors, model.parameters());
  return model;
}

Transformer build(const Described& described, const TensorSource& source) {
  const StoredModel stored(described.format, described.architecture, described.rounded);
  stored.check_tensors(source);
  Transformer model(described.architecture);
  stored.read(source, model.parameters());
  model.parameters().prepare(described.computes);
  return model;
}

void write_weights(const StoredModel& stored, const Parameters& parameters, AtomicFile& file) {
  std::deque<Tensor<float>> room;
  std::vector<OutgoingTensor> tensors = stored.outgoing(parameters, room);
  // Larger elements first, so that all stay aligned in the file.
  std::ranges::stable_sort(tensors, std::greater{},
                           [](const auto& tensor) { return dtype_size(tensor.dtype); });
  write_safetensors(file, tensors, {{"format", "pt"}});
}

bool holds(const std::filesystem::path& directory, const CompanionFile& file) {
  const std::filesystem::path path = directory / file.name;
  return std::filesystem::is_regular_file(path) && MappedFile(path).text() == file.text;
}

// Files of another model, which would be taken for those of this one.
std::vector<std::filesystem::path> others_in(const std::filesystem::path& directory,
                                             const std::vector<CompanionFile>& companions) {
  std::vector<std::filesystem::path> others;
  if (companions.empty()) return others;
  for (const std::string_view name : companion_file_names()) {
    if (std::ranges::find(companions, name, &CompanionFile::name) != companions.end()) continue;
    if (std::filesystem::exists(directory / name)) others.push_back(directory / name);
  }
  return others;
}

}  // namespace

std::filesystem::path model_directory(const std::filesystem::path& directory_or_file) {
  if (std::filesystem::is_directory(directory_or_file)) return directory_or_file;
  const std::string name = directory_or_file.string();
  require(std::filesystem::exists(directory_or_file), ErrorCode::not_found,
          "there is no model '{}'", name);
  if (is_gguf_path(directory_or_file)) return directory_or_file;
  require(
      name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") ||
          name.ends_with(".bin") || name.ends_with(".bin.index.json"),
      ErrorCode::unsupported,
      "'{}' is not a model: expected a directory with {} and {}, a .safetensors file in one, or a "
      ".gguf file",
      name, config_file_name, weights_file_name);
  std::filesystem::path directory =
      directory_or_file.has_parent_path() ? directory_or_file.parent_path() : ".";
  require(std::filesystem::exists(directory / config_file_name), ErrorCode::not_found,
          "no {1} beside the weights '{0}': it describes the model", name, config_file_name);
  return directory;
}

Transformer load_transformer(StacksWanted stacks, const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (is_gguf_path(directory)) {
    return build_of_blocks(open_gguf_model(directory, require_kind_of(stacks)));
  }
  const Described described = describe(read_model_fields(directory), require_kind_of(stacks));
  return build(described, open_tensor_source(directory_or_file));
}

Transformer load_transformer(StacksWanted stacks, const GgufModel& opened) {
  require_kind_of(stacks)(opened.format, opened.source);
  return build_of_blocks(opened);
}

Transformer load_transformer(StacksWanted stacks, const ModelBytes& files) {
  const Described described =
      describe({parse_config(files.config, files.name), files.name}, require_kind_of(stacks));
  std::vector<SafetensorsFile> weights;
  weights.push_back(SafetensorsFile::parse(files.weights, files.name));
  return build(described, TensorSource(std::move(weights)));
}

Architecture read_architecture(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (is_gguf_path(directory)) return open_gguf_model(directory).architecture;
  const ConfigFields fields = read_model_fields(directory);
  return read_described(format_of_config(fields), fields);
}

bool is_encoder_decoder_directory(const std::filesystem::path& directory_or_file) {
  if (!std::filesystem::exists(directory_or_file)) return false;
  if (is_gguf_path(directory_or_file)) {
    return open_gguf_model(directory_or_file).architecture.is_encoder_decoder();
  }
  const std::filesystem::path config = model_directory(directory_or_file) / config_file_name;
  if (!std::filesystem::exists(config)) return false;
  const ConfigFields fields(read_config_document(config), config.string());
  const std::string type = fields.text_or("model_type", "");
  return std::ranges::any_of(formats(), [&](const Format& format) {
    return format.is_encoder_decoder && std::ranges::count(format.model_types, type) > 0;
  });
}

std::unique_ptr<Tokenizer> find_tokenizer(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (is_gguf_path(directory)) return load_gguf_tokenizer(directory);
  return holds_tokenizer(directory) ? load_tokenizer(directory) : nullptr;
}

std::unique_ptr<Tokenizer> require_tokenizer(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (!is_gguf_path(directory)) return load_tokenizer(directory);
  auto tokenizer = load_gguf_tokenizer(directory);
  require(tokenizer != nullptr, ErrorCode::not_found, "'{}' holds no tokenizer",
          directory.string());
  return tokenizer;
}

TranslationTokenizers require_translation_tokenizers(
    const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (!is_gguf_path(directory)) return load_translation_tokenizers(directory);
  const std::shared_ptr<const Tokenizer> both = require_tokenizer(directory);
  return {both, both};
}

TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory_or_file) {
  const std::filesystem::path directory = model_directory(directory_or_file);
  if (!is_gguf_path(directory)) return TokenizerConfig(directory);
  return TokenizerConfig::of(gguf_tokenizer_config(open_gguf_parts(directory).front()));
}

void save_transformer(const Transformer& model, const std::filesystem::path& directory,
                      const SourceFiles& source, const SavedAs& as) {
  const Architecture& architecture = model.architecture();
  WrittenConfig written = written_config(architecture, source);
  const bool rounds_embedding = as.embedding == SavedAs::Embedding::rounded;
  if (as.format != WeightFormat::f32) {
    OrderedJson& own = written.config["heed"];
    own["dtype"] = kernels::weight_format_name(as.format);
    if (rounds_embedding) own[embedding_field] = own["dtype"];
    if (as.arithmetic == SavedAs::Arithmetic::f32) own[arithmetic_field] = "f32";
  }
  const StoredModel stored(*written.format, architecture, {as.format, rounds_embedding});
  stored.require_finite(model.parameters());
  OutputDirectory made(directory);
  AtomicFile weights(directory / weights_file_name);
  write_weights(stored, model.parameters(), weights);
  weights.finish();

  std::vector<CompanionFile> texts = source.companions;
  texts.push_back({config_file_name, config_text(written.config)});
  std::deque<OutputDirectory> folders;  // of those below the directory
  std::deque<AtomicFile> files;
  for (const CompanionFile& text : texts) {
    folders.emplace_back((directory / text.name).parent_path());
    AtomicFile& file = files.emplace_back(directory / text.name);
    file.write(text.text);
    file.finish();
  }
  // The config is removed first and renamed last: a directory without it holds no model.
  const auto others = others_in(directory, source.companions);
  if (!others.empty() ||
      !std::ranges::all_of(texts, [&](const auto& text) { return holds(directory, text); })) {
    remove_file(directory / config_file_name);
  }
  for (const std::filesystem::path& other : others) remove_file(other);
  weights.commit();
  for (AtomicFile& file : files) file.commit();
  for (OutputDirectory& folder : folders) folder.keep();
  made.keep();
}

void read_weights(const Transformer& model, const SourceFiles& source) {
  const Architecture& architecture = model.architecture();
  const StoredModel stored(*written_config(architecture, source).format, architecture,
                           RoundedParts{});
  std::deque<Tensor<float>> room;
  // In the order of write_weights.
  for (const OutgoingTensor& tensor : stored.outgoing(model.parameters(), room)) {
    tensor.produce([](std::span<const std::byte>) {});
  }
}

}  // namespace heed
